import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { TestGateway } from '../kit/gateway.ts';
import { type Idp, json, startIdp } from '../kit/idp.ts';
import { INITIALIZE, type McpReply, openSession, post } from '../kit/mcp.ts';
import { specifiedGateway } from '../kit/sign-in.ts';
import { signingKey, token } from '../kit/tokens.ts';
import { verifies } from '../kit/verifies.ts';

const RESOURCE = '/.well-known/oauth-protected-resource/mcp';

function initialize({ url }: TestGateway, bearer?: string): Promise<McpReply> {
  return post(`${url}/mcp`, INITIALIZE, bearer === undefined ? {} : { authorization: `Bearer ${bearer}` });
}

let idp: Idp;
let shared: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  shared = await specifiedGateway(idp.issuer);
});
afterAll(() => Promise.all([shared.close(), idp.upstream.close()]));

describe('bearer tokens', () => {
  verifies(
    [
      'gateway.service.4',
      'gateway.mcp-auth.mode',
      'gateway.auth.mcp.1',
      'gateway.http.mcp-post.authorization',
    ],
    'a bearer token is required for every request to a route in strict mode',
    async () => {
      const requests = [
        await initialize(shared),
        await initialize(shared, 'nonsense'),
        await initialize(shared, token(signingKey(idp.key.kid), idp.claims())),
      ];
      expect(requests.map(({ status }) => status)).toEqual([401, 401, 401]);
      expect((await fetch(`${shared.url}/mcp`)).status).toBe(401);
      expect((await fetch(`${shared.url}/mcp`, { method: 'DELETE' })).status).toBe(401);
      const session = await openSession(`${shared.url}/mcp`, { authorization: `Bearer ${idp.token()}` });
      expect((await session.request('tools/list')).result.tools).not.toEqual([]);
      await session.end();
    },
  );

  verifies(
    ['gateway.auth.mcp.4', 'gateway.errors.no-token'],
    'a missing bearer token gives 401 with the header and body of the specification',
    async () => {
      const { status, headers, text } = await initialize(shared);
      expect(status).toBe(401);
      expect(headers.get('www-authenticate')).toBe(`Bearer resource_metadata="${shared.url}${RESOURCE}"`);
      expect(headers.get('content-type')).toBe('application/json');
      expect(JSON.parse(text)).toEqual({ error: 'unauthorized', error_description: 'JWT token required' });
    },
  );

  verifies(
    ['gateway.auth.mcp.2', 'gateway.mcp-auth.issuer.equal', 'gateway.mcp-auth.audiences'],
    'a bearer token must have the issuer and one of the audiences',
    async () => {
      await using front = await specifiedGateway(idp.issuer, {
        authentication: { audiences: ['one', 'two'] },
      });
      const status = async (more: object) => (await initialize(front, idp.token({ ...more }))).status;
      expect(await status({ aud: 'one' })).toBe(200);
      expect(await status({ aud: ['other', 'two'] })).toBe(200);
      expect(await status({ aud: ['other'] })).toBe(401);
      expect(await status({ aud: 'one', iss: `${idp.issuer}x` })).toBe(401);
      await expect(
        specifiedGateway(idp.issuer, { authentication: { audiences: undefined } }),
      ).rejects.toThrow(/audiences/);
    },
  );

  verifies(
    ['gateway.mcp-auth.issuer', 'gateway.auth.idp.realm'],
    'the issuer of a bearer token must be the configured realm',
    async () => {
      expect(idp.issuer).toMatch(/\/realms\/main$/);
      expect((await initialize(shared, idp.token())).status).toBe(200);
      const other = await initialize(shared, idp.token({ iss: idp.issuer.replace('/main', '/other') }));
      expect(other.status).toBe(401);
      await expect(specifiedGateway(idp.issuer, { authentication: { issuer: undefined } })).rejects.toThrow(
        /issuer/,
      );
    },
  );

  verifies(
    'gateway.auth.mcp.7',
    'the audience of a bearer token is the one that the realm issues, not the resource that a client requests',
    async () => {
      expect((await initialize(shared, idp.token({ aud: 'mcp-client' }))).status).toBe(200);
      expect((await initialize(shared, idp.token({ aud: `${shared.url}/mcp` }))).status).toBe(401);
    },
  );

  verifies(
    'gateway.auth.idp.audience',
    'a bearer token of a realm without an audience mapper is rejected with an error that says what is missing',
    async () => {
      const reply = await initialize(shared, idp.token({ aud: 'account' }));
      expect(reply.status).toBe(401);
      expect(JSON.parse(reply.text).error_description).toBe(
        "the token's audience is 'account', expected 'mcp-client'",
      );
    },
  );

  verifies(
    'gateway.auth.idp.host',
    'a bearer token requested under another host name is rejected with an error that names both issuers',
    async () => {
      const iss = idp.issuer.replace('127.0.0.1', 'localhost');
      const reply = await initialize(shared, idp.token({ iss }));
      expect(reply.status).toBe(401);
      expect(JSON.parse(reply.text).error_description).toBe(
        `the token's issuer is '${iss}', expected '${idp.issuer}'`,
      );
    },
  );
});

