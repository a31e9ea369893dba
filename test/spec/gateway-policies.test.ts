import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { DAEMON_HOST, identityDaemon } from '../kit/authz.ts';
import { chaos } from '../kit/config.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { INITIALIZE, MCP_HEADERS, post } from '../kit/mcp.ts';
import { meshConfig } from '../kit/mesh-config.ts';
import { type HttpReply, type SendOptions, send } from '../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../kit/upstream.ts';
import { verifies } from '../kit/verifies.ts';

/** An address of this machine in place of one of the mesh. */
const MESH = '127.100.64.7';

const initialize = (more: SendOptions = {}): SendOptions => ({
  method: 'POST',
  body: JSON.stringify(INITIALIZE),
  ...more,
  headers: { ...MCP_HEADERS, ...more.headers },
});

describe('external authorization', () => {
  let daemon: HttpUpstream;
  let mesh: TestGateway;
  beforeAll(async () => {
    daemon = await identityDaemon({ [MESH]: { node: 'laptop.mesh.example.', login: 'ada@example.com' } });
    mesh = await gateway(meshConfig(daemon.address.replace('unix:', '')));
  });
  afterAll(async () => {
    await Promise.all([mesh.close(), daemon.close()]);
  });
  const from = (address: string): Promise<HttpReply> =>
    send(`${mesh.url}/mcp`, initialize({ from: address }));

  verifies(
    [
      'gateway.service.6',
      'gateway.auth.ext.1',
      'gateway.auth.ext.2',
      'gateway.auth.ext.3',
      'gateway.ext-authz.host',
      'gateway.ext-authz.host.unix',
      'gateway.ext-authz.path',
      'gateway.ext-authz.headers',
      'gateway.ext-authz.headers.authority',
      'gateway.outbound.ext-authz',
      'gateway.outbound.ext-authz.whois',
      'gateway.cel.source',
    ],
    'extAuthz sends the source address of every request to a daemon behind a socket, and a known one is admitted',
    async () => {
      const before = daemon.received.length;
      for (let i = 0; i < 2; i += 1) {
        const reply = await from(MESH);
        expect(reply.status).toBe(200);
        expect(reply.headers['mcp-session-id']).toBeDefined();
      }
      const calls = daemon.received.slice(before);
      expect(calls.map(({ target }) => target)).toEqual(Array(2).fill(`/localapi/v0/whois?addr=${MESH}`));
      expect(calls.map(({ headers }) => headers.host)).toEqual([DAEMON_HOST, DAEMON_HOST]);
    },
  );

  verifies(
    ['gateway.auth.ext.2.denied', 'gateway.auth.ext.2.no-identity', 'gateway.errors.ext-authz'],
    'extAuthz rejects a client without an identity, such as localhost',
    async () => {
      expect(await from('127.0.0.1')).toMatchObject({ status: 403, text: 'external authorization failed' });
      expect(daemon.received.at(-1)?.target).toBe('/localapi/v0/whois?addr=127.0.0.1');
    },
  );

  verifies(
    [
      'gateway.service.6.metadata',
      'gateway.ext-authz.metadata',
      'gateway.ext-authz.metadata.json',
      'gateway.outbound.ext-authz.reply',
      'gateway.cel.response-body',
      'gateway.cel.extauthz',
      'gateway.cel.function.json',
      'gateway.auth.ext.5',
      'gateway.config.access-log-add',
      'gateway.log.added',
    ],
    "extAuthz adds the daemon's metadata at the end of each access log line",
    async () => {
      const before = mesh.accessLog.length;
      await from(MESH);
      await from(MESH);
      await from('127.0.0.1');
      await mesh.accessLine(before + 3);
      const [first, second, refused] = mesh.accessLog.slice(before);
      for (const line of [first, second])
        expect(line).toMatch(/ duration=\d+ms node="laptop\.mesh\.example\." login="ada@example\.com"\n$/);
      expect(refused).toMatch(/ http\.status=403 .* duration=\d+ms\n$/);
    },
  );

  verifies('gateway.auth.ext.4', 'extAuthz accepts socket paths of Linux and macOS', async () => {
    for (const folder of ['/run', '/var/run']) {
      await using gate = await gateway(meshConfig(`${folder}/agctl-no-such-daemon/daemon.sock`));
      expect((await send(`${gate.url}/mcp`, initialize())).status).toBe(403);
      expect((await gate.accessLine(1))['error.detail']).toContain('the socket does not exist');
    }
  });
});

