import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { replayCassette, testGateway } from '../../src/library/testing/index.ts';
import { ERA_CLIENTS, type EraClient } from '../kit/era-clients.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/until.ts';

// `@modelcontextprotocol/server-everything` behind a gateway, recorded, stopped, and replayed.

const program = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);
const WATCHED = 'demo://resource/dynamic/text/1';

async function reportOf(client: EraClient): Promise<object> {
  const progress: number[] = [];
  const onprogress = (step: { progress: number; total?: number }): void => {
    if (step.total !== undefined) progress.push(step.progress);
  };
  // The server asks for the roots of a client with a session some time after its first message, and adds a tool then.
  if (client.revision === '2025-11-25') await until(() => client.asked.includes('roots/list'));
  const report = {
    tools: await client.tools(),
    echo: await client.call('echo', { message: 'hello' }),
    sum: await client.call('get-sum', { a: 1, b: 2 }),
    image: await client.call('get-tiny-image'),
    structured: await client.call('get-structured-content', { location: 'Chicago' }),
    invalid: await client.call('get-sum', { a: 'x' }),
    resource: await client.read(WATCHED),
    prompt: await client.prompt('args-prompt', { city: 'Bonn' }),
    completion: await client.complete('completable-prompt', 'department', 'S'),
    long: await client.call('trigger-long-running-operation', { duration: 0.2, steps: 2 }, { onprogress }),
    elicitation: await client.call('trigger-elicitation-request'),
    sampling: await client.call('trigger-sampling-request', { prompt: 'Say it' }),
  };
  await client.watch(WATCHED);
  await client.call('toggle-subscriber-updates');
  await until(() => client.changes.includes(`notifications/resources/updated ${WATCHED}`));
  const asked = client.asked.filter((method) => method !== 'roots/list');
  // While a request for roots is answered, only the latest progress is kept.
  return { ...report, asked, progress: progress.at(-1) };
}

test.each(ERA_CLIENTS)(
  '$client gets the same from a recording of server-everything, without the server',
  async ({ connect }) => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const stdio = { cmd: process.execPath, args: [program, 'stdio'] };
    const config = { mcp: { port: 3000, targets: [{ name: 'everything', stdio }] } } as GatewayConfig;
    let recorded: object;
    {
      await using gateway = await testGateway(config, { record: file });
      await using client = await connect(`${gateway.url}/mcp`);
      recorded = await reportOf(client);
    }
    expect(recorded).toMatchObject({ echo: 'Echo: hello', completion: ['Sales', 'Support'] });
    await using replay = await replayCassette(file);
    await using client = await connect(`${replay.url}/mcp`);
    expect(await reportOf(client)).toEqual(recorded);
    expect(replay.unmatched).toEqual([]);
  },
);
