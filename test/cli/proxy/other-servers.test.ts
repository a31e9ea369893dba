import { describe, expect, test } from 'vitest';
import { gatewayStateIn, openRequestsIn } from '../../../src/cli/tui/top/gateway-state.ts';
import { cli } from '../../kit/cli.ts';
import { fakeAdmin, frames, type Script, says } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';

// What answers at an admin address may be a proxy with a login page, or a gateway of another version: kychee-com/run402#28,
// RenzoBeux/Dashboarr#239, mvanhorn/cli-printing-press#4252. A command then says so, without a stack.

/** Paths that commands read, for a server that gives all of them the same answer. */
const PATHS = [
  '/api/keys',
  '/api/keys/revoke',
  '/api/users',
  '/api/users/revoke',
  '/api/usage',
  '/api/audit',
  '/api/requests',
  '/api/config',
  '/config_dump',
  '/memory',
  '/debug/tasks',
  '/debug/trace',
  '/debug/pprof/profile',
  '/logging',
];
const answering = (script: Script) => fakeAdmin(Object.fromEntries(PATHS.map((path) => [path, script])));

const COMMANDS: readonly (readonly string[])[] = [
  ['keys', 'list'],
  ['keys', 'list', '-o', 'json'],
  ['keys', 'create', '--name', 'ann'],
  ['keys', 'create', '--name', 'ann', '-o', 'json'],
  ['keys', 'revoke', 'ann'],
  ['users', 'list'],
  ['users', 'list', '-o', 'json'],
  ['users', 'revoke', 'ann'],
  ['usage'],
  ['audit'],
  ['audit', '-o', 'json'],
  ['usage', '-o', 'csv'],
  ['logs'],
  ['proxy', 'config', 'all'],
  ['proxy', 'config', 'routes'],
  ['proxy', 'config', 'backends'],
  ['proxy', 'memory'],
  ['proxy', 'memory', '-o', 'yaml'],
  ['proxy', 'tasks'],
  ['proxy', 'trace'],
  ['proxy', 'log'],
  ['connect', 'claude'],
];

/** More than functions can call themselves. */
const DEPTH = 200_000;
const deep = (open: string, close: string) => `${open.repeat(DEPTH)}1${close.repeat(DEPTH)}`;

describe.each([
  ['null', 'null'],
  ['true', 'true'],
  ['a number', '5'],
  ['a text', '"x"'],
  ['an empty list', '[]'],
  ['a list', '[null,1,{"keys":[]}]'],
  ['nothing', ''],
  ['half an object', '{"keys":['],
  ['a login page', '<!doctype html><title>Sign in</title>'],
  ['lists in lists', deep('[', ']')],
  ['objects in objects', deep('{"a":', '}')],
])('an admin address that answers %s', (_, body) => {
  test.each(COMMANDS.map((args) => [args.join(' '), args]))(
    '`agctl %s` says that it is no gateway',
    async (_, args) => {
      await using folder = await temporaryFolder();
      await using server = await answering(says(body));
      const { code, stdout, stderr } = await cli([...args, '--admin', server.address], {
        env: { HOME: folder.path },
      });
      expect([code, stdout, stderr]).toEqual([3, '', expect.stringMatching(/^error: .*\n/)]);
      expect(stderr).toContain(server.address);
      expect(stderr).not.toMatch(/internal error|\n {4}at /);
    },
  );
});

/** Texts in which a member is anything but a text, also an object that `String` cannot convert. */
const ODD = ['null', '1', '1e999', 'true', '[]', '{}', '{"toString":1,"valueOf":1}'];
const ran = async (args: readonly string[], path: string, body: string, type?: string) => {
  await using server = await fakeAdmin({ [path]: says(body, type) });
  const { code, stdout, stderr } = await cli([...args, '--admin', server.address]);
  expect(stderr).not.toMatch(/internal error|\n {4}at /);
  return { code, stdout, stderr };
};

