import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { jwtClaims } from '../../../src/server/kernel/request/shared-slots.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { watchedRoute } from '../../kit/watched.ts';

const DENIED = { status: 403, text: 'authorization failed' };

/** Statuses of requests with these headers under these rules. */
async function decide(rules: unknown[], ...requests: Record<string, string>[]): Promise<number[]> {
  await using gate = await answeringGateway({ authorization: { rules } });
  const statuses = [];
  for (const headers of requests) statuses.push((await send(gate.url, { headers })).status);
  return statuses;
}

const is = (name: string): string => `request.headers["${name}"] == "1"`;
const A = { 'x-a': '1' };
const B = { 'x-b': '1' };
const BOTH = { ...A, ...B };
const NEITHER = {};

/** Neither valid UTF-8 nor the same text after a backend has decoded it in its own way. */
const NOT_UTF8 = Buffer.from('{"role":"reader\xff","a":{"b":"\xc0\xaf"}}', 'latin1');

test.each([
  ['allow', 'json(request.body).role != "admin"'],
  ['deny', 'json(request.body).role == "admin"'],
  ['allow', 'jsonField(request.body, "role") != "admin"'],
])('a rule (%s) about a body that is not UTF-8 fails: %s', async (kind, rule) => {
  await using gate = await answeringGateway({ authorization: { rules: [{ [kind]: rule }] } });
  const ask = (body: Buffer): ReturnType<typeof send> => send(gate.url, { method: 'POST', body });
  expect((await ask(NOT_UTF8)).status).toBe(403);
  expect((await ask(Buffer.from('{"role":"réader"}'))).status).toBe(200);
});

describe('members of the body that differ only in case from those that rules read', () => {
  const NO_ADMIN = { deny: 'has(json(request.body).role) && json(request.body).role == "admin"' };
  const refused = (name: string, expected: string): object => ({
    status: 400,
    text: `the member "${name}" of the request body differs from "${expected}" in case only`,
  });

  // Go's encoding/json takes any case: what a rule on `role` reads is not what such a service reads.
  test.each([
    ['{"Role":"admin"}', NO_ADMIN, 'Role', 'role'],
    ['{"role":"reader","ROLE":"admin"}', NO_ADMIN, 'ROLE', 'role'],
    ['[{"Role":"admin"}]', { deny: 'json(request.body).exists(x, has(x.role))' }, 'Role', 'role'],
    ['{"a":{"B":1}}', '!has(json(string(request.body)).a.b)', 'B', 'b'],
    [
      '{"b":1,"Role":"admin"}',
      'jsonField(request.body, "b") == 1 && !has(json(request.bodyPrefix).role)',
      'Role',
      'role',
    ],
    ['{"b":"","B":"x"}', 'default(jsonField(request.body, "b"), "") == ""', 'B', 'b'],
  ])('the body %s is rejected with 400 under %j', async (body, rule, name, expected) => {
    await using gate = await answeringGateway({ authorization: { rules: [rule] } });
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject(refused(name, expected));
  });

  test('a body cannot pass a condition of a policy by another case', async () => {
    const conditional = [{ condition: 'json(request.body).amount > 10', host: '127.0.0.1:9' }];
    await using gate = await answeringGateway({ extAuthz: { conditional } });
    const post = (body: string): ReturnType<typeof send> => send(gate.url, { method: 'POST', body });
    expect((await post('{"amount":1}')).status).toBe(200);
    expect((await post('{"amount":11}')).status).toBe(403);
    expect(await post('{"Amount":11}')).toMatchObject(refused('Amount', 'amount'));
  });

  test.each([
    ['{"role":"reader","a":{"Role":"admin"}}', NO_ADMIN],
    ['{"Other":1}', NO_ADMIN],
    ['{"role":1,"Role":2}', 'has(json(request.body).role) && has(json(request.body).Role)'],
    ['no JSON, Role', 'size(request.body) > 0 || has(json(request.body).role)'],
    ['{"Role":1}', 'string(request.body).contains("Role")'],
  ])('the body %s passes under %j', async (body, rule) => {
    await using gate = await answeringGateway({ authorization: { rules: [rule] } });
    expect((await send(gate.url, { method: 'POST', body })).status).toBe(200);
  });
});

