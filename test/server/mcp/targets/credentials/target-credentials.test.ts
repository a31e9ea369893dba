import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { AUDIENCE, type Idp, startIdp } from '../../../../kit/idp.ts';
import { openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../../../kit/mcp-upstream.ts';
import { openApi } from '../../../../kit/openapi.ts';
import { sseServer } from '../../../../kit/sse-server.ts';
import { exchangeServer, issuedFor } from '../../../../kit/token-exchange.ts';
import { signingKey } from '../../../../kit/tokens.ts';
import { httpUpstream } from '../../../../kit/upstream.ts';

const target = ({ url: host }: { readonly url: string }, policies: object, name = 'up'): object => ({
  name,
  mcp: { host },
  policies,
});
const jwtAuth = ({ issuer, key }: Idp): object => ({
  mode: 'strict',
  issuer,
  audiences: [AUDIENCE],
  jwks: JSON.stringify({ keys: [key.jwk] }),
});
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

/** The values of a header in all requests that a server got. */
const values = ({ received }: McpUpstream, name = 'authorization'): unknown[] => [
  ...new Set(received.map(({ headers }) => headers[name])),
];

/** Runs one session with a call of each tool. */
async function use(
  config: string,
  headers: Record<string, string> = {},
  tools = ['say'],
  args: object = { message: 'hi' },
): Promise<string[]> {
  await using gate = await gateway(config);
  const session = await openSession(`${gate.url}/mcp`, headers);
  await session.request('tools/list');
  const said: string[] = [];
  for (const tool of tools) {
    const { result, error } = await session.request('tools/call', {
      name: tool,
      arguments: args,
    });
    said.push(result?.content[0].text ?? error.message);
  }
  await session.end();
  return said;
}

describe('the credential of an MCP target', () => {
  // agentgateway/agentgateway#2933: connectors that list before they sign in, on a route without sessions.
  test.each(['stateless', 'stateful'])(
    'passthrough sends the validated token with every request in a %s route',
    async (statefulMode) => {
      await using idp = await startIdp();
      await using up = await mcpUpstream();
      const policies = { backendAuth: { passthrough: {} } };
      const own = bearer(idp.token());
      const config = mcpConfig([target(up, policies)], {
        backend: { statefulMode },
        route: { policies: { jwtAuth: jwtAuth(idp) } },
      });
      if (statefulMode === 'stateful') expect(await use(config, own)).toEqual(['up says hi']);
      else {
        await using gate = await gateway(config);
        const { result } = await post(`${gate.url}/mcp`, { jsonrpc: '2.0', ...toolCall(1, 'say') }, own);
        expect(result.content[0].text).toContain('up says');
      }
      expect(up.of('tools/call')).toHaveLength(1);
      expect(up.received.map(({ verb }) => verb)).toContain('DELETE');
      expect(values(up)).toEqual([own.authorization]);
    },
  );

  test('passthrough without a policy that validates tokens sends none', async () => {
    await using up = await mcpUpstream();
    await use(mcpConfig([target(up, { backendAuth: { passthrough: {} } })]), bearer('not-validated'));
    expect(values(up)).toEqual([undefined]);
  });

  test('each target of a route gets a token of its own audience, and no other', async () => {
    await using server = await exchangeServer();
    await using a = await mcpUpstream({ name: 'a' });
    await using b = await mcpUpstream({ name: 'b' });
    await using bare = await mcpUpstream({ name: 'bare' });
    const targets = [
      target(a, { backendAuth: { oauthTokenExchange: server.exchange('https://a') } }, 'a'),
      target(b, { backendAuth: { oauthTokenExchange: server.exchange('https://b') } }, 'b'),
      { name: 'bare', mcp: { host: bare.url } },
    ];
    const said = await use(mcpConfig(targets), bearer('of-alice'), ['a_say', 'b_say', 'bare_say']);
    expect(said).toEqual(['a says hi', 'b says hi', 'bare says hi']);
    expect(values(a)).toEqual([`Bearer ${issuedFor('of-alice', 'https://a')}`]);
    expect(values(b)).toEqual([`Bearer ${issuedFor('of-alice', 'https://b')}`]);
    // A target without `backendAuth` gets what it always got.
    expect(new Set(values(bare))).toEqual(new Set(['Bearer of-alice', undefined]));
    expect(server.asked).toHaveLength(2);
  });

  test('tokens in headers of their own are exchanged, and are not sent to that target', async () => {
    await using server = await exchangeServer();
    await using up = await mcpUpstream();
    const oauthTokenExchange = server.exchange('x', {
      subjectToken: { source: { header: { name: 'x-own' } } },
      actorToken: { source: { header: { name: 'x-agent' } } },
      authorizationLocation: { header: { name: 'x-token', prefix: 'T ' } },
    });
    const headers = {
      ...bearer('for-the-gateway'),
      'x-own': 'of-bob',
      'x-agent': 'of-a-bot',
      'x-token': 'no',
    };
    await use(mcpConfig([target(up, { backendAuth: { oauthTokenExchange } })]), headers);
    expect(values(up, 'x-token')).toEqual([`T ${issuedFor('of-bob', 'x')}`]);
    for (const name of ['authorization', 'x-own', 'x-agent']) expect(values(up, name)).toEqual([undefined]);
    expect(new URLSearchParams(server.received[0]?.body).get('actor_token')).toBe('of-a-bot');
  });

  test('crossAppAccess asks both servers', async () => {
    await using provider = await httpUpstream((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          access_token: 'assertion-of-alice',
          issued_token_type: 'urn:ietf:params:oauth:token-type:id-jag',
          token_type: 'N_A',
          expires_in: 300,
        }),
      ),
    );
    await using server = await exchangeServer();
    await using up = await mcpUpstream();
    const at = (address: string) => ({
      host: address,
      path: '/t',
      clientAuth: { clientId: 'g', clientSecret: 's' },
    });
    const crossAppAccess = {
      identityProvider: at(provider.address),
      resourceAuthorizationServer: at(server.address),
      audience: 'https://as.example',
    };
    await use(mcpConfig([target(up, { backendAuth: { crossAppAccess } })]), bearer('of-alice'));
    expect(values(up)).toEqual([`Bearer ${issuedFor('assertion-of-alice', '')}`]);
  });

  test('jwtSign signs a token for the target', async () => {
    const key = signingKey('own');
    await using up = await mcpUpstream();
    const pem = key.privateKey.export({ type: 'pkcs8', format: 'pem' });
    const jwtSign = { signingKey: pem, alg: 'ES256', claims: { iss: 'gateway', aud: 'up' } };
    await use(mcpConfig([target(up, { backendAuth: { jwtSign } })]), bearer('mine'));
    for (const { headers } of up.received) {
      const [, payload = ''] = String(headers['authorization']).split('.');
      expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toMatchObject({
        iss: 'gateway',
        aud: 'up',
      });
    }
    expect(up.received.map(({ verb }) => verb)).toContain('DELETE');
  });

  test.each<[string, object, string, (up: McpUpstream) => unknown[]]>([
    [
      'a header',
      { header: { name: 'x-key', prefix: 'K ' } },
      'K sesame-1234567890',
      (up) => values(up, 'x-key'),
    ],
    ['a cookie', { cookie: { name: 'k' } }, 'k=sesame-1234567890', (up) => values(up, 'cookie')],
    [
      'a query parameter',
      { queryParameter: { name: 'k' } },
      '/mcp?v=1&k=sesame-1234567890',
      (up) => [...new Set(up.received.map(({ path }) => path))],
    ],
  ])('a key is in %s', async (_, location, expected, of) => {
    await using up = await mcpUpstream();
    const key = { value: 'sesame-1234567890', location };
    const policies = {
      backendAuth: { key, credentials: [{ key: 'second', location: { header: { name: 'x-2' } } }] },
    };
    await use(mcpConfig([target({ url: `${up.url}?v=1&k=of-the-url` }, policies)]), bearer('mine'));
    expect(of(up)).toEqual([expected]);
    expect(values(up, 'x-2')).toEqual(['second']);
    expect(values(up)).toEqual([undefined]);
  });

  test('every request of an HTTP+SSE target carries the token of the caller', async () => {
    await using server = await exchangeServer();
    await using up = await sseServer();
    const policies = { backendAuth: { oauthTokenExchange: server.exchange('sse') } };
    await using gate = await gateway(mcpConfig([{ name: 'up', sse: { host: up.url }, policies }]));
    const session = await openSession(`${gate.url}/mcp`, bearer('of-alice'));
    const { result } = await session.request('tools/call', { name: 'echo', arguments: { message: 'hi' } });
    expect(result.content[0].text).toBe('hi');
    expect(up.received.map(({ what }) => what.split(' ')[0])).toContain('GET');
    expect(new Set(up.received.map(({ headers }) => headers.authorization))).toEqual(
      new Set([`Bearer ${issuedFor('of-alice', 'sse')}`]),
    );
    await session.end();
  });

  // agentgateway/agentgateway#641: an API behind an OpenAPI target that got no `Authorization`.
  test('an OpenAPI target gets the token of the caller, and not its own header', async () => {
    await using server = await exchangeServer();
    await using api = await httpUpstream((_, response) => response.end('{"hello":"world"}'));
    const schema = openApi({ '/greet': { get: { operationId: 'greet', responses: {} } } });
    const openapi = { host: `http://${api.address}`, schema: JSON.stringify(schema) };
    const policies = { backendAuth: { oauthTokenExchange: server.exchange('api') } };
    const config = mcpConfig([{ name: 'api', openapi, policies }]);
    expect(await use(config, bearer('of-alice'), ['greet'], {})).toEqual(['{"hello":"world"}']);
    expect(api.received.map(({ headers }) => headers['authorization'])).toEqual([
      `Bearer ${issuedFor('of-alice', 'api')}`,
    ]);
  });

  test('a target takes the place of the credential of its route', async () => {
    await using a = await mcpUpstream({ name: 'a' });
    await using b = await mcpUpstream({ name: 'b' });
    const targets = [
      target(a, { backendAuth: { key: 'of-the-target' } }, 'a'),
      { name: 'b', mcp: { host: b.url } },
    ];
    await use(mcpConfig(targets, { route: { policies: { backendAuth: { key: 'of-the-route' } } } }));
    expect(values(a)).toEqual(['Bearer of-the-target']);
    expect(new Set(values(b))).toEqual(new Set(['Bearer of-the-route', undefined]));
  });

  test('a target gets no credential of its route in another header', async () => {
    await using a = await mcpUpstream({ name: 'a' });
    await using b = await mcpUpstream({ name: 'b' });
    const targets = [
      target(a, { backendAuth: { key: 'of-the-target' } }, 'a'),
      { name: 'b', mcp: { host: b.url } },
    ];
    const key = { value: 'of-the-route', location: { header: { name: 'X-Key' } } };
    await use(mcpConfig(targets, { route: { policies: { backendAuth: { key } } } }), { 'x-key': 'mine' });
    expect(values(a, 'x-key')).toEqual([undefined]);
    expect(values(a)).toEqual(['Bearer of-the-target']);
    expect(new Set(values(b, 'x-key'))).toEqual(new Set(['of-the-route', undefined]));
  });

  test.each([
    ['Authorization', undefined, bearer('of-alice')],
    ['a header', { source: { header: { name: 'x-own' } } }, { 'x-own': 'of-alice' }],
  ])('a token in %s is exchanged for the route and again for a target', async (_, subjectToken, headers) => {
    await using server = await exchangeServer();
    await using a = await mcpUpstream({ name: 'a' });
    await using b = await mcpUpstream({ name: 'b' });
    const of = (audience: string) => ({ oauthTokenExchange: server.exchange(audience, { subjectToken }) });
    const targets = [target(a, { backendAuth: of('a') }, 'a'), { name: 'b', mcp: { host: b.url } }];
    await use(mcpConfig(targets, { route: { policies: { backendAuth: of('route') } } }), headers);
    expect(values(a)).toEqual([`Bearer ${issuedFor('of-alice', 'a')}`]);
    expect(new Set(values(b))).toEqual(new Set([`Bearer ${issuedFor('of-alice', 'route')}`, undefined]));
  });
});

