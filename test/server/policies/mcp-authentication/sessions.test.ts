import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos } from '../../../kit/config.ts';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, startIdp } from '../../../kit/idp.ts';
import { MCP_HEADERS, openSession, post } from '../../../kit/mcp.ts';
import { mcpUpstream } from '../../../kit/mcp-upstream.ts';
import { protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { seconds } from '../../../kit/tokens.ts';

let idp: Idp;
let guarded: TestGateway;
let url: string;
beforeAll(async () => {
  idp = await startIdp();
  const targets = [chaos('one')];
  guarded = await protectedGateway([
    { policies: signIn(idp.issuer, { mode: 'optional' }), backends: [{ mcp: { targets } }] },
  ]);
  url = `${guarded.url}/mcp`;
});
afterAll(() => Promise.all([guarded.close(), idp.upstream.close()]));

const bearer = (more: object): Record<string, string> => ({
  authorization: `Bearer ${idp.token({ ...more })}`,
});
const LIST = { jsonrpc: '2.0', id: 9, method: 'tools/list' };

/** Statuses of every kind of request with a session id. */
async function attempts(session: string, headers: Record<string, string>): Promise<number[]> {
  const own = { ...headers, 'mcp-session-id': session };
  const answer = { jsonrpc: '2.0', id: 'agctl-1', result: {} };
  const replies = [await post(url, LIST, own), await post(url, answer, own)];
  const statuses = replies.map(({ status }) => status);
  for (const method of ['GET', 'DELETE']) {
    const response = await fetch(url, { method, headers: { ...MCP_HEADERS, ...own } });
    await response.body?.cancel();
    statuses.push(response.status);
  }
  return statuses;
}

describe('MCP session ownership', () => {
  test.each([
    ['another subject', () => bearer({ sub: 'bob' })],
    ['an anonymous client', () => ({})],
    ['a token without a subject', () => bearer({ sub: undefined })],
    ['a token whose subject is not a string', () => bearer({ sub: ['alice'] })],
  ])('a session is neither found nor ended by %s', async (_, headers) => {
    const session = await openSession(url, bearer({ sub: 'alice' }));
    const before = guarded.accessLog.length;
    expect(await attempts(session.id, headers())).toEqual([404, 404, 404, 404]);
    for (let line = 1; line <= 4; line += 1)
      expect(await guarded.accessLine(before + line)).toMatchObject({ 'http.status': '404', reason: 'MCP' });
    expect((await session.request('tools/list')).result.tools).toHaveLength(1);
    await session.end();
  });

  test('a session continues with a renewed token of the same subject', async () => {
    const session = await openSession(url, bearer({ sub: 'alice', jti: 1 }));
    const renewed = { ...bearer({ sub: 'alice', jti: 2, exp: seconds(900) }), 'mcp-session-id': session.id };
    expect((await post(url, LIST, renewed)).result.tools).toHaveLength(1);
    await session.end();
  });

  test('a session rejects an expired token of its owner', async () => {
    const session = await openSession(url, bearer({ sub: 'alice' }));
    expect(await attempts(session.id, bearer({ sub: 'alice', exp: seconds(-61) }))).toEqual([
      401, 401, 401, 401,
    ]);
    await session.end();
  });
});

test('an anonymous session is not found by an authenticated client', async () => {
  const session = await openSession(url);
  expect(await attempts(session.id, bearer({ sub: 'alice' }))).toEqual([404, 404, 404, 404]);
  await session.end();
});

test('subjects that differ only in lone surrogates own different sessions', async () => {
  const session = await openSession(url, bearer({ sub: 'a\ud83d' }));
  for (const sub of ['a\ud83e', 'a\ufffd'])
    expect(await attempts(session.id, bearer({ sub }))).toEqual([404, 404, 404, 404]);
  await session.end();
});

test('tokens without a subject own different sessions', async () => {
  const first = bearer({ sub: undefined, jti: 1 });
  const session = await openSession(url, first);
  expect(await attempts(session.id, bearer({ sub: undefined, jti: 2 }))).toEqual([404, 404, 404, 404]);
  expect((await post(url, LIST, { ...first, 'mcp-session-id': session.id })).status).toBe(200);
  await session.end();
});

test('the same subject at two issuers owns different sessions', async () => {
  await using other = await startIdp({ realm: 'other' });
  await using remote = await mcpUpstream();
  const backends = [{ mcp: { targets: [{ name: 'remote', mcp: { host: remote.url } }] } }];
  // With one key for session ids, a session continues on another gateway.
  const more = {
    config: { adminAddr: 'off', session: { key: '00'.repeat(32) }, connectionTerminationDeadline: '100ms' },
  };
  const open = (issuer: string) => protectedGateway([{ policies: signIn(issuer), backends }], { more });
  await using here = await open(idp.issuer);
  await using beside = await open(idp.issuer);
  await using there = await open(other.issuer);
  const session = await openSession(`${here.url}/mcp`, bearer({ sub: 'alice' }));
  const own = { ...bearer({ sub: 'alice' }), 'mcp-session-id': session.id };
  expect((await post(`${beside.url}/mcp`, LIST, own)).status).toBe(200);
  const foreign = { authorization: `Bearer ${other.token({ sub: 'alice' })}`, 'mcp-session-id': session.id };
  expect((await post(`${there.url}/mcp`, LIST, foreign)).status).toBe(404);
});