describe('authorization rules', () => {
  test('authorization requires every rule without a keyword to be true', async () => {
    expect(await decide([is('x-a'), is('x-b')], BOTH, A, B, NEITHER)).toEqual([200, 403, 403, 403]);
  });

  test('authorization passes when one of several allow rules is true', async () => {
    const rules = [{ allow: is('x-a') }, { allow: is('x-b') }];
    expect(await decide(rules, BOTH, A, B, NEITHER)).toEqual([200, 200, 200, 403]);
  });

  test('authorization deny rules override allow rules', async () => {
    const rules = [{ allow: 'true' }, { deny: 'has(request.headers["x-b"])' }];
    expect(await decide(rules, A, B, BOTH)).toEqual([200, 403, 403]);
    expect(await decide([{ deny: 'has(request.headers["x-b"])' }], A, B)).toEqual([200, 403]);
  });

  test('authorization require rules must hold regardless of allow rules', async () => {
    const rules = [{ require: is('x-a') }, { allow: is('x-b') }];
    expect(await decide(rules, BOTH, A, B, NEITHER)).toEqual([200, 403, 403, 403]);
  });

  test('authorization counts rules without a keyword as require next to allow rules', async () => {
    expect(await decide([is('x-a'), { allow: is('x-b') }], BOTH, A, B)).toEqual([200, 403, 403]);
  });

  test.each([
    [
      [is('x-a'), { allow: is('x-b') }],
      'rules without a keyword are mixed with `allow` rules, and count as `require`',
    ],
    [
      [{ deny: 'false' }, { allow: 'true' }, is('x-a')],
      'rules without a keyword are mixed with `deny` and `allow` rules, and count as `require`',
    ],
    [[is('x-a'), is('x-b')], 'all of these 2 rules must be true', 'note'],
    [[is('x-a'), { require: is('x-b') }], undefined],
    [[{ deny: 'false' }, { allow: 'true' }], undefined],
  ])(
    'validation of %j explains how rules without a keyword are counted',
    async (rules, message, severity = 'warning') => {
      const policies = { authorization: { rules }, directResponse: {} };
      const text = JSON.stringify({ gateways: { default: { port: 0, routes: [{ policies }] } } });
      const found = await findProblems(loadConfigText(text, 'x.yaml', {}), { folder: '/', env: {} });
      const mixed = found.filter(({ code }) => code === 'AGW0308');
      expect(mixed.map((each) => [each.severity, each.message])).toEqual(
        message === undefined ? [] : [[severity, message]],
      );
      if (message !== undefined && severity === 'warning')
        expect(text.slice(mixed[0]?.range.start.offset, mixed[0]?.range.end.offset)).toBe(
          JSON.stringify(is('x-a')),
        );
    },
  );

  test('authorization rules read the variables set by earlier policies', async () => {
    const policies = {
      apiKey: { mode: 'strict', keys: [{ key: 'k1', metadata: { team: 'a' } }, { key: 'k2' }] },
      authorization: { rules: ['apiKey.team == "a"'] },
    };
    await using gate = await answeringGateway(policies);
    const status = async (key: string) =>
      (await send(gate.url, { headers: { authorization: `Bearer ${key}` } })).status;
    expect([await status('k1'), await status('k2'), await status('k3')]).toEqual([200, 403, 401]);
  });
});

describe('authorization expressions without a boolean result', () => {
  const useless = [
    'default("true", 1)',
    'json("1")',
    'json("null")',
    'json("[]")',
    'request.headers["x-not-there"]',
    '1 / 0 == 1',
    'jwt.sub == "a"',
  ];

  test.each(useless)('authorization rejects requests when %s is a rule of any keyword', async (rule) => {
    const positions = [
      [rule],
      [{ require: rule }],
      [{ allow: rule }],
      [{ deny: rule }],
      [{ allow: 'true' }, { deny: rule }],
    ];
    for (const rules of positions) expect(await decide(rules, NEITHER), JSON.stringify(rules)).toEqual([403]);
  });

  test('authorization passes when an allow rule fails and another is true', async () => {
    expect(await decide([{ allow: '1 / 0 == 1' }, { allow: 'true' }], NEITHER)).toEqual([200]);
  });
});

