import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { ERA_CLIENTS, type EraClient } from '../../../../kit/era-clients.ts';
import type { Eras } from '../../../../kit/everything/http.ts';
import { everythingStdio } from '../../../../kit/everything-target.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { modern } from '../../../../kit/modern.ts';
import { until } from '../../../../kit/until.ts';

// Official clients of both eras in front of one process for all of them, made with the official server SDK.

const WATCHED = 'test://watched-resource';

/** A single process may run, so that clients which connect at the same time share it. */
function start(eras: Eras): Promise<TestGateway> {
  const { name, stdio } = everythingStdio('everything', eras).config;
  const targets = [{ name, stdio: { ...stdio, shared: true } }];
  return gateway(mcpConfig(targets, { config: { mcp: { maxChildren: 1 } } }));
}

describe.each([
  { eras: 'both', name: 'both eras' },
  { eras: 'modern', name: '2026-07-28 only' },
] as const)('a shared stdio server with $name', ({ eras }) => {
  let gate: TestGateway;
  let clients: EraClient[];
  beforeAll(async () => {
    gate = await start(eras);
    clients = await Promise.all(ERA_CLIENTS.map(({ connect }) => connect(`${gate.url}/mcp`)));
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client[Symbol.asyncDispose]()));
    await gate.close();
  });

  test(`a shared stdio server (${eras}) serves clients of both eras at the same time, each in its own revision`, async () => {
    expect(clients.map(({ revision }) => revision)).toEqual(ERA_CLIENTS.map(({ revision }) => revision));
    for (const client of clients) {
      expect(await client.tools()).toContain('test_simple_text');
      expect(await client.call('test_simple_text')).toBe('plain text from the fixture');
      expect(await client.read('test://static-text')).toBe('text of a resource');
    }
  });

  test(`progress of a shared stdio server (${eras}) reaches the client that called`, async () => {
    const progress = await Promise.all(
      clients.map(async (client) => {
        const own: number[] = [];
        await client.call('test_tool_with_progress', {}, { onprogress: (step) => own.push(step.progress) });
        return own;
      }),
    );
    expect(progress).toEqual(clients.map(() => [0, 50, 100]));
  });

  test(`changes at a shared stdio server (${eras}) reach every client that listens`, async () => {
    for (const client of clients) await client.watch(WATCHED);
    const [first] = clients as [EraClient];
    await first.call('test_trigger_tool_change');
    await first.call('test_trigger_resource_update');
    const expected = [`notifications/resources/updated ${WATCHED}`, 'notifications/tools/list_changed'];
    await until(() => clients.every(({ changes }) => expected.every((each) => changes.includes(each))));
  });

  test(`log messages of a shared stdio server (${eras}) reach no client`, async () => {
    for (const client of clients) expect(await client.call('test_tool_with_logging')).toBe('logged');
    expect(clients.flatMap(({ logged }) => logged)).toEqual([]);
  });

  test(`a cancelled call is cancelled at a shared stdio server (${eras})`, async () => {
    for (const [index, client] of clients.entries()) {
      const name = `call of ${index}`;
      const controller = new AbortController();
      const { signal } = controller;
      const onprogress = (): void => controller.abort();
      await expect(client.call('test_wait', { name }, { signal, onprogress })).rejects.toThrow();
      await until(async () => JSON.parse(await client.call('test_cancelled')).includes(name));
    }
  });
});

test('a shared stdio server with 2026-07-28 only asks each client through the results of its own calls', async () => {
  await using gate = await start('modern');
  for (const { connect } of ERA_CLIENTS) {
    await using client = await connect(`${gate.url}/mcp`);
    expect(await client.call('test_elicitation', { message: 'Who?' })).toMatch(/^accept .*ada@a\.test/);
    expect(client.asked).toEqual(['elicitation/create']);
  }
});

test('a shared stdio server with 2026-07-28 only offers no log messages', async () => {
  await using gate = await start('modern');
  const { result } = await modern(`${gate.url}/mcp`, 'server/discover');
  expect(result.capabilities).toMatchObject({ tools: { listChanged: true } });
  expect(result.capabilities).not.toHaveProperty('logging');
});
