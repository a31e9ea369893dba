import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../../src/library/index.ts';
import { replayCassette, testGateway } from '../../../src/library/testing/index.ts';
import { everythingHttp } from '../../kit/everything-target.ts';
import { temporaryFolder } from '../../kit/folder.ts';

// Python clients at a gateway, and then, without its servers, at the recording.

const python = process.env['MCP_PYTHON'] as string;
const path = (name: string): string => new URL(name, import.meta.url).pathname;
const program = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);

/** A call is named after its process, unless it has another name. */
const options = { timeout: 50_000, env: { ...process.env, CALL_NAME: 'of both' } };

const run = async (script: string, ...args: string[]): Promise<unknown> =>
  JSON.parse((await promisify(execFile)(python, [path(script), ...args], options)).stdout);

/** What a client gets from a gateway with this target, and from the recording of it. */
async function twice(
  target: object,
  use: (url: string) => Promise<unknown>,
  stop: () => Promise<void>,
): Promise<[recorded: unknown, replayed: unknown]> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  let recorded: unknown;
  try {
    const config = { mcp: { port: 3000, targets: [target] } } as GatewayConfig;
    await using gateway = await testGateway(config, { record: file });
    recorded = await use(`${gateway.url}/mcp`);
  } finally {
    await stop();
  }
  await using replay = await replayCassette(file);
  const replayed = await use(`${replay.url}/mcp`);
  expect(replay.unmatched).toEqual([]);
  return [recorded, replayed];
}

test.each(['legacy', 'auto'])(
  'the Python client in mode %s gets the same from a recording of server-everything',
  async (mode) => {
    const stdio = { cmd: process.execPath, args: [program, 'stdio'] };
    const [recorded, replayed] = await twice(
      { name: 'everything', stdio },
      (url) => run('everything.py', url, mode),
      async () => undefined,
    );
    expect(recorded).toMatchObject({ asked: ['elicitation', 'sampling'], progress: 2 });
    expect(replayed).toEqual(recorded);
  },
);

describe.each(['mcp', 'fastmcp'])('the Python client of %s', (library) => {
  test.each(['legacy', 'auto'])('in mode %s gets the same from a recording of the fixture', async (mode) => {
    const target = await everythingHttp('everything', 'both');
    const [recorded, replayed] = await twice(
      target.config,
      (url) => run('client.py', library, url, mode),
      target.stop,
    );
    expect(recorded).toMatchObject({ call: 'plain text from the fixture', cancelled: true });
    expect(replayed).toEqual(recorded);
  });
});