describe.each(ODD.map((odd) => [odd]))('an answer with %s as members', (odd) => {
  test('`keys create` prints no key that the answer does not have', async () => {
    const key = '{"name":"ann","id":"1"}';
    for (const body of [
      `{"secret":${odd},"key":${key}}`,
      `{"secret":"s","key":${odd}}`,
      `{"secret":"s","key":{"name":${odd},"id":"1"}}`,
      `{"secret":"s","key":{"name":"ann","id":${odd}}}`,
      `{"key":${key}}`,
      '{}',
    ])
      expect(await ran(['keys', 'create', '--name', 'ann'], '/api/keys', body)).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.stringContaining('answers without a key'),
      });
  });

  test('`keys revoke` says that the answer has no key', async () => {
    const { code, stderr } = await ran(
      ['keys', 'revoke', 'ann'],
      '/api/keys/revoke',
      `{"key":{"id":${odd}}}`,
    );
    expect([code, stderr]).toEqual([3, expect.stringContaining('answers without a key')]);
  });

  test('`keys list` lists the keys with what they have', async () => {
    const key = `{"name":"ann","id":${odd},"state":${odd},"createdAt":${odd},"expiresAt":${odd},"allowedModels":${odd}`;
    const body = `{"keys":[${odd},${key},"budgets":[{"limit":${odd},"spent":${odd}},${odd}]}]}`;
    const { code, stdout } = await ran(['keys', 'list'], '/api/keys', body);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^NAME[^\n]*\n[^\n]*\nann /)]);
  });

  test('`logs` lists the requests that have an id, a time and fields', async () => {
    const time = new Date().toISOString();
    const fields = `"http.status":${odd},"http.method":${odd},"route":${odd},"error":${odd},"gen_ai.usage.input_tokens":${odd}`;
    const good = `{"id":1,"time":"${time}","fields":{"http.path":"/found","duration":${odd},${fields}}}`;
    const bad = `{"id":2,"time":${odd},"fields":{}},{"id":3,"time":"${time}","fields":[${odd}]}`;
    const body = `{"requests":[${odd},${good},${bad}]}`;
    const { code, stdout } = await ran(['logs'], '/api/requests', body);
    expect([code, stdout.trimEnd().split('\n')]).toEqual([0, [expect.stringContaining('/found')]]);
  });

  test('`usage` counts nothing for what is no number', async () => {
    const sums = ['requests', 'errors', 'inputTokens', 'outputTokens', 'cachedInputTokens'];
    const row = [...sums.map((name) => `"${name}":${odd === '1' ? '"1"' : odd}`), `"costUsd":${odd}`].join(
      ',',
    );
    const body = `{"by":["model"],"rows":[${odd},{"group":{"model":"m"},${row}}],"total":${odd}}`;
    const { code, stdout } = await ran(['usage'], '/api/usage', body);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^m +0 +0 +0 +0 +0 +0 +0\.00$/m)]);
  });

  test('`proxy memory` prints the figures and bounds', async () => {
    const bound = `{"name":${odd},"at":"here","used":${odd},"max":${odd},"dropped":${odd}}`;
    const { code, stdout } = await ran(
      ['proxy', 'memory'],
      '/memory',
      `{"heap":{"used":1},"bounds":[${bound}]}`,
    );
    expect([code, stdout]).toEqual([0, expect.stringContaining('BOUND')]);
  });

  test('`proxy tasks` prints the tasks', async () => {
    const { code, stdout } = await ran(
      ['proxy', 'tasks'],
      '/debug/tasks',
      `{"a":${odd},"b":[${odd},"task"]}`,
    );
    expect([code, stdout]).toEqual([0, expect.stringContaining('  task\n')]);
  });

  test('`proxy config routes` prints the routes', async () => {
    const route = `{"name":"r","key":${odd},"hostnames":[${odd}],"matches":[{"path":${odd},"method":${odd}},${odd}],"backends":[{"backend":${odd}},${odd}],"inlinePolicies":[${odd},{"cors":${odd}}]}`;
    const listener = `{"listenerName":${odd},"routes":[${route},${odd}]}`;
    const body = `{"binds":[{"address":${odd},"listeners":[${listener},${odd}]},${odd}],"backends":[{"backend":${odd}},${odd}]}`;
    const { code, stdout } = await ran(['proxy', 'config', 'routes'], '/config_dump', body);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\br\b/)]);
  });

  test('`proxy trace` prints the events', async () => {
    const message = (type: string, members: string) =>
      `data: {"eventStart":${odd},"eventEnd":${odd},"severity":${odd},"scope":${odd},"requestId":${odd},"message":{"type":"${type}",${members}}}\n\n`;
    const rule = `{"name":${odd},"matched":${odd},"mode":${odd},"problem":${odd},"configLine":${odd},"configFile":${odd}}`;
    const body = [
      message(
        'authorizationResult',
        `"rules":[${rule},${odd}],"result":${odd},"reason":${odd},"item":${odd}`,
      ),
      message('routeSelection', `"selectedRoute":${odd},"skippedRoutes":[${odd},{"route":${odd}}]`),
      message('policySelection', `"effectivePolicy":${odd},"phase":${odd},"places":${odd}`),
      message('policyEvent', `"kind":${odd},"details":${odd}`),
      message(
        'cel',
        `"expr":${odd},"result":${odd},"parts":[{"start":${odd},"end":${odd},"value":${odd}},${odd}]`,
      ),
      message('requestSnapshot', `"stage":${odd},"requestState":${odd}`),
      message('requestFinished', `"status":${odd},"error":${odd},"detail":${odd}`),
    ].join('');
    const { code } = await ran(['proxy', 'trace'], '/debug/trace', `: ready\n\n${body}`, 'text/event-stream');
    expect(code).toBe(0);
  });

  test('`top` shows the requests in flight and the backends that have these members', () => {
    const startedAt = '2026-01-01T00:00:00Z';
    const requests = `[${odd},{"key":${odd},"worker":${odd},"startedAt":"${startedAt}","fields":{"http.status":${odd}}},{"key":1,"startedAt":${odd},"fields":{}},{"key":1,"startedAt":"${startedAt}","fields":[]}]`;
    expect(openRequestsIn(JSON.parse(odd))).toBeUndefined();
    expect(openRequestsIn(JSON.parse(`{"total":${odd},"requests":${requests}}`))).toMatchObject({
      openCount: 1,
      open: [{ startedAt: Date.parse(startedAt) }],
    });
    const backend = `{"kind":${odd},"sessions":${odd},"targets":[${odd},{"state":"failing","name":${odd},"problem":${odd}}],"models":[${odd},{"name":${odd},"failures":${odd}}]}`;
    const overview = (time: string, uptime: string) =>
      JSON.parse(
        `{"startedAt":${time},"uptimeSeconds":${uptime},"gateways":[${odd},{"routes":[${odd},{"backends":[${odd},${backend}]}]}]}`,
      );
    expect(gatewayStateIn(overview(odd, '1'))).toBeUndefined();
    const state = gatewayStateIn(overview(`"${startedAt}"`, '1'));
    expect(state?.backends).toHaveLength(2);
    expect(state?.backends[1]?.failing).toEqual([{ name: '', problem: undefined }]);
    for (const { sessions, models } of state?.backends ?? [])
      for (const count of [sessions, ...models.map(({ failures }) => failures)])
        expect(count).toSatisfy(Number.isFinite);
  });
});