describe('cors', () => {
  const ORIGIN = 'http://localhost:8080';
  let open: TestGateway;
  beforeAll(async () => {
    const cors = { allowOrigins: ['*'], allowHeaders: ['*'], exposeHeaders: ['Mcp-Session-Id'] };
    open = await gateway(routeWith({ cors }));
  });
  afterAll(() => open.close());

  verifies(
    'gateway.cors.origins',
    'cors lets pages of the listed origins, or of any, read responses',
    async () => {
      const origin = async (gate: TestGateway, from: string): Promise<unknown> =>
        (await send(`${gate.url}/mcp`, initialize({ headers: { origin: from } }))).headers[
          'access-control-allow-origin'
        ];
      expect(await origin(open, ORIGIN)).toBe(ORIGIN);
      await using listed = await gateway(routeWith({ cors: { allowOrigins: [ORIGIN] } }));
      expect(await origin(listed, ORIGIN)).toBe(ORIGIN);
      expect(await origin(listed, 'http://localhost:9')).toBeUndefined();
    },
  );

  verifies('gateway.cors.headers', 'cors allows the listed request headers, or any', async () => {
    const allowed = async (gate: TestGateway): Promise<unknown> => {
      const headers = {
        origin: ORIGIN,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type,mcp-protocol-version',
      };
      const reply = await send(`${gate.url}/mcp`, { method: 'OPTIONS', headers });
      expect(reply.status).toBe(200);
      return reply.headers['access-control-allow-headers'];
    };
    expect(await allowed(open)).toBe('content-type,mcp-protocol-version');
    await using listed = await gateway(
      routeWith({ cors: { allowOrigins: ['*'], allowHeaders: ['content-type'] } }),
    );
    expect(await allowed(listed)).toBe('content-type');
  });

  verifies('gateway.cors.expose', 'cors exposes Mcp-Session-Id to pages', async () => {
    const { headers } = await send(`${open.url}/mcp`, initialize({ headers: { origin: ORIGIN } }));
    expect(headers['access-control-expose-headers']).toBe('Mcp-Session-Id');
    expect(headers['mcp-session-id']).toBeDefined();
  });
});

/** One MCP route with these policies. */
function routeWith(policies: object): string {
  const routes = [{ policies, backends: [{ mcp: { targets: [chaos('tools')] } }] }];
  return JSON.stringify({ gateways: { default: { port: 0, routes } } });
}

/** One route with these rules, which answers itself. */
const ruled = (...rules: string[]): Promise<TestGateway> =>
  gateway(
    JSON.stringify({
      gateways: {
        default: { port: 0, routes: [{ policies: { authorization: { rules }, directResponse: {} } }] },
      },
    }),
  );

