import { describe, expect, test } from 'vitest';
import { type Connect, ERAS } from '../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import type { Json } from '../../kit/mcp.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';

const GIT = chaos('git', '--tools=list_reviews,merge,pid', '--prompts=review', '--resources=git://1');
const FILES = chaos('files', '--tools=read,write', '--prompts=ask', '--resources=file:///1');

const REVIEWS = {
  name: 'reviews',
  tools: ['git_*review*', 'files_read'],
  instructions: 'Review only.',
  descriptions: { files_read: 'Reads a file of the change.' },
};

async function started(
  bundles: object[],
  more: { route?: object; backend?: object; targets?: object[] } = {},
) {
  const { route, backend, targets = [GIT, FILES] } = more;
  const matches = [{ path: { pathPrefix: '/mcp' } }];
  const gate = await gateway(
    mcpConfig(targets, { route: { matches, ...route }, backend: { bundles, ...backend } }),
  );
  return { gate, at: (path: string) => `${gate.url}${path}`, [Symbol.asyncDispose]: () => gate.close() };
}

type Caller = Awaited<ReturnType<Connect>>;

const listed = async (caller: Caller, kind = 'tools', key = 'name'): Promise<string[]> =>
  (await caller.ask(`${kind}/list`)).result[kind].map((item: Json) => item[key]);

