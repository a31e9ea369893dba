import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, type McpSession, openSession } from '../../kit/mcp.ts';
import { mcpUpstream, reply, type Script } from '../../kit/mcp-upstream.ts';
import { until } from '../../kit/until.ts';

const RESOURCES = '--resources=file:///1,file:///2';

/** The requests that a target has received since it was started, without `tools/call`. */
async function receivedBy(session: McpSession, prefix = ''): Promise<Json[]> {
  const { result } = await session.request('tools/call', { name: `${prefix}received` });
  return JSON.parse(result.content[0].text)
    .map((line: string) => JSON.parse(line))
    .filter(({ id, method }: Json) => id !== undefined && method !== 'tools/call');
}

const restart = async (session: McpSession, prefix = ''): Promise<void> => {
  await session.request('tools/call', { name: `${prefix}die` });
  await until(
    async () => (await session.request('tools/call', { name: `${prefix}echo` })).result !== undefined,
  );
};

/** Answers requests with these methods with an empty result. */
const accepting =
  (...methods: string[]): Script =>
  ({ message }, response) => {
    if (!methods.includes(message?.method)) return false;
    reply(response, message, {});
    return true;
  };

describe('a restarted target', () => {
  test.each([
    ['alone', [chaos('a', RESOURCES)], ''],
    ['among several', [chaos('a', RESOURCES), chaos('b')], 'a'],
  ])('a restarted target %s gets the log level and the subscriptions again', async (_, targets, name) => {
    await using gate = await gateway(mcpConfig(targets));
    const session = await openSession(`${gate.url}/mcp`);
    const uri = (own: string): string => (name === '' ? own : `${name}+${own}`);
    const tools = name === '' ? '' : `${name}_`;
    for (const level of ['info', 'debug']) await session.request('logging/setLevel', { level });
    for (const own of ['file:///1', 'file:///2'])
      await session.request('resources/subscribe', { uri: uri(own) });
    await session.request('resources/unsubscribe', { uri: uri('file:///1') });
    await restart(session, tools);
    await until(async () => (await receivedBy(session, tools)).length >= 3);
    expect(
      (await receivedBy(session, tools)).map(({ method, params }) => [method, params.level ?? params.uri]),
    ).toEqual([
      ['initialize', undefined],
      ['logging/setLevel', 'debug'],
      ['resources/subscribe', 'file:///2'],
    ]);
  });

  test('a restarted target makes the client list again', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', RESOURCES), chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    await restart(session, 'a_');
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    await own.next(({ method }) => method === 'notifications/resources/list_changed');
    expect(own.messages.some(({ method }) => method === 'notifications/prompts/list_changed')).toBe(false);
  });

  test('a restarted HTTP target gets the log level with the headers of the call that found the restart, and no subscription that it rejected', async () => {
    await using up = await mcpUpstream({
      capabilities: { tools: {}, logging: {}, resources: { subscribe: true } },
      script: accepting('logging/setLevel'),
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`, { authorization: 'Bearer mine' });
    await session.request('logging/setLevel', { level: 'warning' });
    expect((await session.request('resources/subscribe', { uri: 'file:///1' })).error.code).toBe(-32601);
    up.sessions.clear();
    await session.request('tools/call', { name: 'say', arguments: {} });
    await until(() => up.of('logging/setLevel').length === 2);
    expect(up.of('logging/setLevel')[1]).toMatchObject({
      headers: { 'mcp-session-id': 'up-2', authorization: 'Bearer mine' },
      message: { params: { level: 'warning' } },
    });
    await session.request('tools/call', { name: 'say', arguments: {} });
    expect(up.of('resources/subscribe')).toHaveLength(1);
  });

  test('a restarted HTTP target gets the log level and the subscriptions again while the client only listens', async () => {
    const options = {
      capabilities: { tools: {}, logging: {}, resources: { subscribe: true } },
      script: accepting('logging/setLevel', 'resources/subscribe', 'resources/unsubscribe'),
    };
    const up = await mcpUpstream(options);
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    await until(() => up.streams.length === 1);
    await session.request('logging/setLevel', { level: 'debug' });
    for (const uri of ['file:///1', 'file:///2', 'file:///3'])
      await session.request('resources/subscribe', { uri });
    await session.request('resources/unsubscribe', { uri: 'file:///2' });
    await up[Symbol.asyncDispose]();
    // Its sessions have other ids: it knows none of the gateway's.
    await using restarted = await mcpUpstream({ ...options, name: 'again', port: up.port });
    await until(() => restarted.of('resources/subscribe').length === 2);
    expect(restarted.of('logging/setLevel').map(({ message }) => message.params.level)).toEqual(['debug']);
    expect(restarted.of('resources/subscribe').map(({ message }) => message.params.uri)).toEqual([
      'file:///1',
      'file:///3',
    ]);
    await until(() => restarted.streams.length === 1);
    const update = { method: 'notifications/resources/updated', params: { uri: 'file:///3' } };
    restarted.streams[0]?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...update })}\n\n`);
    await own.next(({ method }) => method === 'notifications/resources/updated');
  });
});