describe('headers of requests to an MCP target', () => {
  // agentgateway/agentgateway#2132: a header from a claim, on a route that validates tokens.
  test('transformations compute headers from the request of the client', async () => {
    await using idp = await startIdp();
    await using up = await mcpUpstream();
    const policies = {
      transformations: {
        request: {
          set: {
            'x-user': 'jwt.sub',
            'x-none': 'jwt.nothing',
            'x-tenant': '"t-" + request.headers["x-team"]',
          },
          add: { 'x-more': '"2"' },
          remove: ['x-team'],
        },
      },
      requestHeaderModifier: { set: { 'x-fixed': '1' } },
    };
    const config = mcpConfig([target(up, policies)], { route: { policies: { jwtAuth: jwtAuth(idp) } } });
    const forged = { 'x-user': 'root', 'x-none': 'root', 'x-team': 'red', 'x-more': '1' };
    await use(config, { ...bearer(idp.token({ sub: 'alice' })), ...forged });
    expect(values(up, 'x-user')).toEqual(['alice']);
    expect(values(up, 'x-none')).toEqual([undefined]);
    expect(values(up, 'x-tenant')).toEqual(['t-red']);
    expect(values(up, 'x-team')).toEqual([undefined]);
    expect(values(up, 'x-fixed')).toEqual(['1']);
    // The session is ended without headers of the client.
    expect(values(up, 'x-more')).toEqual(['1, 2', '2']);
  });

  test('the credential takes precedence over a header of the same name', async () => {
    await using up = await mcpUpstream();
    const policies = {
      transformations: { request: { set: { authorization: 'request.headers["x-auth"]' } } },
      backendAuth: { key: 'of-the-target' },
    };
    await use(mcpConfig([target(up, policies)]), { ...bearer('mine'), 'x-auth': 'Bearer other' });
    expect(values(up)).toEqual(['Bearer of-the-target']);
  });

  test.each([
    [
      { requestHeaderModifier: { set: { 'Mcp-Session-Id': 'a' } } },
      'requestHeaderModifier.set.Mcp-Session-Id: ',
    ],
    [{ transformations: { request: { remove: ['accept'] } } }, 'transformations.request.remove.0: '],
  ])('%j changes a header of the protocol, and is refused', async (policies, place) => {
    await expect(gateway(mcpConfig([target({ url: 'http://127.0.0.1:9/mcp' }, policies)]))).rejects.toThrow(
      new RegExp(`${place.replaceAll('.', '\\.')}.*is a header of the protocol`),
    );
  });

  test('a body cannot be computed for a target', async () => {
    const policies = { transformations: { request: { body: '"x"' } } };
    await expect(gateway(mcpConfig([target({ url: 'http://127.0.0.1:9/mcp' }, policies)]))).rejects.toThrow(
      /transformations\.request\.body/,
    );
  });
});
