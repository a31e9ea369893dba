import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mcpConfig } from '../../kit/config.ts';
import { ERA_CLIENTS, type EraClient } from '../../kit/era-clients.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { until } from '../../kit/until.ts';

// Official clients in front of `@modelcontextprotocol/server-everything`, which is made with SDK 1: it has no revision 2026-07-28,
// and asks for the client's roots 350 ms after the handshake.

const program = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);

describe.each(ERA_CLIENTS)('server-everything over stdio: $client', ({ connect }) => {
  let gate: TestGateway;
  let client: EraClient;
  beforeAll(async () => {
    const stdio = { cmd: process.execPath, args: [program, 'stdio'] };
    gate = await gateway(mcpConfig([{ name: 'everything', stdio }]));
    client = await connect(`${gate.url}/mcp`);
  });
  afterAll(async () => {
    await client[Symbol.asyncDispose]();
    await gate.close();
  });

  test('lists and calls tools, reads resources, gets and completes prompts', async () => {
    expect(await client.tools()).toEqual(expect.arrayContaining(['echo', 'trigger-sampling-request']));
    expect(await client.call('echo', { message: 'hello' })).toBe('Echo: hello');
    expect(await client.read('demo://resource/dynamic/text/1')).toContain('Resource 1');
    expect(await client.prompt('simple-prompt')).toContain('simple prompt');
    expect(await client.complete('completable-prompt', 'department', 'S')).toEqual(['Sales', 'Support']);
  });

  test('receives progress of a call', async () => {
    const progress: number[] = [];
    // SDK 2 reports each round of input as progress without a total; the server's request for roots may cause one.
    const onprogress = (step: { progress: number; total?: number }): void => {
      if (step.total !== undefined) progress.push(step.progress);
    };
    const args = { duration: 0.2, steps: 2 };
    const done = await client.call('trigger-long-running-operation', args, { onprogress });
    expect(done).toContain('completed');
    // While a request for roots is answered, only the latest progress is kept.
    expect(progress.at(-1)).toBe(2);
  });

  test('answers elicitation and sampling', async () => {
    client.asked.length = 0;
    expect(await client.call('trigger-elicitation-request')).toContain('provided the requested information');
    expect(await client.call('trigger-sampling-request', { prompt: 'Say it' })).toContain('sampled');
    expect(client.asked.filter((method) => method !== 'roots/list')).toEqual([
      'elicitation/create',
      'sampling/createMessage',
    ]);
  });

  test('receives updates of a resource that it watches', async () => {
    const uri = 'demo://resource/dynamic/text/1';
    await client.watch(uri);
    await client.call('toggle-subscriber-updates');
    await until(() => client.changes.includes(`notifications/resources/updated ${uri}`));
  });

  test('cancels a call, and goes on with others', async () => {
    const controller = new AbortController();
    const options = { signal: controller.signal, onprogress: () => controller.abort() };
    const args = { duration: 10, steps: 100 };
    await expect(client.call('trigger-long-running-operation', args, options)).rejects.toThrow();
    expect(await client.call('echo', { message: 'still here' })).toBe('Echo: still here');
  });
});
