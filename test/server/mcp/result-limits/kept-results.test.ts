import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, test } from 'vitest';
import { boundsInUse } from '../../../kit/bounds-in-use.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway, type TestGatewayOptions } from '../../../kit/gateway.ts';
import {
  INITIALIZE,
  type Json,
  type McpReply,
  type McpSession,
  openSession,
  post,
} from '../../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../../kit/mcp-upstream.ts';
import { modern, modernCall, modernUpstream } from '../../../kit/modern.ts';

// What a session keeps of results over `maxResultTokens`, for how long, and for whom.

const tools = { maxResultTokens: 100 };
const DROPPED = /^Unknown resource: agctl:.*: the gateway no longer keeps this result; call the tool again$/;

const start = (
  targets: object[] = [{ ...chaos('a'), tools }],
  options?: TestGatewayOptions,
  backend?: object,
) => gateway(mcpConfig(targets, { ...(backend && { backend }) }), options);

const text = (length: number, letter = 'x') => ({ content: [{ type: 'text', text: letter.repeat(length) }] });

const give = (session: McpSession, result: object): Promise<McpReply> =>
  session.request('tools/call', { name: 'give', arguments: { result } });

/** The URI of the rest of a result. */
const uriOf = ({ result }: McpReply): string =>
  /agctl:\/\/results\/\S+/.exec(JSON.stringify(result))?.[0] ?? '';

const read = async (session: McpSession, uri: string): Promise<string> => {
  const { result, error } = await session.request('resources/read', { uri });
  return error?.message ?? result.contents[0].text;
};

