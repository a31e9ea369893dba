import { describe, expect, test } from 'vitest';
import { policyKinds } from '../../../src/server/features.ts';
import type { RequestContext } from '../../../src/server/kernel/request/request-context.ts';
import { jwtClaims } from '../../../src/server/kernel/request/shared-slots.ts';
import { askPolicy } from '../../kit/authz.ts';
import { chaos } from '../../kit/config.ts';
import { openSession } from '../../kit/mcp.ts';
import { type SendOptions, send } from '../../kit/send.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';
import { watchedRoute } from '../../kit/watched.ts';

interface Told {
  readonly action: string;
  readonly reason: string;
  readonly snapshot?: unknown;
}

/** The trace events of a policy for one request. */
async function told(
  kind: string,
  policies: object,
  options: SendOptions = {},
  prepare?: (ctx: RequestContext) => void,
): Promise<Told[]> {
  await using route = await watchedRoute(policies, prepare === undefined ? {} : { prepare });
  await send(route.url, options);
  return route.of(kind).map(({ action, reason, snapshot }) => ({
    action,
    reason,
    ...(snapshot === undefined ? {} : { snapshot }),
  }));
}

test('cors trace events report the decision and its reason', async () => {
  const cors = { cors: { allowOrigins: ['https://a.example'] } };
  const from = (origin: string, method = 'GET') => ({
    method,
    headers: { origin, 'access-control-request-method': 'POST' },
  });
  expect(await told('cors', cors)).toMatchObject([{ action: 'skip', reason: 'no Origin header' }]);
  expect(await told('cors', cors, from('https://a.example'))).toMatchObject([
    { action: 'apply', snapshot: { origin: 'https://a.example' } },
  ]);
  expect(await told('cors', cors, from('https://b.example'))).toMatchObject([
    { action: 'skip', reason: 'the origin is not allowed' },
  ]);
  expect(await told('cors', cors, from('https://b.example', 'OPTIONS'))).toMatchObject([
    { action: 'respond', reason: 'preflight', snapshot: { allowed: false } },
  ]);
});

test('apiKey trace events never contain the key', async () => {
  const keys = [{ key: 'canary', metadata: { team: 'a' } }];
  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  const strict = { apiKey: { mode: 'strict', keys } };
  const permissive = { apiKey: { mode: 'permissive', keys } };
  const known = await told('apiKey', strict, bearer('canary'));
  expect(known).toMatchObject([{ action: 'apply', snapshot: { team: 'a' } }]);
  expect(JSON.stringify(known)).not.toContain('canary');
  expect(await told('apiKey', strict)).toEqual([{ action: 'deny', reason: 'no API Key found' }]);
  expect(await told('apiKey', strict, bearer('canary2'))).toEqual([
    { action: 'deny', reason: 'invalid credentials' },
  ]);
  expect(await told('apiKey', permissive)).toEqual([{ action: 'skip', reason: 'no key' }]);
  expect(await told('apiKey', permissive, bearer('canary2'))).toMatchObject([{ action: 'skip' }]);
});

test('authorization trace events report the deciding rule', async () => {
  const rules = ['jwt.sub == "ada"', { deny: 'request.method == "DELETE"' }];
  const policies = { authorization: { rules } };
  const ada = (ctx: RequestContext): void => {
    jwtClaims.set(ctx, { sub: 'ada' });
  };
  expect(await told('authorization', policies, {}, ada)).toEqual([
    { action: 'apply', reason: 'every rule holds' },
  ]);
  expect(await told('authorization', policies, { method: 'DELETE' }, ada)).toEqual([
    { action: 'deny', reason: 'deny rule is true: request.method == "DELETE"' },
  ]);
  const [missing] = await told('authorization', policies);
  expect(missing).toMatchObject({
    action: 'deny',
    reason: expect.stringMatching(/^require rule failed \(.*\): jwt\.sub/),
  });
  expect(await told('authorization', { authorization: { rules: [{ allow: 'true' }] } })).toEqual([
    { action: 'apply', reason: 'allow rule is true: true' },
  ]);
});