describe('authorization', () => {
  verifies(
    [
      'gateway.authorization.rules',
      'gateway.service.2.policies',
      'gateway.errors.rule',
      'gateway.auth.mcp.5.refused',
    ],
    'authorization admits a request for which every rule is true, and answers others with 403',
    async () => {
      await using gate = await gateway(
        routeWith({
          authorization: { rules: ['request.headers["x-a"] == "1"', 'request.headers["x-b"] == "1"'] },
        }),
      );
      const status = async (headers: Record<string, string>) =>
        (await post(`${gate.url}/mcp`, INITIALIZE, headers)).status;
      expect(await status({ 'x-a': '1', 'x-b': '1' })).toBe(200);
      expect(await status({ 'x-a': '1', 'x-b': '2' })).toBe(403);
      expect(await status({ 'x-b': '1' })).toBe(403);
    },
  );

  verifies(
    [
      'gateway.service.4.claims',
      'gateway.authorization.claims',
      'gateway.authorization.roles',
      'gateway.authorization.place',
      'gateway.auth.mcp.5',
      'gateway.cel.jwt',
      'gateway.route.policies',
    ],
    'authorization beside mcpAuthentication, cors and extAuthz reads the claims of the validated token',
    async () => {
      await using service = await httpUpstream();
      const issuer = 'http://idp.example/realms/main';
      const { publicKey, privateKey } = await generateKeyPair('RS256');
      const { privateKey: otherKey } = await generateKeyPair('RS256');
      const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'RS256' }] });
      await using gate = await gateway(
        routeWith({
          cors: { allowOrigins: ['*'] },
          mcpAuthentication: { mode: 'strict', issuer, audiences: ['mcp'], jwks },
          extAuthz: { host: service.address, protocol: { http: {} } },
          authorization: { rules: ['"mcp-user" in jwt.realm_access.roles', 'jwt.sub == "ada"'] },
        }),
      );
      const status = async (sub: string, roles: string[] | undefined, key = privateKey): Promise<number> => {
        const token = await new SignJWT({ ...(roles && { realm_access: { roles } }) })
          .setProtectedHeader({ alg: 'RS256', kid: 'k' })
          .setIssuer(issuer)
          .setAudience('mcp')
          .setSubject(sub)
          .setExpirationTime('5m')
          .sign(key);
        return (await post(`${gate.url}/mcp`, INITIALIZE, { authorization: `Bearer ${token}` })).status;
      };
      expect(await status('ada', ['other', 'mcp-user'])).toBe(200);
      expect(await status('ada', ['other'])).toBe(403);
      expect(await status('ada', undefined)).toBe(403);
      expect(await status('eve', ['mcp-user'])).toBe(403);
      // The rules do not matter: this token is invalid.
      expect(await status('ada', ['mcp-user'], otherKey)).toBe(401);
    },
  );
});

describe('CEL', () => {
  verifies(
    ['gateway.cel.request.headers', 'gateway.cel.request.path', 'gateway.cel.request.method'],
    'CEL reads headers, path and method of a request',
    async () => {
      await using gate = await ruled(
        'request.headers["X-Team"] == "a"',
        'request.path == "/some/path"',
        'request.method == "PUT"',
      );
      const headers = { 'x-team': 'a' };
      const status = async (path: string, options: SendOptions) =>
        (await send(`${gate.url}${path}`, options)).status;
      expect(await status('/some/path?query=1', { method: 'PUT', headers })).toBe(200);
      expect(await status('/some/path', { method: 'PUT' })).toBe(403);
      expect(await status('/some/path', { headers })).toBe(403);
      expect(await status('/some', { method: 'PUT', headers })).toBe(403);
    },
  );

  verifies(
    ['gateway.cel.function.min', 'gateway.cel.function.conditional', 'gateway.cel.function.in'],
    'CEL supports min, the conditional operator and in',
    async () => {
      await using gate = await ruled(
        'min(size(request.headers["x-a"]), 3) == (request.path == "/long" ? 3 : 2)',
        'request.method in ["GET", "HEAD"]',
      );
      const status = async (path: string, a: string, method = 'GET') =>
        (await send(`${gate.url}${path}`, { method, headers: { 'x-a': a } })).status;
      expect([await status('/long', 'abcde'), await status('/long', 'ab')]).toEqual([200, 403]);
      expect([await status('/', 'ab'), await status('/', 'abcde')]).toEqual([200, 403]);
      expect(await status('/', 'ab', 'POST')).toBe(403);
    },
  );
});