describe('authorization rejections', () => {
  test('authorization rejects with a fixed text and logs the deciding rule', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, {
      authorization: { rules: ['request.method == "GET"', { deny: 'request.path == "/admin"' }] },
    });
    expect((await send(gate.url)).status).toBe(200);
    expect(await send(`${gate.url}/admin`)).toMatchObject(DENIED);
    expect(await send(gate.url, { method: 'POST', body: 'x' })).toMatchObject(DENIED);
    expect(backend.received).toHaveLength(1);
    expect(await gate.accessLine(2)).toMatchObject({
      'http.status': '403',
      error: DENIED.text,
      reason: 'Authorization',
      'error.detail': 'deny rule is true: request.path == "/admin"',
    });
    expect((await gate.accessLine(3))['error.detail']).toBe(
      'require rule is not true: request.method == "GET"',
    );
  });

  test('authorization logs which rule failed and why', async () => {
    await using gate = await answeringGateway({
      authorization: { rules: [{ deny: 'request.headers["x-token"].startsWith("bad")' }] },
    });
    await send(gate.url);
    const detail = (await gate.accessLine(1))['error.detail'];
    expect(detail).toMatch(/^deny rule failed \(.*x-token.*\): request\.headers/);
  });
});

describe('authorization deny rules on a missing header', () => {
  const warned = async (deny: string): Promise<boolean> => {
    const policies = { authorization: { rules: [{ deny }] }, directResponse: { status: 200 } };
    const text = JSON.stringify({ gateways: { a: { port: 0, routes: [{ policies }] } } });
    const found = await findProblems(loadConfigText(text, 'gateway.yaml', {}), { folder: '/', env: {} });
    expect(found.filter(({ code }) => code !== 'AGW0307')).toEqual([]);
    return found.length > 0;
  };

  test.each([
    'request.headers["x-a"] == "1"',
    'request.headers.x_a in ["1", "2"]',
    'request.path == "/" && request.headers["x-a"].lowerAscii().startsWith("a")',
    '!(request.headers["x-a"] != "1")',
    'false ? true : int(request.headers["x-a"]) > 7',
    'has(request.headers["x-b"]) || request.headers["x-a"].contains("1")',
  ])(
    'authorization deny rule that fails on a missing header rejects, and validation warns: %s',
    async (rule) => {
      expect([await warned(rule), ...(await decide([{ deny: rule }], NEITHER))]).toEqual([true, 403]);
    },
  );

  test.each([
    'default(request.headers["x-a"], "") == "1"',
    'coalesce(request.headers["x-a"], "") == "1"',
    '"x-a" in request.headers && request.headers["X-A"] == "1"',
    'request.headers["x-a"] == "1" && "x-a" in request.headers',
    'has(request.headers["x-a"]) && request.headers["x-a"] == "1"',
    'has(request.headers["x-a"]) ? request.headers["x-a"] == "1" : false',
    'request.headers[?"x-a"].orValue("") == "1"',
    'request.headers.exists(name, name == "x-a") && request.headers["x-a"] == "1"',
    'cel.bind(h, request.headers, "x-a" in h && h["x-a"] == "1")',
    'request.headers["host"] == "example.com"',
  ])(
    'authorization deny rule that guards against a missing header passes without a warning: %s',
    async (rule) => {
      expect([await warned(rule), ...(await decide([{ deny: rule }], NEITHER))]).toEqual([false, 200]);
    },
  );

  test.each([
    'request.headers["x-a"] != "1"',
    '!(request.headers["x-a"] == "1")',
    '!request.headers["x-a"].startsWith("1")',
    'request.headers["x-a"] == ""',
    '!("x-a" in request.headers) || request.headers["x-a"] == "1"',
  ])(
    'authorization deny rule that is true for a missing header rejects without a warning: %s',
    async (rule) => {
      expect([await warned(rule), ...(await decide([{ deny: rule }], NEITHER))]).toEqual([false, 403]);
    },
  );
});

