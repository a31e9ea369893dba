import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mcpConfig } from '../kit/config.ts';
import { type EraClient, secondSdk } from '../kit/era-clients.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { until } from '../kit/until.ts';

// Servers in other languages as targets of the gateway, used by the official TypeScript client. They have the resource
// `test://watched-resource` and tools with the names and arguments of the everything fixture.

const WATCHED = 'test://watched-resource';

/** What a server may be unable to do, because its SDK is. */
type Feature = 'progress' | 'sampling' | 'elicitation' | 'subscribe' | 'cancel';

type Revision = '2025-11-25' | '2026-07-28';

export interface Served {
  /** Command line of the server. */
  readonly program: readonly string[];
  /** `http`: the server prints its URL as its first line. */
  readonly transport: 'stdio' | 'http';
  /** Features that its SDK does not have at a revision, with the gateway or without. */
  readonly lacks?: Partial<Record<Revision, readonly Feature[]>>;
}

const MODES = [
  { client: 'a client with a session', connect: secondSdk('legacy'), revision: '2025-11-25' },
  {
    client: 'a client of 2026-07-28',
    connect: secondSdk({ pin: '2026-07-28' }),
    revision: '2026-07-28',
  },
] as const;

/** Starts a server; resolves to the target of the gateway. */
export async function startTarget({ program, transport }: Served): Promise<{ target: object; stop(): void }> {
  const [cmd, ...args] = program as [string, ...string[]];
  if (transport === 'stdio')
    return { target: { name: 'served', stdio: { cmd, args } }, stop: () => undefined };
  const child = spawn(cmd, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { target: { name: 'served', mcp: { host: url } }, stop: () => void child.kill('SIGKILL') };
}

/** Defines the tests of one server. */
export function describeServed(name: string, served: Served): void {
  describe.each(MODES)(`${name} and $client`, ({ connect, revision }) => {
    const has = (feature: Feature): boolean => served.lacks?.[revision]?.includes(feature) !== true;
    let stop: () => void;
    let gate: TestGateway;
    let client: EraClient;
    beforeAll(async () => {
      const started = await startTarget(served);
      ({ stop } = started);
      gate = await gateway(mcpConfig([started.target]));
      client = await connect(`${gate.url}/mcp`);
    });
    afterAll(async () => {
      await client?.[Symbol.asyncDispose]();
      await gate?.close();
      stop();
    });

    test('lists and calls tools, and reads resources', async () => {
      expect(client.revision).toBe(revision);
      expect(await client.tools()).toContain('test_simple_text');
      expect(await client.call('test_simple_text')).toBe('plain text');
      expect(await client.read(WATCHED)).toBe('text of a resource');
    });

    test.runIf(has('progress'))('receives progress', async () => {
      const progress: number[] = [];
      const onprogress = (step: { progress: number }): void => void progress.push(step.progress);
      expect(await client.call('test_tool_with_progress', {}, { onprogress })).toBe('done');
      await until(() => progress.length === 3);
      expect(progress).toEqual([0, 50, 100]);
    });

    test.runIf(has('sampling'))('answers sampling', async () => {
      expect(await client.call('test_sampling', { prompt: 'Say it' })).toContain('sampled');
    });

    test.runIf(has('elicitation'))('answers elicitation', async () => {
      expect(await client.call('test_elicitation', { message: 'Who?' })).toMatch(/accept.*ada/);
    });

    test.runIf(has('subscribe'))('is told that a resource has changed', async () => {
      await client.watch(WATCHED);
      await client.call('test_trigger_resource_update');
      await until(() => client.changes.includes(`notifications/resources/updated ${WATCHED}`));
    });

    test.runIf(has('cancel'))('cancels a call at the server', async () => {
      const cancelling = new AbortController();
      const onprogress = (): void => cancelling.abort();
      const call = client.call('test_wait', { name: revision }, { onprogress, signal: cancelling.signal });
      await expect(call).rejects.toThrow();
      await until(async () => (await client.call('test_cancelled')).includes(`"${revision}"`));
    });
  });
}
