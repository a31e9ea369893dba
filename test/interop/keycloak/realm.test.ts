import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { openSession } from '../../kit/mcp.ts';
import { OAuthMemory } from '../../kit/oauth-client.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { verifies } from '../../kit/verifies.ts';
import { CLIENT } from './realm.ts';
import { admin, grant, hasKeycloak, initialize, makeRealm, openGateway, TRUSTED, told } from './scene.ts';

const SERVER = '/.well-known/oauth-authorization-server';

afterEach(() => vi.restoreAllMocks());

describe.skipIf(!hasKeycloak)('a Keycloak realm with the specified settings', () => {
  let issuer: string;
  beforeAll(async () => {
    issuer = await makeRealm('right');
  });

  verifies(
    ['gateway.idp.token', 'gateway.auth.mcp.5'],
    'a Keycloak token with the required role is accepted',
    async () => {
      await using gateway = await openGateway(issuer);
      const missing = await initialize(gateway);
      expect(missing.status).toBe(401);
      expect(missing.headers.get('www-authenticate')).toBe(
        `Bearer resource_metadata="${gateway.url}/.well-known/oauth-protected-resource/mcp"`,
      );
      expect(JSON.parse(missing.text)).toEqual({
        error: 'unauthorized',
        error_description: 'JWT token required',
      });
      const alice = await grant(issuer, 'alice');
      const session = await openSession(`${gateway.url}/mcp`, {
        authorization: `Bearer ${alice.access_token}`,
      });
      const { result } = await session.request('tools/call', {
        name: 'echo',
        arguments: { message: 'hello' },
      });
      expect(result.content[0].text).toBe('hello');
      await session.end();
      const bob = await initialize(gateway, (await grant(issuer, 'bob')).access_token);
      expect([bob.status, bob.text]).toEqual([403, 'authorization failed']);
    },
  );

  test('ID tokens and refresh tokens of Keycloak are rejected', async () => {
    await using gateway = await openGateway(issuer);
    const { id_token: idToken, refresh_token: refreshToken } = await grant(issuer, 'alice');
    const withId = await initialize(gateway, idToken);
    expect([withId.status, told(withId)]).toEqual([
      401,
      "the token is of type 'ID', expected 'Bearer': an access token is needed",
    ]);
    expect((await initialize(gateway, refreshToken)).status).toBe(401);
  });

  test('clients find Keycloak metadata through the gateway by both discovery methods', async () => {
    await using gateway = await openGateway(issuer);
    const published = JSON.parse((await send(`${issuer}/.well-known/openid-configuration`)).text);
    const read = JSON.parse((await send(`${gateway.url}${SERVER}/mcp`)).text);
    const { authorization_response_iss_parameter_supported: promised, ...others } = published;
    expect(promised).toBe(true);
    expect(read).toEqual({
      ...others,
      issuer: `${gateway.url}/mcp`,
      registration_endpoint: `${gateway.url}${SERVER}/mcp/client-registration`,
    });
    // From 26.4.0 on, Keycloak also answers where RFC 8414 wants it.
    const jwks = { url: `${issuer}/protocol/openid-connect/certs` };
    await using standard = await openGateway(issuer, { provider: undefined, jwks });
    expect(JSON.parse((await send(`${standard.url}${SERVER}`)).text)).toMatchObject({
      issuer,
      token_endpoint: `${issuer}/protocol/openid-connect/token`,
    });
    expect((await initialize(standard, (await grant(issuer, 'alice')).access_token)).status).toBe(200);
  });

  test('during Keycloak key rotation a token is rejected only after its key has been removed', async () => {
    const clock = performance.now.bind(performance);
    let offset = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => clock() + offset);
    await using gateway = await openGateway(issuer);
    const tokens = [(await grant(issuer, 'alice')).access_token];
    expect((await initialize(gateway, tokens[0])).status).toBe(200);
    for (const [name, priority] of [
      ['second', 200],
      ['third', 300],
    ] as const) {
      await admin.addSigningKey('right', name, priority);
      tokens.push((await grant(issuer, 'alice')).access_token);
      const statuses = await Promise.all(
        tokens.map(async (text) => (await initialize(gateway, text)).status),
      );
      expect(statuses).toEqual(tokens.map(() => 200));
      // Unknown keys are asked for every half minute.
      offset += 31_000;
    }
    await admin.removeSigningKey('right', 'second');
    offset += 900_000;
    await until(async () => (await initialize(gateway, tokens[1])).status === 401);
    expect((await initialize(gateway, tokens[2])).status).toBe(200);
  });
});

