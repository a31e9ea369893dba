import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, type McpSession, openSession } from '../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, reply } from '../../kit/mcp-upstream.ts';
import { until } from '../../kit/until.ts';

const backend = { prefixMode: 'never' };
const target = (up: McpUpstream, name: string) => ({ name, mcp: { host: up.url } });
const lists = (up: McpUpstream): number => up.of('tools/list').length;
const call = async (session: McpSession, name: string): Promise<string> => {
  const { result, error } = await session.request('tools/call', { name });
  return result === undefined ? error.message : result.content[0].text;
};

/** An HTTP target whose tools can be changed. */
async function changing(name: string, ...tools: string[]) {
  const own = { tools, isFailing: false };
  const up = await mcpUpstream({
    name,
    capabilities: { tools: { listChanged: true } },
    script: ({ message }, response: ServerResponse) => {
      if (message?.method !== 'tools/list') return false;
      const items = own.tools.map((tool) => ({ name: tool, inputSchema: { type: 'object' } }));
      reply(response, message, own.isFailing ? { error: { code: -32603, message: 'no' } } : { tools: items });
      return true;
    },
  });
  return Object.assign(own, { up, [Symbol.asyncDispose]: () => up[Symbol.asyncDispose]() });
}

describe('the name cache of several targets without a prefix', () => {
  test('unprefixed names are listed once for many calls, including concurrent ones', async () => {
    await using one = await changing('one', 'a');
    await using two = await changing('two', 'b');
    await using gate = await gateway(mcpConfig([target(one.up, 'one'), target(two.up, 'two')], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    const answers = await Promise.all(['a', 'b', 'a', 'b'].map((name) => call(session, name)));
    expect(answers).toEqual(['one says a', 'two says b', 'one says a', 'two says b']);
    for (const name of ['a', 'b', 'a']) await call(session, name);
    expect([lists(one.up), lists(two.up)]).toEqual([1, 1]);
  });

  test('unprefixed names are learned from the list that the client requested', async () => {
    await using one = await changing('one', 'a');
    await using two = await changing('two', 'b');
    await using gate = await gateway(mcpConfig([target(one.up, 'one'), target(two.up, 'two')], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/list');
    expect(await call(session, 'b')).toBe('two says b');
    expect([lists(one.up), lists(two.up)]).toEqual([1, 1]);
  });

  test('after a list_changed notification only the target that sent it is listed again', async () => {
    await using one = await changing('one', 'a', 'moving');
    await using two = await changing('two', 'b');
    await using gate = await gateway(mcpConfig([target(one.up, 'one'), target(two.up, 'two')], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    await until(() => one.up.streams.length === 1);
    expect(await call(session, 'moving')).toBe('one says moving');
    one.tools = ['a', 'new'];
    one.up.streams[0]?.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    expect(await call(session, 'new')).toBe('one says new');
    expect([lists(one.up), lists(two.up)]).toEqual([2, 1]);
    expect(await call(session, 'moving')).toBe('Unknown tool: moving');
  });

  test('unknown unprefixed names cause one new listing, not one per call', async () => {
    await using one = await changing('one', 'a');
    await using two = await changing('two', 'b');
    await using gate = await gateway(mcpConfig([target(one.up, 'one'), target(two.up, 'two')], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    await call(session, 'a');
    // The target did not say so.
    two.tools = ['b', 'added'];
    expect(await call(session, 'added')).toBe('two says added');
    const unknown = Array.from({ length: 20 }, (_, n) => call(session, `unknown-${n}`));
    expect(new Set((await Promise.all(unknown)).map((text) => text.slice(0, 21)))).toEqual(
      new Set(['Unknown tool: unknown']),
    );
    expect([lists(one.up), lists(two.up)]).toEqual([2, 2]);
  });

  test('an unknown unprefixed name causes a new listing when the last one is old enough', async () => {
    await using one = await changing('one', 'a');
    await using two = await changing('two', 'b');
    const targets = [target(one.up, 'one'), target(two.up, 'two')];
    await using gate = await gateway(mcpConfig(targets, { backend }), { limits: { relistInterval: -1 } });
    const session = await openSession(`${gate.url}/mcp`);
    await call(session, 'a');
    for (const count of [2, 3]) {
      await call(session, 'unknown');
      expect([lists(one.up), lists(two.up)]).toEqual([count, count]);
    }
  });

  test('a target that cannot list at the moment is not listed again with every call', async () => {
    await using one = await changing('one', 'a');
    await using two = await changing('two', 'b');
    two.isFailing = true;
    await using gate = await gateway(mcpConfig([target(one.up, 'one'), target(two.up, 'two')], { backend }));
    const session = await openSession(`${gate.url}/mcp`);
    for (let turn = 0; turn < 5; turn += 1) expect(await call(session, 'a')).toBe('one says a');
    expect([lists(one.up), lists(two.up)]).toEqual([1, 1]);
  });

  test('a target that could not list is listed again for an unknown name after a while', async () => {
    await using one = await changing('one', 'a');
    await using two = await changing('two', 'b');
    two.isFailing = true;
    const targets = [target(one.up, 'one'), target(two.up, 'two')];
    await using gate = await gateway(mcpConfig(targets, { backend }), { limits: { relistInterval: -1 } });
    const session = await openSession(`${gate.url}/mcp`);
    expect(await call(session, 'a')).toBe('one says a');
    two.isFailing = false;
    expect(await call(session, 'b')).toBe('two says b');
  });

  // aspire#14494: the notification came with every list, and each client listed again.
  test.each(['before', 'after', 'before and after'])(
    'a target that sends list_changed %s each list is called by its unprefixed names without a list for each call',
    async (when) => {
      const changed =
        'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n';
      await using one = await mcpUpstream({
        name: 'one',
        capabilities: { tools: { listChanged: true } },
        script: ({ message }, response) => {
          if (message?.method !== 'tools/list') return false;
          const result = { tools: [{ name: 'a', inputSchema: {} }] };
          const answer = `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: message.id, result })}\n\n`;
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          if (when.startsWith('before')) response.write(changed);
          response.write(answer);
          response.end(when.endsWith('after') ? changed : '');
          return true;
        },
      });
      await using two = await changing('two', 'b');
      await using gate = await gateway(mcpConfig([target(one, 'one'), target(two.up, 'two')], { backend }));
      const session = await openSession(`${gate.url}/mcp`);
      await session.request('tools/list');
      for (let turn = 0; turn < 20; turn += 1) expect(await call(session, 'a')).toBe('one says a');
      // The first notification may be about a change of its own; two lists in a row say otherwise.
      expect(lists(one)).toBeLessThanOrEqual(4);
      expect(lists(two.up)).toBe(1);
    },
  );

  test('unprefixed names of a restarted child process are listed again', async () => {
    await using gate = await gateway(
      mcpConfig([chaos('a', '--tools=die,received'), chaos('b', '--tools=other')], { backend }),
    );
    const session = await openSession(`${gate.url}/mcp`);
    await call(session, 'die');
    await until(async () => (await session.request('tools/call', { name: 'received' })).result !== undefined);
    const { result } = await session.request('tools/call', { name: 'received' });
    const methods = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line).method);
    expect(methods.filter((method: Json) => method === 'tools/list')).toHaveLength(1);
  });
});
