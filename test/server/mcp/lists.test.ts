import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, openSession } from '../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../kit/mcp-upstream.ts';

const names = (result: Json): string[] => result.tools.map((tool: Json) => tool.name);

describe('merged lists', () => {
  test('merged lists include every page of every target', async () => {
    await using gate = await gateway(
      mcpConfig([chaos('a', '--tools=x,y', '--pages=3'), chaos('b', '--tools=z')]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/list');
    expect(names(result)).toEqual(['a_x', 'a_y', 'a_x-2', 'a_y-2', 'a_x-3', 'a_y-3', 'b_z']);
    expect(result.nextCursor).toBeUndefined();
  });

  test('list pages of a single target are forwarded unchanged', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--tools=x', '--pages=2')]));
    const session = await openSession(`${gate.url}/mcp`);
    const first = (await session.request('tools/list')).result;
    expect([names(first), first.nextCursor]).toEqual([['x'], '2']);
    const second = (await session.request('tools/list', { cursor: '2' })).result;
    expect([names(second), second.nextCursor]).toEqual([['x-2'], undefined]);
  });

  test('merged lists stop after 64 pages of a target with a warning', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--tools=x', '--endless'), chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/list');
    expect(names(result)).toHaveLength(65);
    expect(gate.log.join('')).toContain('target has more than 64 pages; the rest is omitted\ttarget="a"');
  });

  test('merged lists stop when a target repeats a cursor', async () => {
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        reply(response, message, { tools: [{ name: 't', inputSchema: {} }], nextCursor: 'again' });
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }, chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/list');
    expect(up.of('tools/list').map(({ message }) => message.params?.cursor)).toEqual([undefined, 'again']);
  });

  test('merged lists keep the bytes of all other members of an item', async () => {
    const tool =
      '{"description":"\\u00e9 1.0","name":"t","annotations":{"x":1.0,"n":12345678901234567890},"inputSchema":{"type":"object"}}';
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        response.setHeader('content-type', 'application/json');
        response.end(
          `{"jsonrpc":"2.0","id":${message.id},"result":{"x":0,"tools":[ ${tool} , {"no":"name"}, 7 ]}}`,
        );
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }, chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { text, result } = await session.request('tools/list');
    expect(text).toContain(tool.replace('"name":"t"', '"name":"up_t"'));
    expect(names(result)).toEqual(['up_t', 'b_echo']);
  });

  test("merged tool lists give the URI of a tool's app resource in the form that the client can read", async () => {
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        const _meta = {
          ui: { resourceUri: 'ui://panel' },
          'ui/resourceUri': 'ui://panel',
          other: 'ui://panel',
        };
        reply(response, message, { tools: [{ name: 't', inputSchema: {}, _meta }] });
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }, chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/list');
    expect(result.tools[0]._meta).toEqual({
      ui: { resourceUri: 'ui://up+panel' },
      'ui/resourceUri': 'ui://up+panel',
      other: 'ui://panel',
    });
  });

  test('a merged list of thirty thousand tools is complete', async () => {
    const tools = Array.from({ length: 30_000 }, (_, index) => ({ name: `t${index}`, inputSchema: {} }));
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        reply(response, message, { tools });
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }, chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/list');
    expect(result.tools).toHaveLength(30_001);
    expect(result.tools[29_999].name).toBe('up_t29999');
  });
});
