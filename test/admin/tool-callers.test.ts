import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Overview } from '../../src/core/overview.ts';
import type { JudgedCaller, ToolCallers } from '../../src/core/tool-callers.ts';
import { spending } from '../kit/budgets.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { AUDIENCE, startIdp } from '../kit/idp.ts';
import { openSession, post, toolCall } from '../kit/mcp.ts';
import { problemOf } from '../kit/problem.ts';
import { overHttp, type ScriptedServer } from '../kit/scripted-server.ts';
import { send } from '../kit/send.ts';

const SECRETS = { ann: 'key-of-ann-1', bob: 'key-of-bob-2', '': 'key-of-nobody-3' };

const KEYS = [
  { key: SECRETS.ann, metadata: { name: 'ann', team: 'ops', groups: ['admin'] } },
  { key: SECRETS.bob, metadata: { name: 'bob', team: 'sales', groups: 'reader' } },
  { key: SECRETS[''], metadata: {} },
];

const TOOLS = ['echo', 'fail'];
let files: ScriptedServer;
beforeAll(async () => {
  const tools = TOOLS.map((name) => ({ name, inputSchema: { type: 'object' } }));
  const list = `{"jsonrpc":"2.0","id":@id,"result":${JSON.stringify({ tools })}}`;
  files = await overHttp({ 'tools/list': list }, 'files');
});
afterAll(() => files[Symbol.asyncDispose]());

/** A gateway with one MCP server behind these policies, its database and an admin server. */
function toolGateway(folder: string, policies: object, more: { backend?: object; gateway?: object } = {}) {
  const backends = [{ mcp: { targets: [files.target] }, ...more.backend }];
  const config = {
    config: { adminAddr: 'off', database: { url: 'sqlite://./agctl.db' } },
    gateways: { edge: { port: 0, routes: [{ name: 'tools', policies, backends }], ...more.gateway } },
  };
  return gateway(JSON.stringify(config), { admin: true, folder, live: 'asked' });
}

async function callersOf(gate: TestGateway, tool: string, claims?: object): Promise<ToolCallers> {
  const overview = JSON.parse((await send(`${gate.admin}/api/overview`)).text) as Overview;
  const [first] = overview.gateways;
  const asked = { gateway: first?.name, route: first?.routes[0]?.key, target: 'files', tool, claims };
  const { status, text } = await send(`${gate.admin}/api/mcp/callers`, {
    method: 'POST',
    body: JSON.stringify(asked),
  });
  expect([status, text]).toEqual([200, expect.anything()]);
  return JSON.parse(text) as ToolCallers;
}

/** What really happens: whether the caller may call each tool, and whether its list has it. */
async function outcomes(gate: TestGateway, headers: Record<string, string>) {
  const session = await openSession(`${gate.url}/`, headers).catch(() => undefined);
  if (session === undefined)
    return Object.fromEntries(TOOLS.map((tool) => [tool, { calls: 'no', lists: 'no' }]));
  const { result } = await session.request('tools/list');
  const names = ((result?.tools ?? []) as { name: string }[]).map(({ name }) => name);
  const found: Record<string, { calls: string; lists: string }> = {};
  for (const tool of TOOLS) {
    const call = await session.send(toolCall(7, tool, { text: 'x' }));
    found[tool] = {
      calls: call.status === 200 && call.error === undefined ? 'yes' : 'no',
      lists: names.includes(tool) ? 'yes' : 'no',
    };
  }
  await session.end();
  return found;
}

const short = ({ kind, name, calls, lists }: JudgedCaller): string =>
  `${kind} ${name}: call ${calls.answer}, list ${lists.answer}`;

const RULES: Record<
  string,
  { authorization?: object; mcpAuthorization?: object; mode?: string; own?: object }
> = {
  'no rule at all': {},
  'no key needed': { mode: 'optional' },
  'one of two allow rules': {
    mcpAuthorization: {
      rules: ['apiKey.team == "ops"', 'mcp.tool.name == "echo" && apiKey.name == "bob"'],
    },
  },
  'a deny rule that fails without a member': {
    mcpAuthorization: { rules: [{ deny: 'apiKey.team == "sales" && mcp.tool.name == "fail"' }] },
  },
  'a list that is one text': {
    mcpAuthorization: { rules: [{ require: '"reader" in default(apiKey.groups, "")' }] },
  },
  'rules of the request': { authorization: { rules: ['apiKey.name != "bob"'] } },
  'rules by the place': {
    authorization: { rules: ['proxy.route.name == "default/tools" && proxy.listener.name == "edge"'] },
    mcpAuthorization: { rules: ['mcp.methodName == "tools/list" || mcp.tool.target == "files"'] },
  },
  'a rule for lists only': {
    mcpAuthorization: { rules: [{ deny: 'mcp.methodName == "tools/list" && apiKey.team == "ops"' }] },
  },
  'a rule that needs arguments hides its tool': {
    mcpAuthorization: { rules: ['mcp.methodName != "tools/list" || mcp.tool.arguments.text == "x"'] },
  },
  'rules of the backend join those of the route': {
    mcpAuthorization: { rules: [{ require: 'apiKey.team != "sales"' }] },
    own: { policies: { mcpAuthorization: { rules: [{ deny: 'apiKey.team == "ops"' }] } } },
  },
};