// `{}['constructor']` is a function, and tables of types are objects.
test.each(['constructor', '__proto__', 'toString', '__defineGetter__'])(
  'a trace with events whose type, kind, phase and action are `%s` is printed',
  async (name) => {
    const event = (members: string) => `data: {"eventEnd":1,"requestId":"a","message":{${members}}}\n\n`;
    const body = [
      event(`"type":"${name}"`),
      event(`"type":"policy","kind":"${name}","action":"${name}","result":{"type":"${name}"}`),
      event(`"type":"policySelection","phase":"${name}","effectivePolicy":{"${name}":1},"places":{}`),
      event('"type":"requestFinished","status":200'),
    ].join('');
    const { code } = await ran(['proxy', 'trace'], '/debug/trace', `: ready\n\n${body}`, 'text/event-stream');
    expect(code).toBe(0);
  },
);

describe('an answer that is longer than a call has arguments', () => {
  const MANY = 150_000;
  const list = (item: string) => `[${`${item},`.repeat(MANY - 1)}${item}]`;

  test.each([
    [['keys', 'list'], '/api/keys', `{"keys":${list('{"name":"a"}')}}`],
    [['usage'], '/api/usage', `{"by":["model"],"rows":${list('{"group":{"model":"m"}}')},"total":{}}`],
    [['proxy', 'memory'], '/memory', `{"figures":${list('1')}}`],
    [
      ['proxy', 'config', 'routes'],
      '/config_dump',
      `{"binds":[{"address":":1","listeners":[{"listenerName":"l","routes":${list('{"name":"r"}')}}]}]}`,
    ],
    [
      ['proxy', 'config', 'backends'],
      '/config_dump',
      `{"backends":[{"backend":{"ai":{"name":"n","target":{"providers":${list('{"active":{"a":{"info":{"totalRequests":1}}}}')}}}}}]}`,
    ],
  ])('`agctl %j` prints it', async (args, path, body) => {
    const { code, stdout } = await ran(args, path, body);
    expect(code).toBe(0);
    expect(stdout.split('\n').length).toBeGreaterThanOrEqual(MANY);
  });
});

test('a trace with an event that nests deeper than any of a gateway ends with an error', async () => {
  const event = `{"eventEnd":1,"message":{"type":"cel","expr":"x","result":${deep('[', ']')}}}`;
  await using server = await fakeAdmin({
    '/debug/trace': (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`${frames([])}data: ${event}\n\n`);
    },
  });
  const { code, stderr } = await cli(['proxy', 'trace', '--admin', server.address]);
  expect([code, stderr]).toEqual([3, expect.stringContaining('has an event that is not JSON')]);
});
