import type { ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { AUDIENCE, json, startIdp } from '../../kit/idp.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import { type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` });
const clientAuth = { clientId: 'gate:way', clientSecret: 's/1' };
const exchange = (server: HttpUpstream, more: object = {}): object => ({
  backendAuth: { oauthTokenExchange: { host: server.address, path: '/token', clientAuth, ...more } },
});

/** An authorization server that issues `issued-1`, `issued-2`, …, with these members. */
function authorizationServer(members: object = { expires_in: 300 }): Promise<HttpUpstream> {
  let count = 0;
  return httpUpstream((_, response) => {
    count += 1;
    json(response, 200, { access_token: `issued-${count}`, token_type: 'Bearer', ...members });
  });
}

const service = (): Promise<HttpUpstream> => httpUpstream((_, response) => response.end('ok'));
const form = (server: HttpUpstream, at = 0): string[][] => [
  ...new URLSearchParams(server.received[at]?.body),
];

describe('requests of backendAuth.oauthTokenExchange', () => {
  test('a token exchange sends what RFC 8693 says, and the backend receives the new token only', async () => {
    await using server = await authorizationServer();
    await using upstream = await service();
    const config = {
      audiences: ['a', 'b'],
      scopes: ['read', 'write'],
      resources: ['https://api.example'],
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      actorToken: {
        source: { header: { name: 'x-actor' } },
        tokenType: 'urn:ietf:params:oauth:token-type:jwt',
      },
      additionalParams: { tenant: 'request.headers["x-tenant"]' },
    };
    await using gate = await proxyGateway(upstream.address, exchange(server, config));
    const headers = { ...bearer('of-the-user'), 'x-actor': 'of-the-agent', 'x-tenant': 't1' };
    expect((await send(gate.url, { headers })).status).toBe(200);
    expect(form(server)).toEqual(
      expect.arrayContaining([
        ['grant_type', 'urn:ietf:params:oauth:grant-type:token-exchange'],
        ['subject_token', 'of-the-user'],
        ['subject_token_type', 'urn:ietf:params:oauth:token-type:access_token'],
        ['actor_token', 'of-the-agent'],
        ['actor_token_type', 'urn:ietf:params:oauth:token-type:jwt'],
        ['audience', 'a'],
        ['audience', 'b'],
        ['resource', 'https://api.example'],
        ['scope', 'read write'],
        ['requested_token_type', 'urn:ietf:params:oauth:token-type:access_token'],
        ['tenant', 't1'],
      ]),
    );
    // RFC 6749 §2.3.1: both are form-encoded.
    const basic = Buffer.from('gate%3Away:s%2F1').toString('base64');
    expect(server.received[0]?.headers.authorization).toBe(`Basic ${basic}`);
    expect(upstream.received[0]?.headers.authorization).toBe('Bearer issued-1');
    expect(upstream.received[0]?.headers['x-actor']).toBeUndefined();
    expect([...gate.accessLog, ...gate.log].join('')).not.toMatch(/issued-1|of-the-user|s\/1/);
  });

  test('a JWT bearer grant sends the token of the client as assertion, and the secret in the body', async () => {
    await using server = await authorizationServer();
    await using upstream = await service();
    const config = {
      grantType: 'jwtBearer',
      clientAuth: { ...clientAuth, method: 'clientSecretPost' },
      authorizationLocation: { header: { name: 'x-token' } },
    };
    await using gate = await proxyGateway(upstream.address, exchange(server, config));
    await send(gate.url, { headers: bearer('of-the-user') });
    expect(Object.fromEntries(form(server))).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: 'of-the-user',
      client_id: 'gate:way',
      client_secret: 's/1',
    });
    expect(upstream.received[0]?.headers).toMatchObject({ 'x-token': 'issued-1' });
    expect(upstream.received[0]?.headers.authorization).toBeUndefined();
  });

  test('a token that jwtAuth has validated and removed is exchanged', async () => {
    await using idp = await startIdp();
    await using server = await authorizationServer();
    await using upstream = await service();
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    const jwtAuth = { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks };
    await using gate = await proxyGateway(upstream.address, {
      jwtAuth,
      ...exchange(server, { clientAuth: undefined }),
    });
    const token = idp.token();
    // Not in place of another token that the configuration wants.
    const subjectToken = { source: { header: { name: 'x-own' } } };
    await using other = await proxyGateway(upstream.address, {
      jwtAuth,
      ...exchange(server, { subjectToken }),
    });
    expect((await send(other.url, { headers: bearer(token) })).status).toBe(400);
    expect(server.received).toEqual([]);
    await send(gate.url, { headers: bearer(token) });
    expect(Object.fromEntries(form(server))).toMatchObject({ subject_token: token });
    expect(Object.fromEntries(form(server))).not.toHaveProperty('client_id');
    expect(upstream.received[0]?.headers.authorization).toBe('Bearer issued-1');
  });
});

