import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { type Connect, ERAS } from '../../kit/both-eras.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { modernCall, modernUpstream } from '../../kit/modern.ts';

// A rule on arguments decides on what the server will read. FastMCP parses texts with JSON where a parameter is an object
// (PrefectHQ/fastmcp#341), some clients send arguments so (anthropics/claude-code#18260), and servers in Go and .NET match
// names of members without case.

const NO_ETC = { deny: 'has(mcp.tool.arguments.path) && mcp.tool.arguments.path.startsWith("/etc")' };

/** The error of a call with these arguments, given as JSON text; undefined if the server got it. */
async function called(
  rules: readonly unknown[],
  args: string,
  method = 'tools/call',
): Promise<Json | undefined> {
  await using server = await mcpUpstream({ capabilities: { tools: {}, prompts: {} } });
  const route = rules.length === 0 ? {} : { policies: { mcpAuthorization: { rules } } };
  await using gate = await gateway(mcpConfig([{ name: 'files', mcp: { host: server.url } }], { route }));
  const session = await openSession(`${gate.url}/mcp`);
  const body = `{"jsonrpc":"2.0","id":7,"method":"${method}","params":{"name":"say","arguments":${args}}}`;
  const { error } = await post(session.url, body, { 'mcp-session-id': session.id });
  expect(server.of(method)).toHaveLength(error === undefined || error.code === -32601 ? 1 : 0);
  return error;
}

const NOT_AN_OBJECT = { code: -32602, message: 'expected params.arguments to be an object' };

describe('arguments that are no object', () => {
  test.each([
    '"{\\"path\\":\\"/etc/passwd\\"}"',
    '"x"',
    '["/etc/passwd"]',
    '[{"path":"/etc"}]',
    '7',
    'true',
    'false',
    '0',
    '""',
  ])('a tool call with the arguments %s is rejected with -32602 and reaches no server', async (args) => {
    expect(await called([NO_ETC], args)).toEqual(NOT_AN_OBJECT);
    expect(await called([], args)).toEqual(NOT_AN_OBJECT);
  });

  test('a prompt with arguments that are a string is rejected with -32602', async () => {
    expect(await called([], '"x"', 'prompts/get')).toEqual(NOT_AN_OBJECT);
  });

  test('arguments that are null count as absent', async () => {
    expect(await called([NO_ETC, 'mcp.tool.arguments == {}'], 'null')).toBeUndefined();
  });

  test('arguments that are a string are rejected with several targets and over stdio', async () => {
    const targets = [chaos('one', '--tools=read'), chaos('two', '--tools=read')];
    await using gate = await gateway(mcpConfig(targets));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.request('tools/call', { name: 'one_read', arguments: '{"path":"/etc"}' });
    expect(error).toEqual(NOT_AN_OBJECT);
    await session.end();
  });

  test('arguments that are a string are rejected in revision 2026-07-28', async () => {
    await using server = await modernUpstream('files');
    await using gate = await gateway(mcpConfig([{ name: 'files', mcp: { host: server.url } }]));
    const { error } = await modernCall(`${gate.url}/mcp`, 'say', '{"path":"/etc"}' as unknown as object);
    expect(error).toEqual(NOT_AN_OBJECT);
    expect(server.of('tools/call')).toHaveLength(0);
  });
});

const DENIED = { code: -32602, message: 'the rules do not allow these arguments of say' };

describe('members of arguments with another type than a rule expects', () => {
  const UNKNOWN = { code: -32602, message: 'Unknown tool: say' };
  const NO_NESTED = {
    deny: 'has(mcp.tool.arguments.at.path) && mcp.tool.arguments.at.path.startsWith("/etc")',
  };
  const ONLY_DATA = '!has(mcp.tool.arguments.at.path) || mcp.tool.arguments.at.path.startsWith("/data")';
  const BY_DEFAULT = { deny: 'default(mcp.tool.arguments.at.path, "").startsWith("/etc")' };
  const BY_OPTIONAL = { deny: 'mcp.tool.arguments.at.?path.orValue("").startsWith("/etc")' };
  const OTHERS = ['"{\\"path\\":\\"/etc\\"}"', '7', 'true', '[{"path":"/etc"}]'];

  test.each(
    OTHERS.flatMap((value) =>
      [NO_NESTED, ONLY_DATA, BY_DEFAULT, BY_OPTIONAL].map((rule) => [value, rule] as const),
    ),
  )('a rule on a member of %s fails, so the call is rejected: %j', async (value, rule) => {
    // Only this one lets lists have the tool.
    expect(await called([rule], `{"at":${value}}`)).toMatchObject(rule === BY_DEFAULT ? DENIED : UNKNOWN);
  });

  test.each([NO_NESTED, ONLY_DATA])('has() of a member of null is an evaluation error: %j', async (rule) => {
    expect(await called([rule], '{"at":null}')).toMatchObject(UNKNOWN);
  });

  test.each([NO_NESTED, ONLY_DATA, BY_DEFAULT, BY_OPTIONAL])(
    'a rule on a member of an object that lacks it allows the call: %j',
    async (rule) => {
      expect(await called([rule], '{"at":{}}')).toBeUndefined();
    },
  );
});