describe('signing keys', () => {
  verifies(
    ['gateway.auth.mcp.3', 'gateway.outbound.keys', 'gateway.mcp-auth.provider'],
    'signing keys come from the certs path below the issuer with idpx, which has no fields',
    async () => {
      await using own = await startIdp();
      await using front = await specifiedGateway(own.issuer);
      expect((await initialize(front, own.token())).status).toBe(200);
      expect(own.upstream.received.map(({ target }) => target)).toEqual([
        '/realms/main/protocol/openid-connect/certs',
      ]);
      const authentication = { provider: { idpx: { field: 1 } } };
      await expect(specifiedGateway(own.issuer, { authentication })).rejects.toThrow(/provider/);
    },
  );

  verifies(
    ['gateway.auth.mcp.3.jwks', 'gateway.mcp-auth.jwks'],
    'signing keys come from the configured jwks URL',
    async () => {
      await using own = await startIdp();
      const key = signingKey('elsewhere');
      const authentication = { jwks: JSON.stringify({ keys: [key.jwk] }) };
      await using front = await specifiedGateway(own.issuer, { authentication });
      expect((await initialize(front, token(key, own.claims()))).status).toBe(200);
      expect((await initialize(front, own.token())).status).toBe(401);
      expect(own.upstream.received).toEqual([]);
    },
  );

  verifies(
    'gateway.auth.idp.transport',
    'signing keys of a provider that requires HTTPS cannot be fetched over HTTP, and the log says so',
    async () => {
      await using own = await startIdp();
      own.answers.set('certs', (_, response) =>
        json(response, 403, { error: 'invalid_request', error_description: 'HTTPS required' }),
      );
      await using front = await specifiedGateway(own.issuer);
      expect((await initialize(front, own.token())).status).toBe(503);
      expect(front.log.join('')).toContain(
        `${own.issuer}/protocol/openid-connect/certs answered 403 (HTTPS required)`,
      );
    },
  );
});

describe('authorization rules', () => {
  verifies(
    [
      'gateway.service.4.claims',
      'gateway.authorization.rules',
      'gateway.authorization.claims',
      'gateway.authorization.roles',
      'gateway.authorization.place',
      'gateway.cel.jwt',
      'gateway.cel.function.in',
      'gateway.auth.mcp.5',
      'gateway.auth.mcp.5.refused',
      'gateway.errors.rule',
    ],
    'authorization rules are all evaluated after the token is validated, and a failing one gives 403',
    async () => {
      const authorization = { rules: ['"tools" in jwt.realm_access.roles', 'jwt.email_verified'] };
      await using front = await specifiedGateway(idp.issuer, { policies: { authorization } });
      const both = { realm_access: { roles: ['offline_access', 'tools'] }, email_verified: true };
      const status = async (more: object) => (await initialize(front, idp.token({ ...more }))).status;
      expect(await status(both)).toBe(200);
      expect(await status({ ...both, email_verified: false })).toBe(403);
      expect(await status({ ...both, realm_access: { roles: ['offline_access'] } })).toBe(403);
      expect(await status({})).toBe(403);
      // The token is validated first.
      expect((await initialize(front)).status).toBe(401);
      expect(await status({ ...both, exp: 1 })).toBe(401);
    },
  );
});
