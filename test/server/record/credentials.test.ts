import { expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { AUDIENCE, startIdp } from '../../kit/idp.ts';
import { answering, EVERY_FORMAT, llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE, openSession, post } from '../../kit/mcp.ts';
import { type SendOptions, send } from '../../kit/send.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';
import { observed } from './observed.ts';

// Credentials of the configuration and of clients, each with a name of its own, through policies, errors and formats.

const planted: string[] = [];
/** A credential that no other place has; `form` is what precedes it. */
function secret(form = ''): string {
  const name = `canary${String(planted.length).padStart(3, '0')}q8Zt`;
  planted.push(name);
  return form + name;
}
const basic = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

test('credentials of configuration, clients and backends are in no log, record, trace, page or file', async () => {
  await using idp = await startIdp();
  // Repeats what it got, as debugging services do, and sets a cookie.
  await using echo = await httpUpstream(({ headers }, response) => {
    response.setHeader('set-cookie', `sid=${secret()}; HttpOnly`);
    response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `denied: ${JSON.stringify(headers)}` } }));
  });
  await using denying = await httpUpstream((_, response) => {
    response.writeHead(403, { 'x-token': secret(), 'set-cookie': `s=${secret()}` });
    response.end(`api_key=${secret()}`);
  });
  await using provider = await llmProvider((request, response, received) =>
    answering(
      JSON.stringify({
        error: {
          message: `Incorrect API key provided: ${request.headers.authorization}. api_key=${secret()}`,
          type: `password=${secret()}`,
          code: 'invalid_api_key',
        },
      }),
      401,
    )(request, response, received),
  );
  const down = `127.0.0.1:${await refusingPort()}`;
  const host = [{ host: echo.address }];
  const location = { queryParameter: { name: 'door' } };
  const env = { FROM_ENVIRONMENT: secret(), CHILD_TOKEN: secret() };
  const routes = [
    [
      'apikey',
      { apiKey: { mode: 'strict', keys: [{ key: secret('sk-'), metadata: { user: 'ann' } }] } },
      host,
    ],
    ['door', { apiKey: { mode: 'permissive', keys: [{ key: secret() }], location } }, host],
    ['basic', { basicAuth: { mode: 'strict', htpasswd: `ann:{SHA}${secret()}${'A'.repeat(14)}=` } }, host],
    ['jwt', jwtPolicy(idp), host],
    ['own', { backendAuth: { key: secret('Bearer ') } }, host],
    ['env', { backendAuth: { key: '$FROM_ENVIRONMENT' } }, host],
    [
      'query',
      { backendAuth: { key: { value: secret(), location: { queryParameter: { name: 'k' } } } } },
      host,
    ],
    ['down', { backendAuth: { key: secret() } }, [{ host: down }]],
    [
      'denied',
      { extAuthz: { host: denying.address, includeRequestHeaders: ['authorization', 'cookie'] } },
      host,
    ],
    ['away', { extAuthz: { host: down } }, host],
    [
      'set',
      { requestHeaderModifier: { set: { 'x-api-key': secret(), authorization: secret('Bearer ') } } },
      host,
    ],
    [
      'made',
      {
        transformations: {
          request: { set: { 'x-auth-token': `"${secret()}" + request.headers["x-trace"]` } },
        },
      },
      host,
    ],
    ['mirror', { requestMirror: { backend: { host: denying.address }, percentage: 1 } }, host],
    [
      'tools',
      {
        mcpGuardrails: {
          processors: [{ kind: 'webhook', host: down, headers: { 'x-api-key': `"${secret()}"` } }],
        },
      },
      [
        {
          mcp: {
            targets: [{ ...chaos('a'), stdio: { ...chaos('a').stdio, env: { TOKEN: '$CHILD_TOKEN' } } }],
          },
        },
      ],
    ],
    [
      'remote',
      {},
      [
        {
          mcp: {
            targets: [
              {
                name: 'a',
                mcp: { host: `http://${echo.address}/mcp` },
                policies: { backendAuth: { key: secret() } },
              },
              {
                name: 'gone',
                stdio: { cmd: 'no-such-command', args: [`--token=${secret()}`, `password=${secret()}`] },
              },
            ],
          },
        },
      ],
    ],
  ] as const;
  await using sinks = await observed(
    {
      gateways: {
        default: {
          port: 0,
          routes: routes.map(([name, policies, backends]) => ({
            name,
            matches: [{ path: { pathPrefix: `/${name}` } }],
            policies,
            backends,
          })),
        },
      },
      llm: {
        port: 0,
        models: [
          {
            name: '*',
            provider: EVERY_FORMAT,
            params: { baseUrl: `http://${provider.address}/v1`, apiKey: secret('sk-') },
          },
        ],
      },
    },
    { env, level: 'debug' },
  );
  const { url } = sinks;

  const ways: (() => SendOptions)[] = [
    () => ({
      headers: { authorization: `Bearer ${secret()}`, 'x-api-key': secret(), cookie: `a=${secret()}` },
    }),
    () => ({
      headers: { authorization: basic('ann', secret()), 'proxy-authorization': basic('ann', secret()) },
    }),
    () => ({
      headers: { authorization: secret('canary-scheme '), 'x-auth-token': secret(), 'api-key': secret() },
    }),
  ];
  for (const [name] of routes)
    for (const way of ways)
      await send(`${url}/${name}?access_token=${secret()}&api_key=${secret()}&door=${secret()}&q=1`, way());
  await send(`${url}/jwt`, {
    headers: { authorization: `Bearer ${idp.token({ sub: 'ann', jti: secret() })}` },
  });
  const session = await openSession(`${url}/tools`, { authorization: `Bearer ${secret()}` });
  const message = `cannot log in with password=${secret()}`;
  await session.request('tools/call', { name: 'fail', arguments: { code: 1, message } });
  await post(`${url}/remote`, INITIALIZE, { authorization: `Bearer ${secret()}` });
  const model = sinks.urls[1];
  const chats: [string, object][] = [
    ['/v1/chat/completions', { model: 'm', messages: [] }],
    ['/v1/messages', { model: 'm', max_tokens: 1, messages: [] }],
    ['/v1/responses', { model: 'm', input: 'x' }],
    [`/v1beta/models/m:generateContent?key=${secret()}`, { contents: [] }],
  ];
  for (const [path, body] of chats)
    for (const stream of [false, true]) {
      const headers = {
        'content-type': 'application/json',
        'x-api-key': secret(),
        'x-goog-api-key': secret(),
      };
      await send(`${model}${path}`, { method: 'POST', headers, body: JSON.stringify({ ...body, stream }) });
    }
  const kept = await sinks.everything('generateContent');
  expect(planted.length).toBeGreaterThan(40);
  const shown = planted.filter(
    (name) => kept.includes(name) || kept.includes(Buffer.from(name).toString('base64').slice(2, -3)),
  );
  expect(shown).toEqual([]);
});

const jwtPolicy = (idp: { issuer: string }) => ({
  jwtAuth: {
    mode: 'strict',
    issuer: idp.issuer,
    audiences: [AUDIENCE],
    jwks: { url: `${idp.issuer}/certs` },
  },
});