describe.skipIf(!hasKeycloak)('a Keycloak realm with other settings', () => {
  test('a Keycloak realm that requires HTTPS makes keys unavailable, and the log has the reason', async () => {
    const issuer = await makeRealm('ssl');
    const { access_token: text } = await grant(issuer, 'alice');
    await admin.updateRealm('ssl', { sslRequired: 'ALL' });
    expect(await grant(issuer, 'alice')).toMatchObject({
      status: 403,
      error: 'invalid_request',
      error_description: 'HTTPS required',
    });
    await using gateway = await openGateway(issuer);
    expect((await initialize(gateway, text)).status).toBe(503);
    expect((await send(`${gateway.url}${SERVER}`)).status).toBe(502);
    expect(gateway.log.filter((line) => line.includes('answered 403 (HTTPS required)'))).toHaveLength(2);
  });

  test('a Keycloak realm without an audience mapper issues tokens for account, which are rejected with the reason', async () => {
    const issuer = await makeRealm('audience', { noAudience: true });
    await using gateway = await openGateway(issuer);
    const reply = await initialize(gateway, (await grant(issuer, 'alice')).access_token);
    expect([reply.status, told(reply)]).toEqual([
      401,
      `the token's audience is 'account', expected '${CLIENT}'`,
    ]);
  });

  verifies(
    'gateway.auth.idp.users',
    'a Keycloak realm with incomplete users issues them no tokens',
    async () => {
      expect(await grant(await makeRealm('users'), 'carol')).toMatchObject({
        status: 400,
        error: 'invalid_grant',
        error_description: 'Account is not fully set up',
      });
    },
  );

  test('a Keycloak token requested under another host name has another issuer', async () => {
    const issuer = await makeRealm('hosts');
    await using gateway = await openGateway(issuer);
    const other = issuer.replace('127.0.0.1', 'localhost');
    const reply = await initialize(gateway, (await grant(other, 'alice')).access_token);
    expect([reply.status, told(reply)]).toEqual([
      401,
      `the token's issuer is '${other}', expected '${issuer}'`,
    ]);
  });

  test('a Keycloak realm rejects client registrations until its Trusted Hosts policy allows them', async () => {
    const issuer = await makeRealm('registration');
    await using gateway = await openGateway(issuer);
    const register = (redirect: string, more: object = {}) =>
      send(`${gateway.url}${SERVER}/client-registration`, {
        method: 'POST',
        body: JSON.stringify({ ...new OAuthMemory().clientMetadata, redirect_uris: [redirect], ...more }),
      });
    const refused = await register('http://127.0.0.1:33418/callback');
    expect(refused.status).toBe(403);
    expect(JSON.parse(refused.text)).toMatchObject({
      error: 'insufficient_scope',
      error_description: expect.stringContaining(
        "Policy 'Trusted Hosts' rejected request to client-registration service",
      ),
    });
    await admin.setRegistrationPolicy('registration', 'trusted-hosts', TRUSTED);
    const registered = await register('http://127.0.0.1:33418/callback');
    expect(registered.status).toBe(201);
    expect(JSON.parse(registered.text).client_id).toMatch(/^[0-9a-f-]{36}$/);
    expect((await register('https://evil.example/callback')).status).toBe(403);
    const openid = await register('http://127.0.0.1:33418/callback', { scope: 'openid' });
    expect([openid.status, JSON.parse(openid.text).error_description]).toEqual([
      403,
      "Policy 'Allowed Client Scopes' rejected request to client-registration service. Details: Not permitted to use specified clientScope",
    ]);
  });
});