describe('arguments that rules do not allow', () => {
  test.each([
    [{ deny: 'has(mcp.tool.arguments) && mcp.tool.arguments.path.startsWith("/etc")' }],
    ['!has(mcp.tool.arguments) || mcp.tool.arguments.path.startsWith("/data")'],
    [{ require: '!has(mcp.tool.arguments) || mcp.tool.arguments.path.startsWith("/data")' }],
  ])('a call of a tool that the caller sees says that its arguments are not allowed: %j', async (rule) => {
    expect(await called([rule], '{"path":"/etc/passwd"}')).toEqual(DENIED);
    expect(await called([rule], '{"path":"/data"}')).toBeUndefined();
  });

  test.each([
    [{ deny: 'mcp.tool.name == "say"' }],
    ['has(mcp.tool.arguments) && mcp.tool.arguments.path.startsWith("/data")'],
  ])('a call of a tool that the caller does not see says that it is unknown: %j', async (rule) => {
    const unknown = { code: -32602, message: 'Unknown tool: say' };
    expect(await called([rule], '{"path":"/etc/passwd"}')).toEqual(unknown);
  });
});

describe('arguments that differ only in case from those that rules read', () => {
  const refused = (name: string, expected: string): object => ({
    code: -32602,
    message: `the argument "${name}" differs from "${expected}" in case only`,
  });

  test.each(['Path', 'PATH', 'pAth'])('an argument %s is rejected where a rule reads path', async (name) => {
    expect(await called([NO_ETC], `{"${name}":"/etc/passwd"}`)).toEqual(refused(name, 'path'));
    expect(await called([NO_ETC], `{"path":"/data","${name}":"/etc/passwd"}`)).toEqual(refused(name, 'path'));
    expect(await called(['true', NO_ETC], `{"${name}":"/etc/passwd"}`)).toEqual(refused(name, 'path'));
  });

  test.each([
    ['"path" in mcp.tool.arguments', '{"path":1,"Path":2}', 'Path', 'path'],
    ['mcp.tool.arguments["task"] == 1', '{"task":1,"ta\\u017fk":2}', 'ta\u017fk', 'task'],
    ['!has(mcp.tool.arguments.file)', '{"f\\u0130le":1}', 'f\u0130le', 'file'],
    ['!has(mcp.tool.arguments.file)', '{"f\\u0131le":1}', 'f\u0131le', 'file'],
    ['mcp.tool["arguments"].?path.orValue("") != "/etc"', '{"PATH":"/etc"}', 'PATH', 'path'],
    ['default(mcp.tool.arguments.path, "") != "/etc"', '{"pATH":"/etc"}', 'pATH', 'path'],
    ['!has(mcp.tool.arguments.a.b.c)', '{"a":{"b":{"C":1}}}', 'C', 'c'],
    ['!has(mcp.tool.arguments.a.b.c)', '{"a":{"b":{},"B":{"c":1}}}', 'B', 'b'],
    ['mcp.tool.arguments.files.all(f, !has(f.path))', '{"files":[{},{"Path":1}]}', 'Path', 'path'],
    ['!has(mcp.tool.arguments.files[0].path)', '{"files":[{"Path":1}]}', 'Path', 'path'],
    [
      'mcp.tool.arguments.files.filter(f, has(f.dir)).map(f, f.dir.name).all(n, n != "etc")',
      '{"files":[{"dir":{"name":"x","Name":"etc"}}]}',
      'Name',
      'name',
    ],
    ['cel.bind(a, mcp.tool.arguments, !has(a.path))', '{"Path":1}', 'Path', 'path'],
    ['mcp.tool.with(t, !has(t.arguments.path))', '{"Path":1}', 'Path', 'path'],
    ['!mcp.tool.arguments.exists(k, k == "path")', '{"Path":1}', 'Path', 'path'],
    ['!mcp.tool.arguments.exists(k, "path" == k)', '{"Path":1}', 'Path', 'path'],
    ['mcp.tool.arguments.all(k, !(k in ["file", "path"]))', '{"Path":1}', 'Path', 'path'],
    ['mcp.tool.arguments.filterKeys(k, k == "path").size() == 0', '{"Path":1}', 'Path', 'path'],
    ['!mcp.tool.arguments.contains("path")', '{"Path":1}', 'Path', 'path'],
    ['!has(json(mcp.tool.arguments.text).path)', '{"text":"{\\"Path\\":1}"}', 'Path', 'path'],
    ['mcp.tool.arguments.mapValues(v, has(v.path)).size() > 0', '{"x":{"Path":1}}', 'Path', 'path'],
    [
      'mcp.tool.arguments[request.method.lowerAscii()].all(x, !has(x.path))',
      '{"post":[{"Path":1}]}',
      'Path',
      'path',
    ],
    ['(true ? mcp.tool.arguments : {}).with(a, !has(a.path))', '{"Path":1}', 'Path', 'path'],
  ])('a call is rejected under the rule %s with the arguments %s', async (rule, args, name, expected) => {
    expect(await called([rule], args)).toEqual(refused(name, expected));
  });

  test.each([
    ['{"path":"/data","env":{"PATH":"/bin","Path":1}}', NO_ETC],
    ['{"path":"/data","text":"Path"}', NO_ETC],
    ['{"Content":1,"content":2}', NO_ETC],
    ['{"path":1,"Path":2}', 'has(mcp.tool.arguments.path) && has(mcp.tool.arguments.Path)'],
    ['{"Name":"x","Target":"y","Arguments":{}}', '["say"].exists(n, n == mcp.tool.name)'],
    ['{"Path":1}', 'toJson(mcp.tool.arguments) != ""'],
    [
      '{"tags":["Admin"],"Say":1}',
      '!mcp.tool.arguments.tags.exists(t, t == "admin") && mcp.tool.name == "say"',
    ],
    ['{"Sub":1}', 'mcp.tool.name == "say" || jwt.sub == "x"'],
  ])('a call with arguments that no rule reads passes: %s under %j', async (args, rule) => {
    expect(await called([rule], args)).toBeUndefined();
  });

  test('a rule with many choices between members is compiled in an instant, and a member in another case is rejected', async () => {
    const choices = Array.from({ length: 20 }, (_, index) => `a${index}`).reduce(
      (inner, name, index) =>
        `cel.bind(${name}, request.method == "x" ? a${index + 1}.b : a${index + 1}.c, ${inner})`,
      '!has(a0.path)',
    );
    const rule = `cel.bind(a20, mcp.tool.arguments, ${choices}) || true`;
    const started = performance.now();
    expect(await called([rule], '{"c":{"Path":1}}')).toEqual(refused('Path', 'path'));
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  });

  test('a tool that the rules forbid is unknown, whatever its arguments', async () => {
    const { message } = await called([NO_ETC, { deny: 'mcp.tool.name == "say"' }], '{"Path":1}');
    expect(message).toBe('Unknown tool: say');
  });

  test('rules of the route and of the backend both count', async () => {
    await using server = await mcpUpstream();
    const mcpAuthorization = (name: string): object => ({
      mcpAuthorization: { rules: [`!has(mcp.tool.arguments.${name})`] },
    });
    const backend = {
      mcp: { targets: [{ name: 'files', mcp: { host: server.url } }] },
      policies: mcpAuthorization('two'),
    };
    const routes = [{ policies: mcpAuthorization('one'), backends: [backend] }];
    await using gate = await gateway(
      JSON.stringify({ config: { adminAddr: 'off' }, gateways: { default: { port: 0, routes } } }),
    );
    const session = await openSession(`${gate.url}/mcp`);
    for (const name of ['One', 'Two'])
      expect((await session.request('tools/call', { name: 'say', arguments: { [name]: 1 } })).error).toEqual(
        refused(name, name.toLowerCase()),
      );
    expect(server.of('tools/call')).toHaveLength(0);
  });

  test('an argument that occurs twice is rejected', async () => {
    for (const args of ['{"path":"/data","path":"/etc"}', '{"a":[{"path":1,"p\\u0061th":2}]}'])
      expect(await called([NO_ETC], args)).toEqual({ code: -32600, message: 'duplicate key "path"' });
  });
});