describe('results that a session keeps', () => {
  test('the oldest result is dropped when there are too many', async () => {
    await using gate = await start(undefined, { admin: true, limits: { keptResults: 2 } });
    const session = await openSession(`${gate.url}/mcp`);
    const uris: string[] = [];
    for (const letter of ['a', 'b', 'c']) uris.push(uriOf(await give(session, text(500, letter))));
    const [first = '', second = '', third = ''] = uris;
    expect(await read(session, first)).toMatch(DROPPED);
    expect(await read(session, second)).toMatch(/^b{100}\n/);
    expect(await read(session, third)).toMatch(/^c{100}\n/);
    expect(await boundsInUse(gate)).toMatchObject({
      'mcp.session.keptResults': 2,
      'mcp.session.keptResultBytes': 200,
      'mcp.keptResultBytes': 200,
    });
  });

  test('the oldest results are dropped when they have too many bytes, and a larger one is not kept', async () => {
    await using gate = await start(undefined, { admin: true, limits: { keptResultBytes: 1000 } });
    const session = await openSession(`${gate.url}/mcp`);
    const [first, second] = [uriOf(await give(session, text(900))), uriOf(await give(session, text(1000)))];
    expect(await read(session, first)).toMatch(DROPPED);
    expect(await read(session, second)).toContain('Part 2 of 3');
    const { result } = await give(session, text(1401));
    expect(result.content[1].text).toContain('The rest was not kept, because it is too large');
    expect(result.content).toHaveLength(2);
    expect(await read(session, second)).toContain('Part 2 of 3');
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.session.keptResultBytes': 600 });
  });

  test('the oldest result of any session is dropped when all have too many bytes, and a session that ends drops its own', async () => {
    await using gate = await start(undefined, { admin: true, limits: { allKeptResultBytes: 1000 } });
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    const first = uriOf(await give(one, text(800)));
    const second = uriOf(await give(one, text(900)));
    const third = uriOf(await give(two, text(800)));
    expect(await read(one, first)).toMatch(DROPPED);
    expect(await read(one, second)).toContain('Part 2');
    expect(await read(two, third)).toContain('Part 2');
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.keptResultBytes': 900 });
    await one.end();
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.keptResultBytes': 400 });
    await two.end();
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.keptResultBytes': 0 });
  });

  test('another session of the same caller does not find a result, and nothing subscribes to one', async () => {
    await using gate = await start([{ ...chaos('a', '--resources=file:///a'), tools }]);
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    const uri = uriOf(await give(one, text(800)));
    expect(await read(two, uri)).toMatch(DROPPED);
    const { error } = await one.request('resources/subscribe', { uri });
    expect(error.message).toMatch(/^Unknown resource/);
    expect(await read(one, uri)).toContain('Part 2');
    const { result } = await one.request('tools/call', { name: 'received' });
    expect(result.content[0].text).not.toContain('agctl:');
  });

  test('requests of one caller without sessions find a result in whichever session at the target they run', async () => {
    await using gate = await start(undefined, { admin: true });
    const url = `${gate.url}/mcp`;
    const uri = uriOf(await modernCall(url, 'give', { result: text(800) }));
    // Another description of the client needs another session at this target.
    const asking = { capabilities: { roots: {} } };
    const { result } = await modern(url, 'resources/read', { uri }, asking);
    expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    expect(result.contents[0].text).toContain('Part 2 of 2');
    expect(await boundsInUse(gate)).toMatchObject({ 'mcp.sessions': 2, 'mcp.keptResultBytes': 400 });
    const headers = { authorization: 'Bearer other' };
    const { error } = await modern(url, 'resources/read', { uri }, { headers });
    expect(error.message).toMatch(DROPPED);
  });

  test('a session that goes on after a restart of the gateway says that its results were dropped', async () => {
    const content = text(800);
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/call') return false;
        reply(response, message, content);
        return true;
      },
    });
    const targets = [{ name: 'up', mcp: { host: up.url }, tools }];
    const yaml = mcpConfig(targets, { config: { session: { key: '5e'.repeat(32) } } });
    const first = await gateway(yaml);
    const before = await openSession(`${first.url}/mcp`);
    const uri = uriOf(await give(before, {}));
    await first.close();
    await using second = await gateway(yaml);
    const headers = { 'mcp-session-id': before.id };
    const ask = (method: string, params: object): Promise<McpReply> =>
      post(`${second.url}/mcp`, { jsonrpc: '2.0', id: 1, method, params }, headers);
    expect((await ask('resources/read', { uri })).error.message).toMatch(DROPPED);
    const again = uriOf(await ask('tools/call', { name: 'say' }));
    expect((await ask('resources/read', { uri: again })).result.contents[0].text).toContain('Part 2');
  });

  test('a gateway in front of another one passes on what that one keeps', async () => {
    await using inner = await start();
    const behind = { name: 'inner', mcp: { host: `${inner.url}/mcp` }, tools: { maxResultTokens: 1000 } };
    await using outer = await start([behind]);
    const session = await openSession(`${outer.url}/mcp`);
    const uri = uriOf(await give(session, text(800)));
    expect(await read(session, uri)).toContain('Part 2 of 2');
    const { result: list } = await session.request('tools/list');
    expect(list.tools.filter(({ name }: Json) => name === 'gateway_read_result')).toHaveLength(1);
    const { result } = await session.request('tools/call', {
      name: 'gateway_read_result',
      arguments: { uri },
    });
    expect(result.content[0].text).toContain('Part 2 of 2');
  });
});

