import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, openSession } from '../../../kit/mcp.ts';
import { mcpUpstream, reply } from '../../../kit/mcp-upstream.ts';

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

  // IBM/mcp-context-forge#6634
  test('merged lists have no cursor, so any is an error', async () => {
    const targets = [chaos('a', '--tools=x'), chaos('b')];
    for (const backend of [{}, { toolSearch: {} }]) {
      await using gate = await gateway(mcpConfig(targets, { backend }));
      const session = await openSession(`${gate.url}/mcp`);
      for (const list of ['tools', 'prompts', 'resources', 'resources/templates']) {
        const { error } = await session.request(`${list}/list`, { cursor: 'bogus' });
        expect([list, error.code, error.message]).toEqual([
          list,
          -32602,
          expect.stringContaining('invalid cursor'),
        ]);
        expect((await session.request(`${list}/list`, { cursor: '' })).error).toBeUndefined();
      }
    }
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

describe('cursors of lists', () => {
  const tool = (name: string) => ({ name, inputSchema: {} });
  const HUGE = 'x'.repeat(LIMITS.cursorLength);

  /** A target whose pages are found by the cursor as JSON, `''` for none. Without an entry, the cursor is refused. */
  const paged = (pages: Record<string, object>) =>
    mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        const page = pages[JSON.stringify(message.params?.cursor) ?? ''] ?? pages['any'];
        reply(response, message, page ?? { error: { code: -32602, message: 'Invalid cursor' } });
        return true;
      },
    });

  // java-sdk#575, java-sdk#628, csharp-sdk#1072: "" on the last page. codebase-memory-mcp#1247: always the same cursor.
  test.each<[string, Record<string, object>, string[]]>([
    ['"", which the server ignores', { any: { tools: [tool('a')], nextCursor: '' } }, ['a']],
    ['"", which the server refuses', { '': { tools: [tool('a')], nextCursor: '' } }, ['a']],
    [
      '"", which is the cursor of a page',
      { '': { tools: [tool('a')], nextCursor: '' }, '""': { tools: [tool('b')] } },
      ['a', 'b'],
    ],
    ['that never changes', { any: { tools: [tool('a'), tool('b')], nextCursor: '8' } }, ['a', 'b']],
    [
      'of an earlier page',
      {
        '': { tools: [tool('a')], nextCursor: '1' },
        '"1"': { tools: [tool('b')], nextCursor: '2' },
        '"2"': { tools: [tool('c')], nextCursor: '1' },
      },
      ['a', 'b', 'c'],
    ],
    [
      'of a page with a tool of the page before',
      { '': { tools: [tool('a'), tool('b')], nextCursor: '1' }, '"1"': { tools: [tool('b'), tool('c')] } },
      ['a', 'b', 'c'],
    ],
    [
      'of a page without tools before another',
      {
        '': { tools: [tool('a')], nextCursor: '1' },
        '"1"': { tools: [], nextCursor: '2' },
        '"2"': { tools: [tool('b')] },
      },
      ['a', 'b'],
    ],
    ['null', { '': { tools: [tool('a')], nextCursor: null } }, ['a']],
    ['false', { '': { tools: [tool('a')], nextCursor: false } }, ['a']],
    ['an object', { '': { tools: [tool('a')], nextCursor: { page: 2 } } }, ['a']],
    ['a list', { '': { tools: [tool('a')], nextCursor: [] } }, ['a']],
    [
      'a number',
      {
        '': { tools: [tool('a')], nextCursor: 2 },
        '2': { tools: [tool('b')], nextCursor: 0 },
        '0': { tools: [] },
      },
      ['a', 'b'],
    ],
    ['a number, which the server refuses', { '': { tools: [tool('a')], nextCursor: -1 } }, ['a']],
    ['of a huge length', { '': { tools: [tool('a')], nextCursor: HUGE } }, ['a']],
    ['of a page that lists a tool twice', { '': { tools: [tool('a'), tool('a')] } }, ['a']],
  ])('a merged list has each tool of a target once whose cursor is %s', async (_, pages, expected) => {
    await using up = await paged(pages);
    const targets = [{ name: 'up', mcp: { host: up.url } }, chaos('b', '--tools=other')];
    await using gate = await gateway(mcpConfig(targets));
    const { result } = await (await openSession(`${gate.url}/mcp`)).request('tools/list');
    expect(names(result)).toEqual([...expected.map((name) => `up_${name}`), 'b_other']);
    await using bare = await gateway(mcpConfig(targets, { backend: { prefixMode: 'never' } }));
    const session = await openSession(`${bare.url}/mcp`);
    expect(names((await session.request('tools/list')).result)).toEqual([...expected, 'other']);
    for (const name of expected)
      expect((await session.request('tools/call', { name })).result.content[0].text).toBe(`up says ${name}`);
  });

  // DeusData/codebase-memory-mcp#1247. The official SDKs refuse a list whose cursor is not a text.
  test.each<[unknown, unknown[], (string | undefined)[]]>([
    ['8', [undefined, '8'], ['8', undefined]],
    ['', [undefined, ''], ['', undefined]],
    [8, [undefined, 8], ['agctl:8', undefined]],
    ['agctl:8', [undefined, 'agctl:8'], ['agctl:"agctl:8"', undefined]],
    [{ page: 2 }, [undefined], [undefined]],
    [false, [undefined], [undefined]],
  ])('pages of a single target whose every cursor is %j end', async (nextCursor, sent, got) => {
    await using up = await mcpUpstream({
      capabilities: { tools: {}, resources: {} },
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list' && message?.method !== 'resources/list') return false;
        reply(response, message, { tools: [tool('a')], resources: [], nextCursor });
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`);
    for (const list of ['tools/list', 'resources/list']) {
      const cursors: unknown[] = [];
      do {
        const params = cursors.length === 0 ? undefined : { cursor: cursors.at(-1) };
        cursors.push((await session.request(list, params)).result.nextCursor);
      } while (cursors.at(-1) !== undefined && cursors.length < 5);
      expect([list, cursors]).toEqual([list, got]);
      expect(up.of(list).map(({ message }) => message.params?.cursor)).toEqual(sent);
    }
  });

  test('a merged list ends when every page of a target repeats the first, though each has another cursor', async () => {
    let page = 0;
    await using up = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'tools/list') return false;
        page += 1;
        reply(response, message, { tools: [tool('a')], nextCursor: `${page}` });
        return true;
      },
    });
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }, chaos('b')]));
    const session = await openSession(`${gate.url}/mcp`);
    expect(names((await session.request('tools/list')).result)).toEqual(['up_a', 'b_echo']);
    expect(up.of('tools/list')).toHaveLength(2);
  });
});
