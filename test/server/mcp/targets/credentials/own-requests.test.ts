import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { AUDIENCE, type Idp, startIdp } from '../../../../kit/idp.ts';
import { openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../../../kit/mcp-upstream.ts';
import { modernUpstream } from '../../../../kit/modern.ts';
import { type ExchangeServer, exchangeServer, issuedFor } from '../../../../kit/token-exchange.ts';
import { until } from '../../../../kit/until.ts';
import { httpUpstream } from '../../../../kit/upstream.ts';

// Requests to a target that no request of the client has caused, and those whose tokens are newer than the session.

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const config = (up: McpUpstream, server: ExchangeServer, more: object = {}): string =>
  mcpConfig(
    [
      {
        name: 'up',
        mcp: { host: up.url },
        policies: { backendAuth: { oauthTokenExchange: server.exchange('x') } },
      },
    ],
    more,
  );
const sentWith = ({ received }: McpUpstream, verb: string): unknown[] =>
  received.filter((each) => each.verb === verb).map(({ headers }) => headers['authorization']);
const issued = (subject: string, count = 1): string => `Bearer ${issuedFor(subject, 'x', count)}`;
const call = (id: number): object => ({ jsonrpc: '2.0', ...toolCall(id, 'say', { message: 'hi' }) });

describe('a session of a client whose token changes', () => {
  const validating = ({ issuer, key }: Idp): object => {
    const jwks = JSON.stringify({ keys: [key.jwk] });
    return { route: { policies: { jwtAuth: { mode: 'strict', issuer, audiences: [AUDIENCE], jwks } } } };
  };

  // sandialabs/atlas-ui-3#935: a client of the server that kept the token it had been created with.
  test('each request carries what its own token was exchanged for', async () => {
    await using idp = await startIdp();
    await using server = await exchangeServer();
    await using up = await mcpUpstream();
    await using gate = await gateway(config(up, server, validating(idp)));
    const [first, second] = [idp.token({ jti: '1' }), idp.token({ jti: '2' })];
    const session = await openSession(`${gate.url}/mcp`, bearer(first));
    const own = { 'mcp-session-id': session.id };
    await post(session.url, call(1), { ...own, ...bearer(second) });
    await post(session.url, call(2), { ...own, ...bearer(first) });
    expect(up.of('tools/call').map(({ headers }) => headers['authorization'])).toEqual([
      issued(second),
      issued(first),
    ]);
    await fetch(session.url, { method: 'DELETE', headers: { ...own, ...bearer(second) } });
    expect(sentWith(up, 'DELETE')).toEqual([issued(second)]);
    expect(up.sessions.size).toBe(0);
  });

  test('a token that expires soon is requested again', async () => {
    await using server = await exchangeServer({ lifetime: 5 });
    await using up = await mcpUpstream();
    await using gate = await gateway(config(up, server));
    const session = await openSession(`${gate.url}/mcp`, bearer('of-alice'));
    await session.request('tools/list');
    await session.request('tools/list');
    expect(up.of('tools/list').map(({ headers }) => headers['authorization'])).toEqual([
      issued('of-alice', 3),
      issued('of-alice', 4),
    ]);
    await session.end();
  });
});

describe('what the gateway sends by itself carries the credential of the latest request', () => {
  test('the end of a session when the gateway stops', async () => {
    await using server = await exchangeServer();
    await using up = await mcpUpstream();
    const gate = await gateway(config(up, server));
    const session = await openSession(`${gate.url}/mcp`, bearer('first'));
    await post(session.url, call(1), { 'mcp-session-id': session.id, ...bearer('second') });
    await gate.close();
    expect(sentWith(up, 'DELETE')).toEqual([issued('second')]);
  });

  test('a stream that is opened again, and the answer to a ping on it', async () => {
    await using server = await exchangeServer();
    await using up = await mcpUpstream();
    await using gate = await gateway(config(up, server), { limits: { retryDelayMin: 1, retryDelayMax: 1 } });
    const session = await openSession(`${gate.url}/mcp`, bearer('first'));
    await using own = await openEvents(session.url, { session: session.id, headers: bearer('first') });
    await until(() => up.streams.length === 1);
    await post(session.url, call(1), { 'mcp-session-id': session.id, ...bearer('second') });
    up.streams[0]?.end();
    await until(() => up.streams.length === 2);
    expect(sentWith(up, 'GET')).toEqual([issued('first'), issued('second')]);
    up.streams[1]?.write('data: {"jsonrpc":"2.0","id":"p","method":"ping"}\n\n');
    await until(() => up.received.some(({ message }) => message?.id === 'p'));
    const answer = up.received.find(({ message }) => message?.id === 'p');
    expect(answer?.headers['authorization']).toBe(issued('second'));
    up.streams[1]?.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n');
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    await session.end();
  });

  test('a cancellation, and the session that takes the place of a lost one', async () => {
    await using server = await exchangeServer();
    await using up = await mcpUpstream({
      script: ({ message }) => message?.method === 'tools/call' && message.params.name === 'hang',
    });
    await using gate = await gateway(config(up, server));
    const session = await openSession(`${gate.url}/mcp`, bearer('first'));
    const leave = new AbortController();
    const hanging = post(
      session.url,
      { jsonrpc: '2.0', ...toolCall(7, 'hang') },
      { 'mcp-session-id': session.id, ...bearer('second') },
      { signal: leave.signal },
    ).catch(() => undefined);
    await until(() => up.of('tools/call').length === 1);
    leave.abort();
    await hanging;
    await until(() => up.of('notifications/cancelled').length === 1);
    expect(up.of('notifications/cancelled')[0]?.headers['authorization']).toBe(issued('second'));
    await using _stream = await openEvents(session.url, { session: session.id, headers: bearer('second') });
    await until(() => up.streams.length === 1);
    up.sessions.clear();
    await post(session.url, call(8), { 'mcp-session-id': session.id, ...bearer('third') });
    // The stream of the new session, too.
    await until(() => up.streams.length === 2);
    expect(sentWith(up, 'GET')).toEqual([issued('second'), issued('third')]);
    expect(up.of('initialize').map(({ headers }) => headers['authorization'])).toEqual([
      issued('first'),
      issued('third'),
    ]);
    await session.end();
  });

  test('a subscription at a server of 2026-07-28 that is sent again', async () => {
    await using server = await exchangeServer();
    await using up = await modernUpstream('up');
    await using gate = await gateway(config(up, server), { limits: { retryDelayMin: 1, retryDelayMax: 1 } });
    const session = await openSession(`${gate.url}/mcp`, bearer('first'));
    await using _stream = await openEvents(session.url, { session: session.id, headers: bearer('first') });
    await until(() => up.listening.length === 1);
    await post(session.url, call(1), { 'mcp-session-id': session.id, ...bearer('second') });
    up.listening[0]?.response.end();
    await until(() => up.listening.length === 2);
    expect(up.of('subscriptions/listen').map(({ headers }) => headers['authorization'])).toEqual([
      issued('first'),
      issued('second'),
    ]);
    await session.end();
  });

  test('the end of a session that another process has created', async () => {
    await using server = await exchangeServer();
    await using up = await mcpUpstream();
    const text = config(up, server, { config: { session: { key: '5'.repeat(64) } } });
    const first = await gateway(text);
    const session = await openSession(`${first.url}/mcp`, bearer('first'));
    await first.close();
    expect(sentWith(up, 'DELETE')).toEqual([]);
    await using second = await gateway(text);
    const headers = { 'mcp-session-id': session.id, ...bearer('second') };
    await fetch(`${second.url}/mcp`, { method: 'DELETE', headers });
    expect(sentWith(up, 'DELETE')).toEqual([issued('second')]);
  });

  test('a key of the gateway needs no request: it is sent before any', async () => {
    await using up = await mcpUpstream();
    const policies = { backendAuth: { key: 'of-the-gateway' } };
    const session = { session: { key: '5'.repeat(64) } };
    const text = mcpConfig([{ name: 'up', mcp: { host: up.url }, policies }], { config: session });
    const first = await gateway(text);
    const { id } = await openSession(`${first.url}/mcp`);
    await first.close();
    await using second = await gateway(text);
    await fetch(`${second.url}/mcp`, { method: 'DELETE', headers: { 'mcp-session-id': id } });
    expect(sentWith(up, 'DELETE')).toEqual(['Bearer of-the-gateway']);
  });
});

describe('the document of an OpenAPI target', () => {
  test('is fetched without a credential', async () => {
    await using server = await exchangeServer();
    await using api = await httpUpstream((_, response, { target }) =>
      response.end(
        target === '/doc' ? '{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"a"}}}}' : '{}',
      ),
    );
    const openapi = { host: `http://${api.address}`, schema: { url: `http://${api.address}/doc` } };
    const policies = { backendAuth: { oauthTokenExchange: server.exchange('x') } };
    await using gate = await gateway(mcpConfig([{ name: 'api', openapi, policies }]));
    const session = await openSession(`${gate.url}/mcp`, bearer('of-alice'));
    await session.request('tools/call', { name: 'a', arguments: {} });
    expect(api.received.map(({ target, headers }) => [target, headers['authorization']])).toEqual([
      ['/doc', undefined],
      ['/a', issued('of-alice')],
    ]);
    await session.end();
  });
});
