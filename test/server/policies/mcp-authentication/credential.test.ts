import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos } from '../../../kit/config.ts';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, startIdp } from '../../../kit/idp.ts';
import { openSession } from '../../../kit/mcp.ts';
import { mcpUpstream } from '../../../kit/mcp-upstream.ts';
import type { SendOptions } from '../../../kit/send.ts';
import { call, METADATA_URL, type ProtectedRoute, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { type HttpUpstream, httpUpstream } from '../../../kit/upstream.ts';

let idp: Idp;
let backend: HttpUpstream;
beforeAll(async () => {
  idp = await startIdp();
  backend = await httpUpstream();
});
afterAll(() => Promise.all([idp.upstream.close(), backend.close()]));

/** The route to the recording backend. */
const route = (more: object = {}): ProtectedRoute[] => [
  { policies: signIn(idp.issuer, more), backends: [{ host: backend.address }] },
];

/** Fails when any part of the token occurs in the text, except the first part, which many tokens share. */
function expectNoTrace(text: string, bearer: string): void {
  for (const part of [bearer, ...bearer.split('.').slice(1)]) expect(text).not.toContain(part);
}

describe('mcpAuthentication credentials', () => {
  let guarded: TestGateway;
  beforeAll(async () => {
    guarded = await protectedGateway(route());
  });
  afterAll(() => guarded.close());

  test.each(['Bearer', 'Bearer   ', 'Basic YTpi', ''])(
    'mcpAuthentication treats the credential %o as missing',
    async (authorization) => {
      const reply = await call(guarded, undefined, { headers: { authorization } });
      expect(reply.status).toBe(401);
      expect(JSON.parse(reply.text)).toEqual({
        error: 'unauthorized',
        error_description: 'JWT token required',
      });
      expect(reply.headers['www-authenticate']).toBe(`Bearer resource_metadata="${METADATA_URL}"`);
    },
  );

  test('mcpAuthentication accepts the Bearer scheme in any case', async () => {
    const reply = await call(guarded, undefined, { headers: { authorization: `bEARER ${idp.token()}` } });
    expect(reply.status).toBe(200);
  });

  test('mcpAuthentication ignores tokens outside the Authorization header by default', async () => {
    const text = idp.token();
    const form = { method: 'POST', body: `access_token=${text}` };
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const replies = [
      await call(guarded, undefined, { target: `/mcp?access_token=${text}` }),
      await call(guarded, undefined, { headers: { cookie: `access_token=${text}` } }),
      await call(guarded, undefined, { ...form, headers: type }),
      await call(guarded, undefined, { headers: { 'x-authorization': `Bearer ${text}` } }),
    ];
    expect(replies.map(({ status }) => status)).toEqual([401, 401, 401, 401]);
  });

  test('mcpAuthentication rejects two Authorization headers even if one is valid', async () => {
    const both = [`Bearer ${idp.token()}`, 'Bearer x'];
    for (const authorization of [both, [...both].reverse()])
      expect((await call(guarded, undefined, { headers: { authorization } })).status).toBe(400);
  });

  test('mcpAuthentication rejects a 1 MB credential before parsing it', async () => {
    expect((await call(guarded, `${'a'.repeat(1_000_000)}`)).status).toBe(431);
  });
});

describe('mcpAuthentication token location', () => {
  const places: readonly (readonly [
    place: string,
    location: object | undefined,
    request: (bearer: string) => SendOptions,
    left: object,
  ])[] = [
    [
      'in the Authorization header',
      undefined,
      (bearer) => ({ headers: { authorization: `Bearer ${bearer}`, cookie: 'a=1' } }),
      { cookie: 'a=1' },
    ],
    [
      'in a header of another name',
      { header: { name: 'X-Token' } },
      (bearer) => ({ headers: { 'x-token': bearer, authorization: 'Basic YTpi' } }),
      { authorization: 'Basic YTpi' },
    ],
    [
      'in a query parameter',
      { queryParameter: { name: 'token' } },
      (bearer) => ({ target: `/mcp?a=1&token=${bearer}&b=2` }),
      {},
    ],
    [
      'in a cookie',
      { cookie: { name: 'token' } },
      (bearer) => ({ headers: { cookie: `a=1; token=${bearer}; b=2` } }),
      { cookie: 'a=1; b=2' },
    ],
  ];

  test.each(places)(
    'mcpAuthentication accepts a token %s and removes it before the backend',
    async (_, authorizationLocation, request, left) => {
      await using guarded = await protectedGateway(route({ authorizationLocation }));
      const bearer = idp.token({ jti: _ });
      const reply = await call(guarded, undefined, request(bearer));
      expect([reply.status, reply.text]).toEqual([200, 'ok']);
      const { headers, rawHeaders, target, body } = backend.received.at(-1) ?? {};
      expect(headers).toMatchObject(left);
      expectNoTrace(JSON.stringify([rawHeaders, target, body]), bearer);
      if (target?.includes('?')) expect(target).toBe('/mcp?a=1&b=2');
      await guarded.accessLine(1);
      expectNoTrace(guarded.accessLog.join('') + guarded.log.join(''), bearer);
    },
  );

  test('mcpAuthentication accepts a token found by an expression', async () => {
    const authorizationLocation = { expression: 'request.headers["x-any"].split(" ")[1]' };
    await using guarded = await protectedGateway(route({ authorizationLocation }));
    const headers = { 'x-any': `Token ${idp.token()}` };
    expect((await call(guarded, undefined, { headers })).status).toBe(200);
    expect((await call(guarded)).status).toBe(401);
  });

  test('mcpAuthentication removes an invalid token before the backend too', async () => {
    await using guarded = await protectedGateway(route({ mode: 'permissive' }));
    const bearer = idp.token({ aud: 'another-service' });
    expect((await call(guarded, bearer)).status).toBe(200);
    expect(backend.received.at(-1)?.headers).not.toHaveProperty('authorization');
  });

  test('mcpAuthentication never logs a rejected token', async () => {
    await using guarded = await protectedGateway(route());
    const bearer = idp.token({ aud: 'another-service' });
    expectNoTrace((await call(guarded, bearer)).text, bearer);
    await guarded.accessLine(1);
    expectNoTrace(guarded.accessLog.join('') + guarded.log.join(''), bearer);
  });

  test('mcpAuthentication forwards no token to MCP servers over HTTP or stdio', async () => {
    await using remote = await mcpUpstream();
    const targets = [chaos('local', '--tools=env,received'), { name: 'remote', mcp: { host: remote.url } }];
    await using guarded = await protectedGateway([
      { policies: signIn(idp.issuer), backends: [{ mcp: { targets } }] },
    ]);
    const bearer = idp.token({ jti: 'canary' });
    const session = await openSession(`${guarded.url}/mcp`, { authorization: `Bearer ${bearer}` });
    expect((await session.request('tools/call', { name: 'remote_say', arguments: {} })).status).toBe(200);
    const told = await Promise.all(
      ['local_env', 'local_received'].map((name) => session.request('tools/call', { name, arguments: {} })),
    );
    expect(told[1]?.result.content[0].text).toContain('initialize');
    expectNoTrace(JSON.stringify(told.map(({ result }) => result)), bearer);
    expect(remote.of('tools/call')).toHaveLength(1);
    expectNoTrace(JSON.stringify(remote.received), bearer);
    await session.end();
    expectNoTrace(guarded.accessLog.join('') + guarded.log.join(''), bearer);
  });
});

test('token claims are not visible as request headers, nor headers as claims', async () => {
  const authorization = { rules: ['jwt.sub == "alice" && jwt.realm_access.roles[0] == "reader"'] };
  await using guarded = await protectedGateway([{ policies: { ...signIn(idp.issuer), authorization } }]);
  const roles = { realm_access: { roles: ['reader'] } };
  expect((await call(guarded, idp.token(roles))).status).toBe(200);
  const forged = { 'jwt.sub': 'alice', 'x-jwt-sub': 'alice' };
  expect((await call(guarded, idp.token({ ...roles, sub: 'bob' }), { headers: forged })).status).toBe(403);
});