describe('clients and servers', () => {
  // Kiro drops a whole result with a link (kirodotdev/Kiro#8960); before 2025-06-18, none of the clients knows links.
  test.each(['2024-11-05', '2025-03-26'])(
    'a client of revision %s gets the URI in the text only',
    async (version) => {
      await using gate = await start();
      const params = { ...INITIALIZE.params, protocolVersion: version };
      const session = await openSession(`${gate.url}/mcp`, {}, { ...INITIALIZE, params });
      const reply = await give(session, text(800));
      expect(reply.result.content.map(({ type }: Json) => type)).toEqual(['text', 'text']);
      expect(await read(session, uriOf(reply))).toContain('Part 2 of 2');
    },
  );

  test.each([
    ['first', Client1, Transport1],
    ['second', Client2, Transport2],
  ] as const)(
    'the official client of the %s generation accepts a cut result and reads the rest',
    async (_which, Client, Transport) => {
      const rows = Array.from({ length: 300 }, (_, index) => index);
      await using up = await mcpUpstream({
        script: ({ message }, response) => {
          if (message?.method === 'tools/list') {
            const outputSchema = {
              type: 'object',
              properties: { rows: { type: 'array' } },
              required: ['rows'],
            };
            reply(response, message, {
              tools: [{ name: 'say', inputSchema: { type: 'object' }, outputSchema }],
            });
          } else if (message?.method === 'tools/call') {
            const content = [{ type: 'text', text: JSON.stringify({ rows }) }];
            reply(response, message, { content, structuredContent: { rows } });
          } else return false;
          return true;
        },
      });
      await using gate = await start([{ name: 'up', mcp: { host: up.url }, tools }]);
      const client = new Client({ name: 'client', version: '1' });
      await client.connect(new Transport(new URL(`${gate.url}/mcp`)) as never);
      await client.listTools();
      const { content, structuredContent } = (await client.callTool({ name: 'say', arguments: {} })) as Json;
      expect(structuredContent).toBeUndefined();
      const { contents } = (await client.readResource({ uri: content[2].uri })) as Json;
      expect(content[0].text + contents[0].text).toContain(JSON.stringify(rows).slice(0, 700));
      const again = await client.callTool({
        name: 'gateway_read_result',
        arguments: { uri: content[2].uri },
      });
      expect(again).toEqual({ content: [{ type: 'text', text: contents[0].text }] });
      expect((await client.listResources()).resources).toEqual([]);
      await client.close();
    },
  );

  test('the tool that reads on is behind the last page of a list, and in no list that failed', async () => {
    const pages: Record<string, object> = {
      '': { tools: [{ name: 'one', inputSchema: { type: 'object' } }], nextCursor: '2' },
      2: { tools: [{ name: 'two', inputSchema: { type: 'object' } }] },
      3: { error: { code: -32602, message: 'no such page' } },
      4: { tools: [] },
    };
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        reply(response, message, pages[message.params?.cursor ?? ''] ?? {});
        return true;
      },
    });
    await using gate = await start([{ name: 'up', mcp: { host: up.url }, tools }]);
    const session = await openSession(`${gate.url}/mcp`);
    const listed = async (params?: object): Promise<unknown> => {
      const { result, error } = await session.request('tools/list', params);
      return error ?? result.tools.map(({ name }: Json) => name);
    };
    expect(await listed()).toEqual(['one']);
    expect(await listed({ cursor: '2' })).toEqual(['two', 'gateway_read_result']);
    expect(await listed({ cursor: '3' })).toEqual({ code: -32602, message: 'no such page' });
    expect(await listed({ cursor: '4' })).toEqual([]);
  });

  test('a server of revision 2026-07-28 without resources is announced with them', async () => {
    await using up = await modernUpstream('up', ({ message }, response) => {
      if (message?.method !== 'server/discover') return false;
      const result = {
        resultType: 'complete',
        ttlMs: 0,
        cacheScope: 'private',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
      };
      reply(response, message, result);
      return true;
    });
    await using gate = await start([{ name: 'up', mcp: { host: up.url }, tools }]);
    const { result } = await modern(`${gate.url}/mcp`, 'server/discover');
    expect(result.capabilities).toEqual({ resources: {}, tools: {} });
    const { result: list } = await modern(`${gate.url}/mcp`, 'resources/list');
    expect(list).toEqual({ resultType: 'complete', ttlMs: 0, cacheScope: 'private', resources: [] });
    const uri = uriOf(await modernCall(`${gate.url}/mcp`, 'say', { message: 'y'.repeat(800) }));
    expect((await modern(`${gate.url}/mcp`, 'resources/read', { uri })).result.contents[0].text).toMatch(
      /^y+\n/,
    );
  });

  test('with statefulMode: stateless, results are cut with a text that says that the rest is lost', async () => {
    await using gate = await start(undefined, {}, { statefulMode: 'stateless' });
    const url = `${gate.url}/mcp`;
    const params = { name: 'give', arguments: { result: text(800) } };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    for (const { result } of [await post(url, message), await modernCall(url, 'give', params.arguments)])
      expect(result.content).toEqual([
        { type: 'text', text: 'x'.repeat(400) },
        {
          type: 'text',
          text: '[agctl] This result is cut: about 100 of 200 tokens are shown. The rest was not kept, because the gateway has no sessions: call the tool again with arguments that return less.',
        },
      ]);
    const { result } = await post(url, INITIALIZE);
    expect(result.capabilities).not.toHaveProperty('resources');
    const list = await post(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    expect(JSON.stringify(list.result)).not.toContain('gateway_read_result');
  });
});
