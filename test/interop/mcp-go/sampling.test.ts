import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';

const program = process.env['MCP_GO'] as string;
const everything = fileURLToPath(new URL('../../kit/everything-server.ts', import.meta.url));
const run = promisify(execFile);

interface Outcome {
  readonly number: number;
  readonly text?: string;
  readonly isError?: boolean;
  readonly problem?: string;
}

/** What an unmodified Go client gets when it calls a tool that asks for sampling so many times at once. */
async function callAtOnce(
  targets: readonly object[],
  count: number,
  tool: string,
  ...listen: 'listen'[]
): Promise<Outcome[]> {
  await using gate = await gateway(mcpConfig(targets));
  const { stdout } = await run(program, ['client', `${gate.url}/mcp`, String(count), tool, ...listen], {
    timeout: 30_000,
  });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Each call has the answer to its own prompt. */
function expectAnswers(outcomes: readonly Outcome[], count: number): void {
  expect(outcomes).toEqual(
    Array.from({ length: count }, (_, number) => ({
      number,
      text: expect.stringMatching(new RegExp(`\\banswer ${number}\\b`)),
    })),
  );
}

describe.each([
  ['a server of mcp-go', { name: 'go', stdio: { cmd: program, args: ['stdio'] } }],
  [
    'a server of the official TypeScript SDK',
    { name: 'ts', stdio: { cmd: process.execPath, args: [everything] } },
  ],
])('parallel sampling tools of %s', (_what, target) => {
  test.each([1, 2, 5])(
    'parallel sampling tools complete for a client without a GET stream: %i tools',
    async (count) => {
      expectAnswers(await callAtOnce([target], count, 'test_sampling'), count);
    },
  );

  test('parallel sampling tools complete for a client with a GET stream', async () => {
    expectAnswers(await callAtOnce([target], 2, 'test_sampling', 'listen'), 2);
  });

  test('parallel sampling tools complete when the server is one of several targets', async () => {
    const tool = `${target.name}_test_sampling`;
    expectAnswers(await callAtOnce([target, chaos('other')], 2, tool), 2);
  });
});

test.each([2, 5])(
  'sampling tools that send their requests in another order than they were called complete: %i tools',
  async (count) => {
    const target = { name: 'go', stdio: { cmd: program, args: ['stdio'] } };
    expectAnswers(await callAtOnce([target], count, 'test_sampling_crosswise'), count);
  },
);