describe.each(ERAS)('bundles for a caller of revision %s', (_revision, connect) => {
  test('a bundle has its tools only, with its descriptions, under its own path', async () => {
    await using own = await started([REVIEWS]);
    const bundle = await connect(own.at('/mcp/reviews'));
    const { result } = await bundle.ask('tools/list');
    expect(result.tools.map(({ name, description }: Json) => [name, description])).toEqual([
      ['git_list_reviews', undefined],
      ['files_read', 'Reads a file of the change.'],
    ]);
    expect((await bundle.call('files_read')).error).toBeUndefined();
    expect((await bundle.call('files_write')).error.message).toBe('Unknown tool: files_write');
    const all = await connect(own.at('/mcp'));
    expect(await listed(all)).toHaveLength(5);
    expect((await all.call('files_write')).error).toBeUndefined();
  });

  test.each([
    [
      'with toolSearch',
      { toolSearch: { pinned: ['git_pid', 'git_dip', 'files_*'] } },
      ['toolSearch.pinned: git_dip'],
    ],
    ['without it', {}, []],
  ])(
    'the log names entries that match no tool, once all targets have listed theirs, %s',
    async (_how, backend, more) => {
      const bundles = [
        { ...REVIEWS, tools: ['git_*review*', 'files_raed'] },
        { name: 'b', targets: ['git'], tools: ['files_read'] },
      ];
      const none = { name: 'none', mcp: { host: 'http://127.0.0.1:1/mcp' } };
      await using own = await started(bundles, { backend });
      const caller = await connect(own.at('/mcp'));
      const read = () =>
        'toolSearch' in backend ? caller.call('search_tools', { query: 'read' }) : caller.ask('tools/list');
      const logged = (log: readonly string[]) => log.filter((line) => line.includes('match no tool'));
      expect(logged(own.gate.log)).toEqual([]);
      await read();
      await read();
      const names = [...more, 'tools of bundle reviews: files_raed', 'tools of bundle b: files_read'].join(
        ', ',
      );
      expect(logged(own.gate.log)).toEqual([expect.stringContaining(`names="${names}"`)]);
      await using incomplete = await started(bundles, { backend, targets: [GIT, FILES, none] });
      await (await connect(incomplete.at('/mcp'))).ask('tools/list');
      expect(logged(incomplete.gate.log)).toEqual([]);
    },
  );

  test('a trace says which bundle a request gets, and why', async () => {
    await using own = await started([{ ...REVIEWS, when: 'request.headers["authorization"] == "Bearer a"' }]);
    for (const [path, because] of [
      ['/mcp', '`when` is true'],
      ['/mcp/reviews', 'the path names it'],
    ] as const) {
      const caller = await connect(own.at(path));
      const events = await recorded(own.gate, () => caller.ask('tools/list'));
      expect(events.map(({ message }) => message).filter(({ type }) => type === 'policyEvent')).toEqual([
        { type: 'policyEvent', kind: 'mcp_bundle', details: { bundle: 'reviews', because } },
      ]);
    }
  });

  test('a bundle of one target has prompts and resources of that target only', async () => {
    await using own = await started([{ name: 'files', targets: ['files'] }]);
    const caller = await connect(own.at('/mcp/files'));
    expect(await listed(caller)).toEqual(['files_read', 'files_write']);
    expect(await listed(caller, 'prompts')).toEqual(['files_ask']);
    expect(await listed(caller, 'resources', 'uri')).toEqual(['files+file:///1']);
    expect((await caller.ask('prompts/get', { name: 'git_review' })).error.message).toContain(
      'Unknown prompt',
    );
    expect((await caller.ask('resources/read', { uri: 'git+git://1' })).error.message).toContain(
      'Unknown resource',
    );
  });

  test('a bundle that names tools only has no prompts and resources', async () => {
    await using own = await started([REVIEWS]);
    const caller = await connect(own.at('/mcp/reviews'));
    expect(await listed(caller, 'prompts')).toEqual([]);
    expect(await listed(caller, 'resources', 'uri')).toEqual([]);
    const { error } = await caller.ask('resources/read', { uri: 'files+file:///1' });
    expect(error.message).toContain('Unknown resource');
  });

  test('rules apply in a bundle too', async () => {
    const policies = { mcpAuthorization: { rules: ['mcp.tool.name == "read"'] } };
    await using own = await started([REVIEWS], { route: { policies } });
    const caller = await connect(own.at('/mcp/reviews'));
    expect(await listed(caller)).toEqual(['files_read']);
    expect((await caller.call('git_list_reviews')).error.message).toContain('Unknown tool');
  });

  test('a search finds only tools of the bundle', async () => {
    await using own = await started([REVIEWS], { backend: { toolSearch: {} } });
    const caller = await connect(own.at('/mcp/reviews'));
    expect(await listed(caller)).toEqual(['search_tools', 'call_tool']);
    const found = await caller.call('search_tools', { query: 'read write merge reviews', limit: 20 });
    const tools = JSON.parse(found.result.content[0].text);
    expect(tools.map(({ name }: Json) => name).sort()).toEqual(['files_read', 'git_list_reviews']);
    expect(JSON.stringify(tools)).toContain('Reads a file of the change.');
    const denied = await caller.call('call_tool', { name: 'files_write' });
    expect(denied.error.message).toMatch(/^Unknown tool: files_write\./);
  });

  test('a bundle is chosen by claim at the path of the route, and is closed to others', async () => {
    const keys = ['core', 'web', 'none', 'broken'].map((team) => ({
      key: `key-${team}`,
      metadata: { team },
    }));
    const bundles = [
      { name: 'core', tools: ['git_*'], when: 'apiKey.team == "core"' },
      { name: 'web', tools: ['files_*'], when: 'apiKey.team == "web"' },
      { name: 'broken', tools: ['*'], when: 'apiKey.nothing.at.all == "x"' },
    ];
    await using own = await started(bundles, { route: { policies: { apiKey: { mode: 'strict', keys } } } });
    const tools = async (path: string, team: string) => listed(await connect(own.at(path), `key-${team}`));
    expect(await tools('/mcp', 'core')).toEqual(['git_list_reviews', 'git_merge', 'git_pid']);
    expect(await tools('/mcp', 'web')).toEqual(['files_read', 'files_write']);
    expect(await tools('/mcp/web', 'web')).toEqual(['files_read', 'files_write']);
    for (const [path, team] of [
      ['/mcp/web', 'core'],
      ['/mcp/core', 'none'],
      // Without a bundle, or with an expression that fails, nobody has everything.
      ['/mcp', 'none'],
      ['/mcp', 'broken'],
      ['/mcp/broken', 'core'],
      ['/mcp/other', 'core'],
    ] as const) {
      const { message, headers } = (await connect(own.at('/mcp'), 'key-core')).request('tools/list');
      const reply = await send(own.at(path), {
        method: 'POST',
        body: JSON.stringify(message),
        headers: {
          ...headers,
          authorization: `Bearer key-${team}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
      });
      expect([path, team, reply.status]).toEqual([path, team, 404]);
    }
  });

  test('a session or caller that began outside of a bundle has only its tools at the path of the bundle', async () => {
    await using own = await started([REVIEWS]);
    const caller = await connect(own.at('/mcp'));
    const { message, headers } = caller.request('tools/call', { name: 'files_write', arguments: {} });
    const reply = await send(own.at('/mcp/reviews'), {
      method: 'POST',
      body: JSON.stringify(message),
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
    });
    expect(reply.text).toContain('Unknown tool: files_write');
  });

  test('a bundle has the tools of a single server by their own names', async () => {
    await using own = await started([{ name: 'some', tools: ['re*'] }], {
      targets: [{ ...FILES, tools: { rename: { write: 'record' } } }],
    });
    const caller = await connect(own.at('/mcp/some'));
    expect(await listed(caller)).toEqual(['read', 'record']);
    const bundled = await caller.call('record');
    expect(bundled.error).toBeUndefined();
  });

  test('one process of a shared server serves all bundles', async () => {
    const shared = { ...GIT, stdio: { ...GIT.stdio, shared: true } };
    const bundles = [
      { name: 'one', tools: ['git_pid'] },
      { name: 'two', targets: ['git'] },
    ];
    await using own = await started(bundles, { targets: [shared, FILES] });
    const pids = await Promise.all(
      ['/mcp/one', '/mcp/two', '/mcp'].map(async (path) => {
        const { result } = await (await connect(own.at(path))).call('git_pid');
        return result.content[0].text;
      }),
    );
    expect(new Set(pids).size).toBe(1);
    expect(Number(pids[0])).toBeGreaterThan(1);
  });
});

describe('instructions of a bundle', () => {
  test.each([[[GIT, FILES]], [[GIT]]])(
    'the client gets the instructions of the bundle of %j',
    async (targets) => {
      await using own = await started([REVIEWS], { targets });
      for (const [revision, connect] of ERAS) {
        const method = revision === '2025-11-25' ? 'initialize' : 'server/discover';
        const { request } = await connect(own.at('/mcp/reviews'));
        const { message, headers } = request(
          method,
          method === 'initialize'
            ? { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'a', version: '1' } }
            : {},
        );
        const { 'mcp-session-id': _id, ...others } = headers;
        const reply = await send(own.at('/mcp/reviews'), {
          method: 'POST',
          body: JSON.stringify(message),
          headers: {
            ...others,
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
          },
        });
        expect(reply.text).toContain('"instructions":"Review only."');
      }
    },
  );
});

describe('mistakes in bundles', () => {
  test.each([
    [[{ name: 'a' }], 'expected `tools`, `targets` or both'],
    [[{ name: 'mcp', tools: ['a'] }], 'neither `mcp` nor `sse`'],
    [[{ name: 'A b', tools: ['a'] }], 'expected letters, digits'],
    [
      [
        { name: 'a', tools: ['a'] },
        { name: 'a', tools: ['a'] },
      ],
      'two bundles are named `a`',
    ],
    [[{ name: 'a', targets: ['none'] }], 'no target is named `none`'],
    [[{ name: 'a', tools: ['a'], when: 'jwt..x' }], 'bundles.0.when'],
  ])('%j is refused', async (bundles, part) => {
    await expect(started(bundles)).rejects.toThrow(part);
  });
});
