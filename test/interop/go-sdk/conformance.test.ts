import { spawn } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { compareWithDirect } from '../../conformance/score.ts';
import type { Revision } from '../../conformance/suite.ts';
import { freePort } from '../../kit/ports.ts';
import { until } from '../../kit/until.ts';

// The official conformance suite on the conformance server of the Go SDK, which shares no code with ours or with our fixture.

const program = process.env['GO_SDK_EVERYTHING'] as string;

/** Each revision with the server mode that has all of it. */
const REVISIONS: { revision: Revision; required: number; stateless: boolean }[] = [
  { revision: '2025-11-25', required: 30, stateless: false },
  { revision: '2026-07-28', required: 37, stateless: true },
];

/**
 * The server ends the stream of this call with a retry time but without an event id, so nobody can fetch the rest. The suite
 * accepts that with warnings; the gateway answers the call with an error. polling.test.ts shows that a server of the same
 * SDK with event ids is polled.
 */
const UNRESUMABLE = ['server-sse-polling'];

async function startServer(stateless: boolean): Promise<{ url: string; stop(): void }> {
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(program, ['-http', address, `-stateless=${stateless}`], { stdio: 'ignore' });
  const url = `http://${address}`;
  // It says that it listens before it does.
  await until(() =>
    fetch(url).then(
      () => true,
      () => false,
    ),
  );
  return { url, stop: () => void child.kill('SIGKILL') };
}

describe.each(REVISIONS)('the Go SDK in the conformance suite at $revision', (each) => {
  const { revision, required, stateless } = each;
  test.each(['stdio', 'http'] as const)(
    'the gateway passes what the server passes, over %s',
    { timeout: 180_000 },
    async (transport) => {
      const { url, stop } = await startServer(stateless);
      try {
        const server = transport === 'stdio' ? { command: program } : { url };
        const { passed, lost } = await compareWithDirect(revision, server, url);
        expect(lost.filter(({ name }) => !UNRESUMABLE.includes(name))).toEqual([]);
        expect(passed).toBe(required);
      } finally {
        stop();
      }
    },
  );
});
