import { describe, expect, test } from 'vitest';
import { AUDIENCE, json, startIdp } from '../../../kit/idp.ts';
import { send } from '../../../kit/send.ts';
import { call, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { seconds, signingKey, token } from '../../../kit/tokens.ts';
import { httpUpstream } from '../../../kit/upstream.ts';

interface Case {
  readonly provider: string;
  /** Paths of the provider. */
  readonly issuer: string;
  readonly keys: string;
  readonly metadata: string;
  readonly registration?: string;
  /** Query of the authorization endpoint that clients are given. */
  readonly query: string;
}

const OPENID = '/.well-known/openid-configuration';
const CASES: readonly Case[] = [
  {
    provider: 'auth0',
    issuer: '/',
    keys: '/.well-known/jwks.json',
    metadata: '/.well-known/oauth-authorization-server',
    query: `?audience=${AUDIENCE}`,
  },
  {
    provider: 'okta',
    issuer: '/oauth2/default',
    keys: '/oauth2/default/.well-known/jwks.json',
    metadata: `/oauth2/default${OPENID}`,
    registration: '/oauth2/v1/clients',
    query: `?audience=${AUDIENCE}`,
  },
  {
    provider: 'descope',
    issuer: '/v1/apps/agentic/P1/S1',
    keys: '/P1/.well-known/jwks.json',
    metadata: `/v1/apps/agentic/P1/S1${OPENID}`,
    registration: '/v1/mgmt/mcp/client/P1/S1/register',
    query: '',
  },
  {
    provider: 'descope',
    issuer: '/P1',
    keys: '/P1/.well-known/jwks.json',
    metadata: `/P1${OPENID}`,
    query: '',
  },
  {
    provider: 'authentik',
    issuer: '/application/o/app/',
    keys: '/application/o/app/jwks/',
    metadata: `/application/o/app${OPENID}`,
    query: '',
  },
  {
    provider: 'keycloak',
    issuer: '/realms/main',
    keys: '/realms/main/protocol/openid-connect/certs',
    metadata: `/realms/main${OPENID}`,
    registration: '/realms/main/clients-registrations/openid-connect',
    query: '',
  },
];

describe('mcpAuthentication.provider: entra', () => {
  const SERVER = '/.well-known/oauth-authorization-server';
  const form = (members: Record<string, string>) => ({
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(members).toString(),
  });

  test('mcpAuthentication forwards sign-ins to Entra without `resource`, and adds the secret for users only', async () => {
    const key = signingKey('k1');
    await using entra = await httpUpstream((_, response, { target }) => {
      const authority = `http://${entra.address}/tenant-1`;
      if (target === '/tenant-1/discovery/v2.0/keys') return json(response, 200, { keys: [key.jwk] });
      if (target === `/tenant-1/v2.0${OPENID}`)
        return json(response, 200, {
          issuer: `${authority}/v2.0`,
          authorization_endpoint: `${authority}/oauth2/v2.0/authorize`,
          token_endpoint: `${authority}/oauth2/v2.0/token`,
        });
      if (target === '/tenant-1/oauth2/v2.0/token') return json(response, 200, { access_token: 'a' });
      return response.writeHead(404).end();
    });
    // The issuer of version 1.0 differs from that of the metadata.
    const issuer = `http://${entra.address}/tenant-1/`;
    const policies = signIn(issuer, { provider: { entra: {} }, clientId: 'app-1', clientSecret: 's3cret' });
    await using guarded = await protectedGateway([{ policies }]);
    const claims = { iss: issuer, aud: AUDIENCE, sub: 'alice', exp: seconds(300) };
    expect((await call(guarded, token(key, claims))).status).toBe(200);

    const served = JSON.parse((await send(guarded.url + SERVER)).text) as Record<string, unknown>;
    expect(served).toMatchObject({
      authorization_endpoint: `http://gateway.example:3000${SERVER}/authorize`,
      token_endpoint: `http://gateway.example:3000${SERVER}/token`,
      code_challenge_methods_supported: ['S256'],
    });
    const sent = await send(
      `${guarded.url}${SERVER}/authorize?client_id=app-1&resource=https%3A%2F%2Fa&state=s%26t`,
    );
    expect([sent.status, sent.headers['location']]).toEqual([
      302,
      `http://${entra.address}/tenant-1/oauth2/v2.0/authorize?client_id=app-1&state=s%26t`,
    ]);

    const code = { grant_type: 'authorization_code', client_id: 'app-1', code: 'c', resource: 'https://a' };
    for (const members of [
      code,
      { ...code, client_id: 'app-2' },
      { grant_type: 'client_credentials', client_id: 'app-1' },
      { ...code, client_secret: 'own' },
    ])
      expect((await send(`${guarded.url}${SERVER}/token`, form(members))).status).toBe(200);
    // Two readers could take different ones.
    for (const repeated of ['client_id=app-2', 'grant_type=client_credentials']) {
      const { body, ...request } = form(code);
      const twice = { ...request, body: `${body}&${repeated}` };
      expect((await send(`${guarded.url}${SERVER}/token`, twice)).status).toBe(200);
    }
    const secrets = entra.received
      .filter(({ target }) => target.endsWith('/token'))
      .map(({ body }) => new URLSearchParams(body).get('client_secret'));
    expect(secrets).toEqual(['s3cret', null, null, 'own', null, null]);
    expect(entra.received.some(({ body }) => body.includes('resource'))).toBe(false);
    expect((await send(`${guarded.url}${SERVER}/token`)).status).toBe(405);
  });

  test('mcpAuthentication refuses clientSecret for other providers', async () => {
    const policies = signIn('https://idp.example', { clientSecret: 's3cret' });
    await expect(protectedGateway([{ policies }])).rejects.toThrow(/`clientSecret` has no effect/);
  });
});

describe('mcpAuthentication.provider', () => {
  test.each(CASES)(
    'mcpAuthentication finds keys, metadata and registration of $provider at $issuer',
    async ({ provider, issuer: path, keys, metadata, registration, query }) => {
      const key = signingKey('k1');
      await using idp = await httpUpstream((_, response, { target }) => {
        const issuer = `http://${idp.address}${path}`;
        if (target === keys) return json(response, 200, { keys: [key.jwk] });
        if (target === metadata)
          return json(response, 200, {
            issuer,
            authorization_endpoint: `http://${idp.address}/authorize`,
            token_endpoint: `http://${idp.address}/token`,
          });
        if (target === registration) return json(response, 201, { client_id: 'generated-1' });
        return response.writeHead(404).end();
      });
      const issuer = `http://${idp.address}${path}`;
      await using guarded = await protectedGateway([
        { policies: signIn(issuer, { provider: { [provider]: {} } }) },
      ]);
      const claims = { iss: issuer, aud: AUDIENCE, sub: 'alice', typ: 'Bearer', exp: seconds(300) };
      expect((await call(guarded, token(key, claims))).status).toBe(200);
      const server = await send(`${guarded.url}/.well-known/oauth-authorization-server`);
      expect(server.status).toBe(200);
      const served = JSON.parse(server.text) as Record<string, string>;
      expect(served['authorization_endpoint']).toBe(`http://${idp.address}/authorize${query}`);
      expect(served['registration_endpoint'] !== undefined).toBe(registration !== undefined);
      const registered = await send(
        `${guarded.url}/.well-known/oauth-authorization-server/client-registration`,
        { method: 'POST', body: '{"redirect_uris":[]}' },
      );
      expect(registered.status).toBe(registration === undefined ? 502 : 201);
    },
  );

  test.each(['auth0', 'okta'])(
    'mcpAuthentication serves metadata of %s without an authorization endpoint',
    async (provider) => {
      await using idp = await startIdp();
      idp.metadata = { authorization_endpoint: null };
      await using guarded = await protectedGateway([
        { policies: signIn(idp.issuer, { provider: { [provider]: {} } }) },
      ]);
      const served = await send(`${guarded.url}/.well-known/oauth-authorization-server`);
      expect(served.status).toBe(200);
      expect(JSON.parse(served.text)).not.toHaveProperty('authorization_endpoint');
      expect(JSON.parse(served.text)).toHaveProperty('token_endpoint');
    },
  );

  test('mcpAuthentication warns of authentik without clientId, and answers registrations with it', async () => {
    await using idp = await httpUpstream((_, response) => response.writeHead(404).end());
    const issuer = `http://${idp.address}/application/o/app/`;
    const provider = { authentik: {} };
    await using without = await protectedGateway([{ policies: signIn(issuer, { provider }) }]);
    expect(without.running).toBeDefined();
    await using guarded = await protectedGateway([
      { policies: signIn(issuer, { provider, clientId: 'registered-1' }) },
    ]);
    const registered = await send(
      `${guarded.url}/.well-known/oauth-authorization-server/client-registration`,
      { method: 'POST', body: '{"redirect_uris":["http://localhost:1/cb"]}' },
    );
    expect(JSON.parse(registered.text)).toMatchObject({ client_id: 'registered-1' });
  });
});
