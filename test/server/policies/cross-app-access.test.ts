import { describe, expect, test } from 'vitest';
import { AUDIENCE, json, startIdp } from '../../kit/idp.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

const JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const bearer = (token: string): { authorization: string } => ({ authorization: `Bearer ${token}` });

/** The identity provider of the user; issues `assertion-1`, `assertion-2`, …. */
function identityProvider(
  members: object = { issued_token_type: JAG, token_type: 'N_A' },
): Promise<HttpUpstream> {
  let count = 0;
  return httpUpstream((_, response) => {
    count += 1;
    json(response, 200, { access_token: `assertion-${count}`, expires_in: 60, ...members });
  });
}

/** The authorization server of the service; issues `access-1`, `access-2`, …. */
function resourceServer(): Promise<HttpUpstream> {
  let count = 0;
  return httpUpstream((_, response) => {
    count += 1;
    json(response, 200, { access_token: `access-${count}`, token_type: 'Bearer', expires_in: 300 });
  });
}

const settings = (provider: string, resource: string, more: object = {}): object => ({
  backendAuth: {
    crossAppAccess: {
      identityProvider: {
        host: provider,
        path: '/idp/token',
        clientAuth: { method: 'clientSecretPost', clientId: 'agent', clientSecret: 's1' },
      },
      resourceAuthorizationServer: {
        host: resource,
        path: '/as/token',
        clientAuth: { clientId: 'resource-client', clientSecret: 's2' },
      },
      audience: 'https://resource.example',
      ...more,
    },
  },
});
const form = (server: HttpUpstream, at = 0): Record<string, string> =>
  Object.fromEntries(new URLSearchParams(server.received[at]?.body));

describe('backendAuth.crossAppAccess', () => {
  test('the ID token becomes an assertion, the assertion an access token, which alone reaches the service', async () => {
    await using provider = await identityProvider();
    await using resource = await resourceServer();
    await using service = await httpUpstream();
    const more = { scopes: ['todos.read'], resources: ['https://api.example'], accessTokenScopes: [] };
    await using gate = await proxyGateway(
      service.address,
      settings(provider.address, resource.address, more),
    );
    expect((await send(gate.url, { headers: bearer('id-token') })).status).toBe(200);
    expect(provider.received[0]?.target).toBe('/idp/token');
    expect(form(provider)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      requested_token_type: JAG,
      audience: 'https://resource.example',
      resource: 'https://api.example',
      scope: 'todos.read',
      subject_token: 'id-token',
      subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
      client_id: 'agent',
      client_secret: 's1',
    });
    expect(resource.received[0]?.target).toBe('/as/token');
    expect(resource.received[0]?.headers.authorization).toMatch(/^Basic /);
    expect(form(resource)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: 'assertion-1',
    });
    expect(service.received[0]?.headers.authorization).toBe('Bearer access-1');
    expect(JSON.stringify([gate.log, gate.accessLog])).not.toMatch(/id-token|assertion-1|access-1|s1"|s2"/);
  });

  test('a user’s token is requested once; another user gets another one', async () => {
    await using provider = await identityProvider();
    await using resource = await resourceServer();
    await using service = await httpUpstream();
    await using gate = await proxyGateway(service.address, settings(provider.address, resource.address));
    // Tokens of one provider begin alike.
    const [alice, bob] = [`${'a'.repeat(200)}.alice`, `${'a'.repeat(200)}.bob`];
    for (const token of [alice, alice, bob]) await send(gate.url, { headers: bearer(token) });
    expect(service.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer access-1',
      'Bearer access-1',
      'Bearer access-2',
    ]);
    expect(provider.received).toHaveLength(2);
  });

  test('the token that jwtAuth has validated and removed is exchanged', async () => {
    await using idp = await startIdp();
    await using provider = await identityProvider();
    await using resource = await resourceServer();
    await using service = await httpUpstream();
    const jwks = JSON.stringify({ keys: [idp.key.jwk] });
    const jwtAuth = { mode: 'strict', issuer: idp.issuer, audiences: [AUDIENCE], jwks };
    const policies = { jwtAuth, ...settings(provider.address, resource.address) };
    await using gate = await proxyGateway(service.address, policies);
    const token = idp.token();
    expect((await send(gate.url, { headers: bearer(token) })).status).toBe(200);
    expect(form(provider)['subject_token']).toBe(token);
  });

  test.each([
    ['no token of a user', {}, { issued_token_type: JAG, token_type: 'N_A' }, 400],
    ['an access token instead of an assertion', bearer('t'), { token_type: 'Bearer' }, 502],
  ])('with %s, the request fails and the service gets nothing', async (_, headers, members, status) => {
    await using provider = await identityProvider(members);
    await using resource = await resourceServer();
    await using service = await httpUpstream();
    await using gate = await proxyGateway(service.address, settings(provider.address, resource.address));
    expect((await send(gate.url, { headers })).status).toBe(status);
    expect(service.received).toEqual([]);
    expect(resource.received).toEqual([]);
  });

  test('a refusal of the second server is the client’s error, and a dead server is not', async () => {
    await using provider = await identityProvider();
    await using refusing = await httpUpstream((_, response) =>
      json(response, 400, { error: 'invalid_grant' }),
    );
    await using service = await httpUpstream();
    await using gate = await proxyGateway(service.address, settings(provider.address, refusing.address));
    const reply = await send(gate.url, { headers: bearer('t') });
    expect(reply.status).toBe(400);
    expect(reply.text).toContain('refused to exchange the token');
    const dead = `127.0.0.1:${await refusingPort()}`;
    await using broken = await proxyGateway(service.address, settings(dead, refusing.address));
    expect((await send(broken.url, { headers: bearer('t') })).status).toBe(502);
    expect(service.received).toEqual([]);
  });

  test.each([
    [{ subjectToken: { tokenType: JAG } }, 'an assertion cannot be exchanged for an assertion'],
    [{ audience: undefined }, 'required field `audience` is missing'],
    [{ identityProvider: { host: 'a.example:443' } }, 'clientAuth'],
  ])('%j is refused', async (more, message) => {
    await expect(
      proxyGateway('127.0.0.1:1', settings('a.example:443', 'b.example:443', more)),
    ).rejects.toThrow(message);
  });
});