describe('tokens that were exchanged', () => {
  /** The tokens that the backend receives for these tokens of clients, in this order. */
  async function issued(members: object, more: object, tokens: readonly string[]): Promise<unknown[]> {
    await using server = await authorizationServer(members);
    await using upstream = await service();
    await using gate = await proxyGateway(upstream.address, exchange(server, more));
    for (const token of tokens) await send(gate.url, { headers: bearer(token) });
    return upstream.received.map(({ headers }) => headers.authorization?.slice('Bearer issued-'.length));
  }

  test('an exchanged token is kept for its client until it expires', async () => {
    expect(await issued({ expires_in: 300 }, {}, ['a', 'b', 'a', 'b'])).toEqual(['1', '2', '1', '2']);
    expect(await issued({ expires_in: 5 }, {}, ['a', 'a'])).toEqual(['1', '2']);
    expect(await issued({}, {}, ['a', 'a'])).toEqual(['1', '1']);
    expect(await issued({}, { cache: { defaultTtl: '1s' } }, ['a', 'a'])).toEqual(['1', '2']);
  });

  test('an exchanged token that the backend repeats in its answer is not in traces', async () => {
    await using server = await authorizationServer();
    await using upstream = await httpUpstream(({ url }, response) =>
      response.writeHead(200, { 'x-seen': url?.replace('/?own=', '') }).end(),
    );
    // Values of headers with credentials are known by their names.
    const authorizationLocation = { queryParameter: { name: 'own' } };
    await using gate = await proxyGateway(upstream.address, exchange(server, { authorizationLocation }));
    let seen: unknown;
    const trace = await recorded(gate, async () => {
      seen = (await send(gate.url, { headers: bearer('a') })).headers['x-seen'];
    });
    expect(seen).toBe('issued-1');
    expect(JSON.stringify(trace)).toContain('x-seen');
    expect(JSON.stringify(trace)).not.toContain('issued-1');
  });

  test('an exchanged token is only used for the same actor and the same parameters', async () => {
    await using server = await authorizationServer();
    await using upstream = await service();
    const actorToken = { source: { header: { name: 'x-actor' } } };
    const additionalParams = { tenant: 'request.headers["x-tenant"]' };
    await using gate = await proxyGateway(
      upstream.address,
      exchange(server, { actorToken, additionalParams }),
    );
    for (const [actor, tenant] of [
      ['one', 't1'],
      ['two', 't1'],
      ['one', 't2'],
      ['one', 't1'],
    ] as const)
      await send(gate.url, { headers: { ...bearer('a'), 'x-actor': actor, 'x-tenant': tenant } });
    expect(upstream.received.map(({ headers }) => headers.authorization)).toEqual(
      ['1', '2', '3', '1'].map((count) => `Bearer issued-${count}`),
    );
  });

  // Entra 1.0 and AD FS send texts, GitHub no lifetime at all (IBM/mcp-context-forge#3989).
  test.each([
    ['a text', '3600', true],
    ['null', null, true],
    ['a text that is no number', 'soon', true],
    ['true', true, true],
    ['a list', [3600], true],
    ['an object', { toString: 1 }, true],
    ['a fraction', 3600.5, true],
    ['1e308', 1e308, true],
    ['zero', 0, false],
    ['a negative number', -3600, false],
    ['a negative text', '-1', false],
  ])('a token whose lifetime is %s is used, and kept if it is worth it', async (_, lifetime, isKept) => {
    expect(await issued({ expires_in: lifetime }, {}, ['a', 'a'])).toEqual(['1', isKept ? '1' : '2']);
  });

  test.each(['1e308', '1e999', '99999999999999999999'])(
    'a token whose lifetime is %s is replaced after a day',
    async (lifetime) => {
      let count = 0;
      await using server = await httpUpstream((_, response) => {
        count += 1;
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(`{"access_token":"issued-${count}","token_type":"Bearer","expires_in":${lifetime}}`);
      });
      await using upstream = await service();
      await using gate = await proxyGateway(upstream.address, exchange(server));
      await send(gate.url, { headers: bearer('a') });
      await send(gate.url, { headers: bearer('a') });
      const now = performance.now();
      vi.spyOn(performance, 'now').mockImplementation(() => now + 25 * 3_600_000);
      onTestFinished(() => void vi.restoreAllMocks());
      await send(gate.url, { headers: bearer('a') });
      expect(upstream.received.map(({ headers }) => headers.authorization)).toEqual([
        'Bearer issued-1',
        'Bearer issued-1',
        'Bearer issued-2',
      ]);
    },
  );

  test('members of an exchange that are null count as missing', async () => {
    const members = { refresh_token: null, scope: null, id_token: null, issued_token_type: null };
    expect(await issued({ expires_in: 300, ...members }, {}, ['a', 'a'])).toEqual(['1', '1']);
  });

  test('at most maxEntries exchanged tokens are kept', async () => {
    expect(await issued({}, { cache: { maxEntries: 1 } }, ['a', 'a', 'b', 'a'])).toEqual([
      '1',
      '1',
      '2',
      '3',
    ]);
    expect(await issued({}, { cache: { maxEntries: 0 } }, ['a', 'a'])).toEqual(['1', '2']);
  });

  test('requests at the same time share one exchange', async () => {
    const waiting: ServerResponse[] = [];
    await using server = await httpUpstream((_, response) => {
      waiting.push(response);
      json(response, 200, { access_token: 'issued', token_type: 'Bearer', expires_in: 300 });
    });
    await using upstream = await service();
    await using gate = await proxyGateway(upstream.address, exchange(server));
    await Promise.all([1, 2, 3].map(() => send(gate.url, { headers: bearer('a') })));
    expect(waiting).toHaveLength(1);
    expect(upstream.received).toHaveLength(3);
  });

  test('a repeated call of the backend has the exchanged token', async () => {
    await using server = await authorizationServer();
    await using upstream = await httpUpstream((_, response) => {
      response.writeHead(upstream.received.length === 1 ? 503 : 200).end();
    });
    await using gate = await proxyGateway(upstream.address, {
      ...exchange(server),
      retry: { codes: [503], attempts: 2 },
    });
    expect((await send(gate.url, { headers: bearer('a') })).status).toBe(200);
    expect(upstream.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer issued-1',
      'Bearer issued-1',
    ]);
  });
});