describe('authorization rules on token claims', () => {
  const roles = ['"reader" in jwt.realm_access.roles'];
  const withClaims = async (claims: Record<string, unknown> | undefined): Promise<number> => {
    await using route = await watchedRoute(
      { authorization: { rules: roles } },
      {
        prepare: (ctx) => {
          jwtClaims.set(ctx, claims);
        },
      },
    );
    return (await send(route.url)).status;
  };

  test.each([
    ['has the role', { realm_access: { roles: ['writer', 'reader'] } }, 200],
    ['has other roles', { realm_access: { roles: ['writer'] } }, 403],
    ['has no roles', { realm_access: {} }, 403],
    ['has null for roles', { realm_access: { roles: null } }, 403],
    ['has a number for roles', { realm_access: { roles: 1 } }, 403],
    ['has null in place of realm_access', { realm_access: null }, 403],
    ['has a string in place of realm_access', { realm_access: 'reader' }, 403],
    ['lacks the claim', { sub: 'ada' }, 403],
    ['does not exist', undefined, 403],
  ])('authorization rule on a claim decides for a token that %s', async (_how, claims, status) => {
    expect(await withClaims(claims)).toBe(status);
  });

  test('authorization rules see integral JSON numbers of claims as int', async () => {
    await using route = await watchedRoute(
      { authorization: { rules: ['jwt.level + 1 == 4', 'jwt.level / 2 == 1', 'type(jwt.level) == int'] } },
      {
        prepare: (ctx) => {
          jwtClaims.set(ctx, { level: 3 });
        },
      },
    );
    expect((await send(route.url)).status).toBe(200);
  });

  test.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'authorization rules do not see the JavaScript property %s as a claim or header',
    async (name) => {
      await using route = await watchedRoute(
        {
          authorization: {
            rules: [{ deny: `has(jwt["${name}"])` }, { deny: `has(request.headers["${name}"])` }],
          },
        },
        {
          prepare: (ctx) => {
            jwtClaims.set(ctx, { sub: 'ada' });
          },
        },
      );
      expect((await send(route.url)).status).toBe(200);
    },
  );
});

describe('authorization rules on request variables', () => {
  test('authorization rules read the request line, the headers and the connection', async () => {
    const rules = [
      'request.method == "PUT"',
      'request.path == "/a/b"',
      'request.pathAndQuery == "/a/b?c=d&e"',
      'request.uri == "http://app.example:81/a/b?c=d&e"',
      'request.host == "app.example:81"',
      'request.scheme == "http"',
      'request.version == "HTTP/1.1"',
      'request.headers["X-Mixed"] == "V" && request.headers["x-mixed"] == "V"',
      'request.headers["x-twice"] == ["1", "2"]',
      'request.headers["x-empty"] == ""',
      'has(request.headers["x-empty"]) && !has(request.headers["x-not"])',
      'request.headers.cookie("a") == "1"',
      'source.address == "127.0.0.9"',
      'source.port > 0',
      'proxy.gateway.name == "default" && proxy.route.name == "default/route0"',
    ];
    await using gate = await answeringGateway({ authorization: { rules } });
    const headers = {
      host: 'App.Example:81',
      'X-MIXED': 'V',
      'x-twice': ['1', '2'],
      'x-empty': '',
      cookie: 'b=2; a=1',
    };
    const reply = await send(gate.url, { method: 'PUT', target: '/a/b?c=d&e', headers, from: '127.0.0.9' });
    expect((await gate.accessLine(1))['error.detail']).toBeUndefined();
    expect(reply.status).toBe(200);
  });

  test('authorization rules read request.startTime', async () => {
    const rules = ['request.startTime > timestamp("2024-01-01T00:00:00Z")'];
    expect(await decide(rules, NEITHER)).toEqual([200]);
  });

  test('authorization rules read header bytes that are not valid UTF-8', async () => {
    await using gate = await answeringGateway({
      authorization: { rules: ['size(request.headers["x-a"]) == 3'] },
    });
    expect((await send(gate.url, { headers: { 'x-a': '\u00e4\u00ff\u0080' } })).status).toBe(200);
  });
});