test.each(Object.keys(RULES))(
  'the catalog says of each key what its calls and lists really get: %s',
  async (name) => {
    await using folder = await temporaryFolder();
    const { mode = 'strict', own = {}, ...rules } = RULES[name] ?? {};
    const policies = { apiKey: { mode, keys: KEYS, virtualKeys: {} }, ...rules };
    await using gate = await toolGateway(folder.path, policies, { backend: own });
    const settings = { name: 'virtual', metadata: { team: 'ops' }, budgets: [] };
    const created = await spending(gate).keys.create(settings);
    const gone = await spending(gate).keys.create({ ...settings, name: 'gone' });
    await spending(gate).keys.revoke(gone?.key.id ?? '');
    const secrets: Record<string, string> = { ...SECRETS, virtual: created?.secret ?? '' };
    const happens = new Map<string, Awaited<ReturnType<typeof outcomes>>>();
    for (const tool of TOOLS) {
      const { callers, omitted, problem } = await callersOf(gate, tool);
      expect([omitted, problem]).toEqual([0, undefined]);
      expect(callers.map(({ kind, name: who }) => `${kind} ${who}`)).toEqual([
        'anonymous ',
        'key ann',
        'key bob',
        expect.stringMatching(/^key key [0-9a-f]{8}$/),
        'key virtual',
      ]);
      for (const caller of callers) {
        const secret = secrets[caller.name] ?? SECRETS[''];
        const headers: Record<string, string> =
          caller.kind === 'anonymous' ? {} : { authorization: `Bearer ${secret}` };
        const really = happens.get(caller.name) ?? (await outcomes(gate, headers));
        happens.set(caller.name, really);
        const { calls, lists } = really[tool] ?? {};
        expect(short(caller)).toBe(`${caller.kind} ${caller.name}: call ${calls}, list ${lists}`);
      }
    }
  },
);

test('a rule that needs the arguments, the address or a header of a call says that it depends on the call', async () => {
  await using folder = await temporaryFolder();
  const answers: Record<string, string> = {};
  for (const rule of [
    'mcp.tool.arguments.path.startsWith("/tmp/")',
    'source.address == "127.0.0.1"',
    'default(request.headers["x-team"], "ops") == "ops"',
    'has(request.headers.authorization)',
    '!has(mcp.tool.arguments) || mcp.tool.arguments.size() < 3',
    // Certain, whatever the call has: the other side decides.
    'mcp.tool.arguments.path == "x" || apiKey.name == "ann"',
    'request.path == "/x" && apiKey.name == "bob"',
    // Arguments are there in every call.
    'has(mcp.tool.arguments)',
  ]) {
    const policies = {
      apiKey: { mode: 'strict', keys: KEYS.slice(0, 1) },
      mcpAuthorization: { rules: [rule] },
    };
    await using gate = await toolGateway(folder.path, policies);
    const { callers } = await callersOf(gate, 'echo');
    const [, ann] = callers;
    answers[rule] = `${ann?.calls.answer}, ${ann?.lists.answer}: ${ann?.calls.because}`;
  }
  expect(answers).toMatchInlineSnapshot(`
    {
      "!has(mcp.tool.arguments) || mcp.tool.arguments.size() < 3": "depends, yes: mcpAuthorization, allow: !has(mcp.tool.arguments) || mcp.tool.arguments.size() < 3",
      "default(request.headers["x-team"], "ops") == "ops"": "depends, depends: mcpAuthorization, allow: default(request.headers["x-team"], "ops") == "ops"",
      "has(mcp.tool.arguments)": "yes, no: mcpAuthorization, allow: has(mcp.tool.arguments)",
      "has(request.headers.authorization)": "depends, depends: mcpAuthorization, allow: has(request.headers.authorization)",
      "mcp.tool.arguments.path == "x" || apiKey.name == "ann"": "yes, yes: mcpAuthorization, allow: mcp.tool.arguments.path == "x" || apiKey.name == "ann"",
      "mcp.tool.arguments.path.startsWith("/tmp/")": "depends, no: mcpAuthorization, allow: mcp.tool.arguments.path.startsWith("/tmp/")",
      "request.path == "/x" && apiKey.name == "bob"": "no, no: mcpAuthorization: no allow rule is true",
      "source.address == "127.0.0.1"": "depends, depends: mcpAuthorization, allow: source.address == "127.0.0.1"",
    }
  `);
});

