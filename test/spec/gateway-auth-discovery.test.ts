import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { TestGateway } from '../kit/gateway.ts';
import { type Idp, json, startIdp } from '../kit/idp.ts';
import { send } from '../kit/send.ts';
import { specifiedGateway } from '../kit/sign-in.ts';
import { verifies } from '../kit/verifies.ts';

const RESOURCE = '/.well-known/oauth-protected-resource/mcp';
const SERVER = '/.well-known/oauth-authorization-server';
const REGISTRATION = `${SERVER}/client-registration`;

async function read({ url }: TestGateway, path: string) {
  const { status, text } = await send(`${url}${path}`);
  expect(status).toBe(200);
  return JSON.parse(text);
}

let idp: Idp;
let shared: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  shared = await specifiedGateway(idp.issuer, { scopes: ['openid', 'profile'] });
});
afterAll(() => Promise.all([shared.close(), idp.upstream.close()]));

describe('OAuth discovery', () => {
  verifies(
    [
      'gateway.service.5',
      'gateway.http.protected-resource',
      'gateway.http.protected-resource.fields',
      'gateway.http.protected-resource.servers',
      'gateway.mcp-auth.resource',
      'gateway.mcp-auth.scopes',
      'gateway.mcp-auth.bearer-methods',
      'gateway.versioning.1.metadata',
    ],
    'OAuth discovery begins with protected resource metadata of six members',
    async () => {
      expect(await read(shared, RESOURCE)).toEqual({
        resource: `${shared.url}/mcp`,
        authorization_servers: [`${shared.url}/mcp`],
        mcp_protocol_version: '2025-06-18',
        resource_type: 'mcp-server',
        bearer_methods_supported: ['header'],
        scopes_supported: ['openid', 'profile'],
      });
    },
  );

  verifies(
    [
      'gateway.http.authorization-server',
      'gateway.http.authorization-server.registration',
      'gateway.http.authorization-server.others',
      'gateway.auth.mcp.6',
      'gateway.outbound.metadata',
    ],
    'authorization server metadata of the provider is served with a changed registration endpoint',
    async () => {
      await using own = await startIdp();
      await using front = await specifiedGateway(own.issuer);
      const metadata = await read(front, SERVER);
      expect(metadata).toMatchObject({
        registration_endpoint: `${front.url}${REGISTRATION}`,
        authorization_endpoint: `${own.issuer}/protocol/openid-connect/auth`,
        token_endpoint: `${own.issuer}/protocol/openid-connect/token`,
        jwks_uri: `${own.issuer}/protocol/openid-connect/certs`,
      });
      expect(own.upstream.received.map(({ target }) => target)).toEqual([
        '/realms/main/.well-known/openid-configuration',
      ]);
    },
  );

  verifies(
    'gateway.auth.mcp.6.rfc8414',
    'OAuth discovery works with RFC 8414 metadata, with the realm after the well-known path',
    async () => {
      await using own = await startIdp();
      own.answers.set('openid-configuration', (_, response) => response.writeHead(404).end());
      await using front = await specifiedGateway(own.issuer, { authentication: { provider: undefined } });
      expect(await read(front, SERVER)).toMatchObject({
        issuer: own.issuer,
        token_endpoint: `${own.issuer}/protocol/openid-connect/token`,
      });
      expect(own.hits('rfc8414')).toBe(1);
    },
  );
});

describe('client registration', () => {
  const client = {
    client_name: 'A client',
    redirect_uris: ['http://127.0.0.1:33418/callback'],
    grant_types: ['authorization_code'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  const register = ({ url }: TestGateway, headers = {}) =>
    send(`${url}${REGISTRATION}`, { method: 'POST', body: JSON.stringify(client), headers });

  verifies(
    [
      'gateway.service.5.registration',
      'gateway.http.registration',
      'gateway.http.registration.reply',
      'gateway.outbound.registration',
    ],
    'client registration is forwarded to the provider, and its client is returned',
    async () => {
      await using own = await startIdp();
      await using front = await specifiedGateway(own.issuer);
      const { status, text } = await register(front);
      expect(status).toBe(201);
      expect(JSON.parse(text)).toEqual({ ...client, client_id: 'generated-1' });
      expect(JSON.parse(own.asked('registration')[0]?.body ?? '')).toEqual(client);
    },
  );

  verifies(
    'gateway.auth.idp.registration',
    'client registration rejected by a provider policy is returned as 403 with its text',
    async () => {
      const refusal = {
        error: 'insufficient_scope',
        error_description:
          "Policy 'Trusted Hosts' rejected request to client-registration service. Details: Host not trusted.",
      };
      await using own = await startIdp();
      own.answers.set('registration', (_, response) => json(response, 403, refusal));
      await using front = await specifiedGateway(own.issuer);
      const { status, text } = await register(front);
      expect(status).toBe(403);
      expect(JSON.parse(text)).toEqual(refusal);
    },
  );

  verifies(
    'gateway.auth.idp.browser',
    'client registration works for pages of any origin, which is not forwarded to the provider',
    async () => {
      await using own = await startIdp();
      await using front = await specifiedGateway(own.issuer);
      const { status, headers } = await register(front, { origin: 'https://page.example' });
      expect(status).toBe(201);
      expect(headers['access-control-allow-origin']).toBe('*');
      expect(own.asked('registration')[0]?.headers).not.toHaveProperty('origin');
    },
  );
});