test('extAuthz trace events report the response of the service', async () => {
  const statuses = [200, 403, 401];
  await using service = await httpUpstream((_, response) =>
    response.writeHead(statuses.shift() ?? 500).end('body'),
  );
  const policies = askPolicy(
    service.address,
    { redirect: '"https://login.example"' },
    { metadata: { code: 'response.code' } },
  );
  expect(await told('extAuthz', policies)).toEqual([
    { action: 'apply', reason: 'the service allowed it (200)', snapshot: { code: 200 } },
  ]);
  expect(await told('extAuthz', policies)).toEqual([
    { action: 'respond', reason: 'the service answered 403: redirect' },
  ]);
  expect(await told('extAuthz', askPolicy(service.address))).toEqual([
    { action: 'deny', reason: 'the authorization service answered 401' },
  ]);
  expect(await told('extAuthz', askPolicy(service.address, {}, { denyResponse: 'passthrough' }))).toEqual([
    { action: 'deny', reason: 'the service answered 500' },
  ]);
  const away = `127.0.0.1:${await refusingPort()}`;
  expect(await told('extAuthz', askPolicy(away, {}, { failureMode: 'allow' }))).toMatchObject([
    { action: 'skip' },
  ]);
  expect(await told('extAuthz', askPolicy(away))).toMatchObject([
    { action: 'deny', reason: `the authorization service could not be reached: ${away}: connection refused` },
  ]);
});

test('localRateLimit trace events report the remaining tokens', async () => {
  await using route = await watchedRoute({ localRateLimit: [{ maxTokens: 1, fillInterval: '1h' }] });
  await send(route.url);
  await send(route.url);
  expect(route.of('localRateLimit')).toMatchObject([
    { action: 'apply', snapshot: { remaining: 0 } },
    { action: 'deny', reason: 'the bucket is empty', snapshot: { limit: 1 } },
  ]);
});

test('mcpAuthorization trace events report the decision on each item', async () => {
  const backends = [{ mcp: { targets: [chaos('one', '--tools=read,write')] } }];
  const rules = ['mcp.tool.name == "read"'];
  await using route = await watchedRoute({ mcpAuthorization: { rules } }, { backends });
  const session = await openSession(`${route.url}/mcp`);
  await session.request('tools/list');
  await session.request('tools/call', { name: 'write', arguments: {} });
  await session.end();
  const item = (name: string) => ({ kind: 'tool', target: 'one', name });
  expect(route.of('mcpAuthorization')).toEqual([
    {
      action: 'apply',
      reason: 'allow rule is true: mcp.tool.name == "read"',
      snapshot: item('read'),
    },
    {
      action: 'deny',
      reason: 'no allow rule is true',
      snapshot: item('write'),
    },
    {
      action: 'deny',
      reason: 'no allow rule is true',
      snapshot: item('write'),
    },
  ]);
});

test('header modifier trace events report names but never values', async () => {
  const change = { set: { 'x-secret': 'canary' }, remove: ['x-gone'] };
  for (const kind of ['requestHeaderModifier', 'responseHeaderModifier']) {
    const events = await told(kind, { [kind]: change });
    expect(events).toMatchObject([{ action: 'apply', snapshot: { set: ['x-secret'], remove: ['x-gone'] } }]);
    expect(JSON.stringify(events)).not.toContain('canary');
  }
});

test('directResponse trace events report the status', async () => {
  expect(await told('directResponse', { directResponse: { status: 418 } })).toEqual([
    { action: 'respond', reason: 'status 418' },
  ]);
});

test('timeout trace events occur only after a timeout', async () => {
  await using backend = await httpUpstream(() => undefined);
  const policies = { timeout: { requestTimeout: '50ms' } };
  await using route = await watchedRoute(policies, { backends: [{ host: backend.address }] });
  await send(route.url);
  expect(route.of('timeout')).toMatchObject([{ action: 'end', reason: 'no response within 50 ms' }]);
});

test('timeout during an extAuthz call produces no extAuthz trace event', async () => {
  await using service = await httpUpstream(() => undefined);
  await using route = await watchedRoute({
    timeout: { requestTimeout: '50ms' },
    ...askPolicy(service.address),
  });
  expect((await send(route.url)).status).toBe(504);
  expect(route.events).toMatchObject([{ kind: 'timeout', action: 'end' }]);
});

describe('trace events of all policies', () => {
  test('trace events follow the evaluation order of the policies', async () => {
    await using service = await httpUpstream();
    const policies = {
      directResponse: {},
      requestHeaderModifier: {},
      localRateLimit: [{ maxTokens: 9, fillInterval: '1h' }],
      authorization: { rules: ['true'] },
      ...askPolicy(service.address),
      apiKey: { keys: [{ key: 'k' }] },
      cors: { allowOrigins: ['*'] },
    };
    await using route = await watchedRoute(policies);
    await send(route.url, { headers: { origin: 'https://a.example' } });
    const kinds = route.events.map(({ kind }) => kind);
    const listed = policyKinds.map(({ key }) => key as string).filter((key) => key in policies);
    expect(kinds).toEqual(listed);
  });

  test('trace events are not built without an observer', async () => {
    await using route = await watchedRoute(
      { authorization: { rules: ['true'] }, cors: {} },
      {
        prepare: (ctx) => {
          ctx.observer = undefined;
        },
      },
    );
    expect((await send(route.url)).status).toBe(200);
    expect(route.events).toEqual([]);
  });
});