describe('arguments that differ only in white space, invisible characters or Unicode form from those that rules read', () => {
  test.each([
    ...['path ', ' path', 'pa\tth', 'path\u0000', 'path\u00a0', 'pa\u200bth', '\ufeffpath', 'pa\u00adth'],
    ...['path\ufe0f', '\uff50ath', 'ｐａｔｈ', 'ⓟath', '𝐩𝐚𝐭𝐡', 'PATH ', 'ＰATH\u200d'],
  ])('an argument %j is rejected where a rule reads path', async (name) => {
    const refused = {
      code: -32602,
      message: `the argument ${JSON.stringify(name)} could be read as "path"`,
    };
    expect(await called([NO_ETC], JSON.stringify({ [name]: '/etc/passwd' }))).toEqual(refused);
    expect(await called([NO_ETC], JSON.stringify({ path: '/data', [name]: '/etc' }))).toEqual(refused);
  });

  test('other names pass, also those that are equal to each other but to none that a rule reads', async () => {
    const args = {
      path: '/data',
      'file path': 1,
      paths: 1,
      pаth: 1,
      'pa-th': 1,
      'x ': 1,
      x: 2,
      '': 3,
      ' ': 4,
    };
    expect(await called([NO_ETC], JSON.stringify(args))).toBeUndefined();
    expect(
      await called(['!has(mcp.tool.arguments.x) || mcp.tool.arguments["x "] == 1'], '{"x ":1,"x":2}'),
    ).toBeUndefined();
  });
});