test('claims are judged on a route that reads tokens, and mean nothing on another one', async () => {
  await using idp = await startIdp();
  await using folder = await temporaryFolder();
  const mcpAuthentication = {
    issuer: idp.issuer,
    audiences: [AUDIENCE],
    resourceMetadata: { resource: 'http://localhost/mcp' },
  };
  const mcpAuthorization = {
    rules: [{ require: '"ops" in jwt.groups' }, { deny: 'jwt.sub == "mallory"' }],
  };
  await using gate = await toolGateway(folder.path, { mcpAuthentication, mcpAuthorization });
  for (const claims of [
    { sub: 'alice', groups: ['ops'] },
    { sub: 'alice', groups: 'ops' },
    { sub: 'mallory', groups: ['ops'] },
    { sub: 'alice' },
    { sub: 5, groups: { ops: null } },
  ]) {
    const { callers } = await callersOf(gate, 'echo', claims);
    const { calls, lists } =
      (await outcomes(gate, { authorization: `Bearer ${idp.token(claims)}` }))['echo'] ?? {};
    expect(callers.map(short)).toEqual([
      'anonymous : call no, list no',
      `claims : call ${calls}, list ${lists}`,
    ]);
  }
  const { callers } = await callersOf(gate, 'echo', { sub: 'alice' });
  expect(callers.map(({ calls }) => calls.because)).toEqual([
    'mcpAuthentication asks for a token',
    'mcpAuthorization, require: "ops" in jwt.groups',
  ]);
});

test('who needs two credentials depends on the other one, and services, code and bundles are not foreseen', async () => {
  await using idp = await startIdp();
  await using folder = await temporaryFolder();
  const apiKey = { mode: 'strict', keys: KEYS.slice(0, 1), location: { header: { name: 'x-key' } } };
  const mcpAuthentication = {
    issuer: idp.issuer,
    audiences: [AUDIENCE],
    resourceMetadata: { resource: 'http://localhost/mcp' },
  };
  const both = await toolGateway(folder.path, { apiKey, mcpAuthentication });
  await using _both = both;
  expect((await callersOf(both, 'echo', {})).callers.map(({ calls }) => calls)).toEqual([
    { answer: 'no', because: 'mcpAuthentication asks for a token' },
    { answer: 'depends', because: 'apiKey asks for a key, too' },
    { answer: 'depends', because: 'mcpAuthentication asks for a token, too' },
  ]);
  await using keyed = await toolGateway(folder.path, { apiKey: { mode: 'strict', keys: KEYS } });
  expect((await callersOf(keyed, 'echo', { sub: 'alice' })).callers[1]?.calls).toEqual({
    answer: 'no',
    because: 'apiKey asks for a key',
  });
  const extAuthz = { host: '127.0.0.1:1', protocol: { http: {} } };
  await using asking = await toolGateway(folder.path, { extAuthz });
  expect((await callersOf(asking, 'echo')).callers[0]?.calls).toEqual({
    answer: 'depends',
    because: 'extAuthz: the answer of its service decides',
  });
  const bundles = [{ name: 'ops', targets: ['files'], when: 'apiKey.team == "ops"' }];
  await using bundled = await toolGateway(
    folder.path,
    {},
    { backend: { mcp: { bundles, targets: [files.target] } } },
  );
  expect((await callersOf(bundled, 'echo')).callers[0]?.calls.answer).toBe('depends');
});

test('rules of the listener decide before those of the route', async () => {
  await using folder = await temporaryFolder();
  const policies = { authorization: { rules: ['proxy.route.name == null && env.podName == null'] } };
  await using gate = await toolGateway(folder.path, {}, { gateway: policies });
  const { callers } = await callersOf(gate, 'echo');
  const { status } = await post(gate.url, {});
  expect([callers[0]?.calls.answer === 'yes', callers[0]?.calls.because]).toEqual([
    status !== 403,
    expect.anything(),
  ]);
});

test('a slow rule and many keys are judged for a bounded time, and the rest is counted', async () => {
  await using folder = await temporaryFolder();
  const keys = Array.from({ length: 700 }, (_, index) => ({
    keyHash: `sha256:${index.toString(16).padStart(64, '0')}`,
    metadata: { name: `key ${index}` },
  }));
  await using gate = await toolGateway(folder.path, { apiKey: { mode: 'strict', keys } });
  const { callers, omitted } = await callersOf(gate, 'echo');
  expect([callers.length, omitted]).toEqual([501, 200]);
});

test('/api/mcp/callers answers what is no question with 400, and a tool that is not there with 404', async () => {
  await using folder = await temporaryFolder();
  await using gate = await toolGateway(folder.path, {});
  const asked = { gateway: 'edge', route: 'x', target: 'files', tool: 'echo' };
  for (const [status, body] of [
    [400, ''],
    [400, '[]'],
    [400, JSON.stringify({ ...asked, tool: 5 })],
    [400, JSON.stringify({ ...asked, claims: 'x' })],
    [404, JSON.stringify(asked)],
  ] as const) {
    const reply = await send(`${gate.admin}/api/mcp/callers`, { method: 'POST', body });
    expect([body, reply.status, problemOf(reply.text)]).toEqual([body, status, expect.stringMatching(/\S$/)]);
  }
});
