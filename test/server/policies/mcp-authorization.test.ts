import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { type McpSession, openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { routesConfig } from '../../kit/routes.ts';

/** Runs a function in a session under these rules. */
async function inSession(
  rules: unknown[],
  targets: readonly object[],
  run: (session: McpSession) => Promise<void>,
  { policies, headers }: { policies?: object; headers?: Record<string, string> } = {},
): Promise<void> {
  const route = { policies: { mcpAuthorization: { rules }, ...policies } };
  await using gate = await gateway(mcpConfig(targets, { route }));
  const session = await openSession(`${gate.url}/mcp`, headers);
  await run(session);
  await session.end();
}

const one = [
  chaos('one', '--tools=read,write,received', '--prompts=greet,curse', '--resources=file:///a,file:///b'),
];
const two = [chaos('one', '--tools=read,write'), chaos('two', '--tools=read,write,received')];

const names = async (session: McpSession, method: string, member: string, key = 'name'): Promise<string[]> =>
  ((await session.request(method)).result[member] as Record<string, string>[]).map((item) => item[key] ?? '');
const tools = (session: McpSession): Promise<string[]> => names(session, 'tools/list', 'tools');
const call = (session: McpSession, name: string) => session.request('tools/call', { name, arguments: {} });
const unknown = (what: string) => ({ code: -32602, message: `Unknown ${what}` });

/** Tool calls as the child received them. */
async function callsReceived(session: McpSession, name: string): Promise<string[]> {
  const lines = JSON.parse((await call(session, name)).result.content[0].text) as string[];
  return lines
    .map((line) => JSON.parse(line))
    .filter(({ method }) => method === 'tools/call')
    .map(({ params }) => params.name);
}

describe('mcpAuthorization with one target', () => {
  test('mcpAuthorization lists only allowed tools, and other tools are unknown when called', () =>
    inSession(['mcp.tool.name == "read"', 'mcp.tool.name == "received"'], one, async (session) => {
      expect(await tools(session)).toEqual(['read', 'received']);
      expect((await call(session, 'read')).result.content[0].text).toBe('one read');
      for (const name of ['write', 'READ', 'read ', 'rea\u0301d', 'nothing'])
        expect((await call(session, name)).error).toMatchObject(unknown(`tool: ${name}`));
      expect(await callsReceived(session, 'received')).toEqual(['read', 'received']);
    }));

  test('mcpAuthorization answers the same for a forbidden tool as for one that does not exist', () =>
    inSession(['mcp.tool.name == "read"'], one, async (session) => {
      const { error: forbidden } = await call(session, 'write');
      const { error: missing } = await call(session, 'wrong');
      expect(JSON.stringify(forbidden).replace('write', 'wrong')).toBe(JSON.stringify(missing));
    }));

  test('mcpAuthorization tool rules fail for prompts and resources and hide them', () =>
    inSession(['mcp.tool.name == "read"'], one, async (session) => {
      expect(await names(session, 'prompts/list', 'prompts')).toEqual([]);
      expect(await names(session, 'resources/list', 'resources', 'uri')).toEqual([]);
      expect((await session.request('prompts/get', { name: 'greet' })).error).toMatchObject(
        unknown('prompt: greet'),
      );
      expect((await session.request('resources/read', { uri: 'file:///a' })).error).toMatchObject(
        unknown('resource: file:///a'),
      );
    }));

  test('mcpAuthorization decides on prompts, resources and templates by their own rules', () =>
    inSession(
      ['mcp.prompt.name == "greet"', 'mcp.resource.name.startsWith("file:///a")'],
      one,
      async (session) => {
        expect(await tools(session)).toEqual([]);
        expect(await names(session, 'prompts/list', 'prompts')).toEqual(['greet']);
        expect(await names(session, 'resources/list', 'resources', 'uri')).toEqual(['file:///a']);
        expect(await names(session, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')).toEqual([
          'file:///a/{id}',
        ]);
        expect((await session.request('prompts/get', { name: 'greet' })).result.messages).toHaveLength(1);
        expect((await session.request('resources/read', { uri: 'file:///a' })).result.contents).toHaveLength(
          1,
        );
        expect((await session.request('resources/subscribe', { uri: 'file:///b' })).error).toMatchObject(
          unknown('resource: file:///b'),
        );
        const complete = (ref: object) =>
          session.request('completion/complete', { ref, argument: { name: 'a', value: 'b' } });
        expect((await complete({ type: 'ref/prompt', name: 'greet' })).result).toBeDefined();
        expect((await complete({ type: 'ref/prompt', name: 'curse' })).error).toMatchObject(
          unknown('prompt: curse'),
        );
        expect((await complete({ type: 'ref/resource', uri: 'file:///b/{id}' })).error?.code).toBe(-32602);
      },
    ));
});

describe('mcpAuthorization with several targets', () => {
  test('mcpAuthorization rules read the target and the tool name without prefix', () =>
    inSession(
      ['mcp.tool.target == "two"', 'mcp.tool.name == "read" && mcp.tool.target == "one"'],
      two,
      async (session) => {
        expect(await tools(session)).toEqual(['one_read', 'two_read', 'two_write', 'two_received']);
        expect((await call(session, 'one_read')).result.content[0].text).toBe('one read');
        for (const name of ['one_write', 'ONE_read', 'one__read', 'read', 'two_'])
          expect((await call(session, name)).error?.code ?? 'called', name).toBe(
            name === 'two_' ? 'called' : -32602,
          );
        expect((await call(session, 'one_write')).error).toMatchObject(unknown('tool: one_write'));
      },
    ));

  test('mcpAuthorization checks names at their target with prefixMode never', async () => {
    const route = { policies: { mcpAuthorization: { rules: ['mcp.tool.target == "two"'] } } };
    const targets = [chaos('one', '--tools=read'), chaos('two', '--tools=write')];
    await using gate = await gateway(mcpConfig(targets, { route, backend: { prefixMode: 'never' } }));
    const session = await openSession(`${gate.url}/mcp`);
    expect(await tools(session)).toEqual(['write']);
    expect((await call(session, 'write')).result.content[0].text).toBe('two write');
    expect((await call(session, 'read')).error).toMatchObject(unknown('tool: read'));
    await session.end();
  });
});

const DENY_WRITE = 'has(mcp.tool) && mcp.tool.name == "write"';

describe('mcpAuthorization rules', () => {
  test('mcpAuthorization allows an item when one rule is true, even if another fails', () =>
    inSession(['1 / 0 == 1', 'jwt.sub == "ada"', 'mcp.tool.name == "read"'], one, async (session) => {
      expect(await tools(session)).toEqual(['read']);
    }));

  test.each([
    ['the route', { deny: DENY_WRITE }, 'true'],
    ['the backend', 'true', { deny: DENY_WRITE }],
  ])('a deny rule of %s denies whatever the other one allows', async (_, ofRoute, ofBackend) => {
    const policies = (rule: unknown) => ({ policies: { mcpAuthorization: { rules: [rule] } } });
    await using gate = await gateway(
      routesConfig([{ ...policies(ofRoute), backends: [{ mcp: { targets: one }, ...policies(ofBackend) }] }]),
    );
    const session = await openSession(`${gate.url}/mcp`);
    expect(await tools(session)).toEqual(['read', 'received']);
    expect((await call(session, 'write')).error).toMatchObject(unknown('tool: write'));
    await session.end();
  });

  test('mcpAuthorization deny rules override allow rules', () =>
    inSession(['true', { deny: 'mcp.tool.name == "write"' }], one, async (session) => {
      // The deny rule fails for prompts, and a failing deny rule denies.
      expect(await tools(session)).toEqual(['read', 'received']);
      expect(await names(session, 'prompts/list', 'prompts')).toEqual([]);
    }));

  test('mcpAuthorization deny rules on tools that begin with has(mcp.tool) let prompts and resources pass', () =>
    inSession([{ deny: 'has(mcp.tool) && mcp.tool.name == "write"' }], one, async (session) => {
      expect(await tools(session)).toEqual(['read', 'received']);
      expect(await names(session, 'prompts/list', 'prompts')).toEqual(['greet', 'curse']);
    }));

  test('mcpAuthorization require rules must hold for every item', () =>
    inSession(
      [{ require: 'request.headers["x-team"] == "a"' }],
      one,
      async (session) => {
        expect(await tools(session)).toEqual(['read', 'write', 'received']);
      },
      { headers: { 'x-team': 'a' } },
    ));

  test('mcpAuthorization rules on claims show nothing to a caller without a token', () =>
    inSession(['"reader" in jwt.realm_access.roles'], one, async (session) => {
      expect(await tools(session)).toEqual([]);
      expect((await call(session, 'read')).error).toMatchObject(unknown('tool: read'));
    }));

  test("mcpAuthorization rules read mcp.methodName and the caller's API key", () =>
    inSession(
      ['apiKey.role == "admin"', 'mcp.methodName == "tools/list"'],
      one,
      async (session) => {
        expect(await tools(session)).toEqual(['read', 'write', 'received']);
        expect((await call(session, 'write')).error).toMatchObject(unknown('tool: write'));
      },
      {
        policies: { apiKey: { mode: 'strict', keys: [{ key: 'k', metadata: { role: 'user' } }] } },
        headers: { authorization: 'Bearer k' },
      },
    ));
});

describe('mcpAuthorization expressions without a boolean result', () => {
  test.each([
    'default("true", 1)',
    'json("1")',
    'json("null")',
    'json("[true]")',
    '1 / 0 == 1',
    'jwt.sub == "a"',
    'request.headers["x-not-there"]',
  ])('mcpAuthorization allows nothing when %s is a rule of any keyword', async (rule) => {
    await using up = await mcpUpstream();
    const positions = [
      [rule],
      [{ allow: rule }],
      [{ require: rule }],
      [{ deny: rule }],
      ['true', { require: rule }],
      ['true', { deny: rule }],
    ];
    const routes = [...positions, ['true']].map((rules, index) => ({
      matches: [{ path: { exact: `/${index}` } }],
      policies: { mcpAuthorization: { rules } },
      backends: [{ mcp: { targets: [{ name: 'up', mcp: { host: up.url } }] } }],
    }));
    await using gate = await gateway(routesConfig(routes));
    const allowed = await openSession(`${gate.url}/${positions.length}`);
    const [tool = ''] = await tools(allowed);
    expect((await call(allowed, tool)).result).toBeDefined();
    for (const [index, rules] of positions.entries()) {
      const session = await openSession(`${gate.url}/${index}`);
      expect([rules, await tools(session)]).toEqual([rules, []]);
      expect((await call(session, tool)).error).toMatchObject(unknown(`tool: ${tool}`));
    }
    expect(up.of('tools/call')).toHaveLength(1);
  });
});