describe('arguments named __proto__', () => {
  const refused = (expected: string): object => ({
    code: -32602,
    message: `the argument "__proto__" could be read as "${expected}"`,
  });

  // Object.assign({}, args).path, and deep merges, read them from the prototype in a server in JavaScript.
  test.each([
    ['mcp.tool.arguments.?path.orValue("") != "/etc"', '{"__proto__":{"path":"/etc"}}', 'path'],
    ['mcp.tool.arguments.?path.orValue("") != "/etc"', '{"path":"/a","__proto__":{"path":"/etc"}}', 'path'],
    ['mcp.tool.arguments.?path.orValue("") != "/etc"', '{"\\u005f_proto__":null}', 'path'],
    ['!has(mcp.tool.arguments.a.b)', '{"a":{"__proto__":{"b":1}}}', 'b'],
    ['mcp.tool.arguments.files.all(f, !has(f.dir))', '{"files":[{"__proto__":{"dir":1}}]}', 'dir'],
    ['!has(json(mcp.tool.arguments.text).path)', '{"text":"{\\"__proto__\\":{}}"}', 'path'],
    ['mcp.tool.arguments.mapValues(v, has(v.path)).size() > 0', '{"x":{"__proto__":{}}}', 'path'],
  ])('are rejected where a rule reads members: %s with %s', async (rule, args, expected) => {
    expect(await called([rule], args)).toEqual(refused(expected));
  });

  test.each([
    ['{"__proto__":{"path":"/etc"}}', 'mcp.tool.name == "say"'],
    ['{"path":"/data","other":{"__proto__":{"path":"/etc"}}}', NO_ETC],
    ['{"path":"/data","__proto":1,"proto":2,"constructor":3}', NO_ETC],
    ['{"__proto__":1}', '!has(mcp.tool.arguments.__proto__) || mcp.tool.arguments.__proto__ == 1'],
  ])('pass where no rule reads members: %s under %j', async (args, rule) => {
    expect(await called([rule], args)).toBeUndefined();
  });

  test.each(ERAS)(
    'are rejected for a caller of revision %s, also through call_tool',
    async (_revision, connect: Connect) => {
      const route = { policies: { mcpAuthorization: { rules: [NO_ETC] } } };
      const config = mcpConfig([chaos('a', '--tools=read')], { route, backend: { toolSearch: {} } });
      await using gate = await gateway(config);
      const caller = await connect(`${gate.url}/mcp`);
      const text = '{"__proto__":{"path":"/etc/passwd"}}';
      for (const inner of [text, JSON.parse(text)])
        expect((await caller.call('call_tool', { name: 'read', arguments: inner })).error).toEqual(
          refused('path'),
        );
      expect((await caller.call('read', JSON.parse(text))).error).toEqual(refused('path'));
    },
  );
});