describe('token exchanges that fail', () => {
  test.each([
    ['a refusal', 400, { error: 'invalid_grant', error_description: 'canary' }, 400],
    ['a failure of the server', 503, { error: 'x' }, 502],
    ['an answer without a token', 200, { token_type: 'Bearer' }, 502],
    ['a token of another type', 200, { access_token: 'a', token_type: 'mac' }, 502],
    ['an answer that is not an object', 200, [], 502],
    ['a redirect', 302, {}, 502],
    ['an answer without content', 204, {}, 502],
    ['a status over 599', 999, {}, 502],
    ['a number as token', 200, { access_token: 7, token_type: 'Bearer' }, 502],
    ['null as token', 200, { access_token: null, token_type: 'Bearer' }, 502],
    ['a token with a line break', 200, { access_token: 'a\r\nx-evil: 1', token_type: 'Bearer' }, 502],
    ['a token of 20 KB', 200, { access_token: 'a'.repeat(20_000), token_type: 'Bearer' }, 502],
    ['null', 200, null, 502],
    ['a text', 200, 'token', 502],
  ])('after %s, nothing reaches the backend', async (_, status, body, expected) => {
    await using server = await httpUpstream((__, response) => json(response, status, body));
    await using upstream = await service();
    await using gate = await proxyGateway(upstream.address, exchange(server));
    const reply = await send(gate.url, { headers: bearer('a') });
    expect(reply.status).toBe(expected);
    expect(reply.text).not.toContain('canary');
    expect(upstream.received).toEqual([]);
  });

  test('a request without a token gets 400, and one during an outage of the server 502', async () => {
    await using server = await authorizationServer();
    await using upstream = await service();
    await using gate = await proxyGateway(upstream.address, exchange(server));
    expect((await send(gate.url)).status).toBe(400);
    expect(server.received).toEqual([]);
    const host = `127.0.0.1:${await refusingPort()}`;
    await using down = await proxyGateway(upstream.address, exchange(server, { host }));
    expect((await send(down.url, { headers: bearer('a') })).status).toBe(502);
  });
});

describe('backendAuth.oauthTokenExchange configuration', () => {
  test.each([
    ['a path without a slash', { path: 'token' }, /starts with `\/`/],
    ['a parameter of the policy', { additionalParams: { Scope: '"a"' } }, /the policy sets `Scope` itself/],
    [
      'an actor with a JWT bearer grant',
      { grantType: 'jwtBearer', actorToken: { source: { header: { name: 'a' } } } },
      /only the grant/,
    ],
    ['a token type that is no URI', { requestedTokenType: 'jwt' }, /expected a URI/],
    ['basic authentication without a secret', { clientAuth: { clientId: 'a' } }, /needs `clientSecret`/],
    ['an expression that is not valid', { additionalParams: { a: '1 +' } }, /./],
  ])('a token exchange with %s is refused', async (_, more, expected) => {
    await using server = await authorizationServer();
    await expect(proxyGateway('127.0.0.1:1', exchange(server, more))).rejects.toThrow(expected);
  });
});
