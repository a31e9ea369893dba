import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SocketFolder } from '../../src/server/workers/socket-folder.ts';
import { mcpConfig } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { startIdp } from '../kit/idp.ts';
import { CHAT, llmGateway, llmProvider } from '../kit/llm-provider.ts';
import { INITIALIZE, openSession, post } from '../kit/mcp.ts';
import { mcpUpstream, type Script } from '../kit/mcp-upstream.ts';
import { collector } from '../kit/otlp.ts';
import { answeringGateway, proxyGateway } from '../kit/routes.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { httpUpstream } from '../kit/upstream.ts';

// Sentences of docs/security.md that no other test holds. Those on what is not protected matter, too: operators rely on them.

const JWT = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2lnbmF0dXJl';

const refusesToEnd: Script = ({ verb }, response) => {
  if (verb !== 'DELETE') return false;
  response.writeHead(405).end();
  return true;
};

const CREDENTIALS = { authorization: 'Bearer of-the-client', cookie: 'a=1; session=of-the-client' };
const REMOVED = { requestHeaderModifier: { remove: ['authorization', 'cookie'] } };

describe('credentials that no policy reads', () => {
  test('reach a host backend, unless requestHeaderModifier removes them', async () => {
    await using backend = await httpUpstream();
    await using open = await proxyGateway(backend.address);
    await using cut = await proxyGateway(backend.address, REMOVED);
    for (const { url } of [open, cut]) await send(url, { headers: CREDENTIALS });
    expect(backend.received.map(({ headers: { authorization, cookie } }) => [authorization, cookie])).toEqual(
      [
        [CREDENTIALS.authorization, CREDENTIALS.cookie],
        [undefined, undefined],
      ],
    );
  });

  test('reach an MCP server over HTTP without cookies, unless requestHeaderModifier removes them', async () => {
    await using server = await mcpUpstream();
    for (const policies of [{}, REMOVED]) {
      const targets = [{ name: 'one', mcp: { host: server.url } }];
      await using gate = await gateway(mcpConfig(targets, { route: { policies } }));
      const session = await openSession(`${gate.url}/mcp`, CREDENTIALS);
      await session.request('tools/call', { name: 'say' });
    }
    const calls = server
      .of('tools/call')
      .map(({ headers: { authorization, cookie } }) => [authorization, cookie]);
    expect(calls).toEqual([
      [CREDENTIALS.authorization, undefined],
      [undefined, undefined],
    ]);
  });
});

describe('routes without a policy that authenticates clients', () => {
  test('answer everybody who can reach the port, also pages of other sites, if they are plain or of models', async () => {
    const headers = { host: 'evil.example', origin: 'https://evil.example' };
    await using plain = await answeringGateway({});
    expect(await send(plain.url, { headers })).toMatchObject({ status: 200, text: 'reached' });
    await using provider = await llmProvider();
    await using models = await llmGateway(provider);
    const url = `${models.url}/v1/chat/completions`;
    expect((await send(url, { method: 'POST', headers, body: JSON.stringify(CHAT) })).status).toBe(200);
  });

  test('csrf and hostnames keep pages of other sites out', async () => {
    const headers = { host: 'evil.example', origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' };
    await using guarded = await answeringGateway({ csrf: { additionalOrigins: [] } });
    expect(
      (await send(guarded.url, { method: 'POST', headers: { ...headers, host: 'localhost' } })).status,
    ).toBe(403);
    const routes = [{ hostnames: ['localhost'], policies: { directResponse: { body: 'in' } } }];
    await using named = await gateway(JSON.stringify({ gateways: { default: { port: 0, routes } } }));
    expect((await send(named.url, { headers })).status).toBe(404);
  });
});

describe('what is added to outputs, and secrets of unknown form', () => {
  test('in added fields, tokens and credentials in query strings are redacted, and nothing else', async () => {
    const add = {
      token: `"${JWT}"`,
      target: 'request.pathAndQuery',
      odd: 'request.headers["x-odd"]',
    };
    await using gate = await answeringGateway({}, { frontendPolicies: { accessLog: { add } } });
    await send(gate.url, { target: '/hunter22?api_key=hunter23&page=2', headers: { 'x-odd': 'hunter24' } });
    const line = await gate.accessLine(1);
    expect(line).toMatchObject({
      token: '<redacted>',
      target: '/hunter22?api_key=<redacted>&page=2',
      odd: 'hunter24',
    });
    // A credential in a path has no form of its own.
    expect(line['http.path']).toBe('/hunter22?api_key=<redacted>&page=2');
  });

  test('labels of metrics are printed unchanged', async () => {
    const metrics = { fields: { add: { who: 'request.headers["x-odd"]' } } };
    await using gate = await answeringGateway({}, { config: { metrics } });
    await send(gate.url, { headers: { 'x-odd': JWT } });
    await gate.accessLine(1);
    expect(await gate.running.metrics.render()).toContain(`who="${JWT}"`);
  });
});

describe('several gateways without config.shared', () => {
  test('each has rate limits of its own', async () => {
    const policies = { localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: '1h' }] };
    await using one = await answeringGateway(policies);
    await using two = await answeringGateway(policies);
    const statuses = [];
    for (const { url } of [one, one, two, two]) statuses.push((await send(url)).status);
    expect(statuses).toEqual([200, 429, 200, 429]);
  });

  // A server may refuse to end sessions (405): it then has its session still.
  test.each([
    ['ends sessions', undefined, 'up-2'],
    ['refuses to end sessions', refusesToEnd, 'up-1'],
  ])(
    'each has a list of ended sessions of its own, also after a restart; the server %s',
    async (_what, script, held) => {
      await using server = await mcpUpstream(script === undefined ? {} : { script });
      const yaml = mcpConfig([{ name: 'one', mcp: { host: server.url } }], {
        config: { session: { key: 'ab'.repeat(32) } },
      });
      await using one = await gateway(yaml);
      await using two = await gateway(yaml);
      const session = await openSession(`${one.url}/mcp`);
      await session.end();
      const at = async (url: string): Promise<number> =>
        (
          await post(
            `${url}/mcp`,
            { jsonrpc: '2.0', id: 2, method: 'tools/list' },
            { 'mcp-session-id': session.id },
          )
        ).status;
      expect([await at(one.url), await at(two.url)]).toEqual([404, 200]);
      expect(server.of('tools/list').at(-1)?.headers['mcp-session-id']).toBe(held);
    },
  );
});

describe('who an MCP session belongs to', () => {
  test('a session that a key has started is unknown to other keys and to nobody', async () => {
    await using server = await mcpUpstream();
    const apiKey = { mode: 'optional', keys: [{ key: 'key-of-ada' }, { key: 'key-of-bob' }] };
    const targets = [{ name: 'one', mcp: { host: server.url } }];
    await using gate = await gateway(mcpConfig(targets, { route: { policies: { apiKey } } }));
    const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
    const session = await openSession(`${gate.url}/mcp`, bearer('key-of-ada'));
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
    const own = { 'mcp-session-id': session.id };
    const statuses = [];
    for (const headers of [bearer('key-of-bob'), {}, bearer('key-of-ada')])
      statuses.push((await post(session.url, list, { ...own, ...headers })).status);
    expect(statuses).toEqual([404, 404, 200]);
  });
});

describe('where gateways listen', () => {
  const external = Object.values(networkInterfaces())
    .flat()
    .find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;
  const routes = [{ policies: { directResponse: { body: 'in' } } }];
  const at = async (address: object): Promise<unknown> => {
    await using gate = await gateway(
      JSON.stringify({ gateways: { default: { port: 0, ...address, routes } } }),
    );
    return await send(`http://${external}:${gate.port}`).then(
      ({ status }) => status,
      (error: NodeJS.ErrnoException) => error.code,
    );
  };

  test.skipIf(external === undefined)(
    'gateways listen on all addresses; address: 127.0.0.1 makes one local',
    async () => {
      expect([await at({}), await at({ address: '127.0.0.1' })]).toEqual([200, 'ECONNREFUSED']);
    },
  );

  test('only this user can enter the folder of the sockets of workers', () => {
    const folder = new SocketFolder();
    try {
      expect(statSync(dirname(folder.prefix(1, 1))).mode & 0o777).toBe(0o700);
    } finally {
      folder.remove();
    }
  });
});

describe('what an MCP server that is a child process may do', () => {
  test('it runs as the user of the gateway, with its files', async () => {
    await using folder = await temporaryFolder();
    const secret = join(folder.path, 'gateway.env');
    writeFileSync(secret, 'KEY=of-the-gateway', { mode: 0o600 });
    const found = join(folder.path, 'found');
    const args = ['-c', `id -u > "$1"; cat "$2" >> "$1"; exit 1`, 'sh', found, secret];
    await using gate = await gateway(mcpConfig([{ name: 'curious', stdio: { cmd: 'sh', args } }]));
    await post(`${gate.url}/mcp`, INITIALIZE);
    await until(() => existsSync(found) && readFileSync(found, 'utf8').includes('KEY'));
    expect(readFileSync(found, 'utf8')).toBe(`${process.getuid?.()}\nKEY=of-the-gateway`);
  });
});

describe('secrets in outputs', () => {
  const SECRETS = [
    'configured-key-1',
    'query-secret-1',
    'header-secret-1',
    'cookie-secret-1',
    'password-1',
    JWT,
  ];

  test('the access log, recent requests, spans, metrics, the dump and the overview have none of a request or the configuration', async () => {
    await using backend = await httpUpstream();
    await using receiver = await collector('http');
    const yaml = JSON.stringify({
      config: { tracing: { otlpEndpoint: receiver.url, otlpProtocol: 'http', randomSampling: true } },
      gateways: {
        default: {
          port: 0,
          routes: [
            {
              policies: {
                apiKey: { keys: [{ key: 'configured-key-1' }] },
                backendAuth: { key: 'password-1' },
              },
              backends: [{ host: backend.address }],
            },
          ],
        },
      },
    });
    await using gate = await gateway(yaml, { admin: true, level: 'debug' });
    const headers = {
      authorization: 'Bearer configured-key-1',
      cookie: 'session=cookie-secret-1',
      'x-api-key': 'header-secret-1',
      'x-odd': JWT,
    };
    const target = `/a?api_key=query-secret-1&token=query-secret-1&x=${JWT}`;
    expect((await send(gate.url, { target, headers })).status).toBe(200);
    await gate.accessLine(1);
    const pages = [];
    for (const path of ['/api/requests', '/config_dump', '/api/overview', '/api/config'])
      pages.push((await send(gate.admin + path)).text);
    const metrics = await gate.running.metrics.render();
    // Sends the spans.
    await gate.close();
    const outputs = {
      log: [...gate.log, ...gate.accessLog].join(''),
      pages: pages.join(''),
      spans: JSON.stringify(receiver.spans),
      metrics,
    };
    expect(outputs.spans).toContain('/a');
    for (const [name, text] of Object.entries(outputs))
      for (const secret of SECRETS) expect([name, text.includes(secret)]).toEqual([name, false]);
  });
});

test('a telemetry collector gets the subject of a token, and no bodies', async () => {
  await using idp = await startIdp();
  await using provider = await llmProvider();
  await using receiver = await collector('http');
  const jwtAuth = { mode: 'strict', issuer: idp.issuer };
  const params = { baseUrl: `http://${provider.address}/v1` };
  const llm = { port: 0, models: [{ name: '*', provider: 'openAI', params }], policies: { jwtAuth } };
  const tracing = { otlpEndpoint: receiver.url, otlpProtocol: 'http', randomSampling: true };
  await using gate = await gateway(JSON.stringify({ config: { tracing }, llm }));
  const body = JSON.stringify({ ...CHAT, messages: [{ role: 'user', content: 'of-the-prompt' }] });
  const headers = { authorization: `Bearer ${idp.token()}` };
  const reply = await send(`${gate.url}/v1/chat/completions`, { method: 'POST', headers, body });
  expect(reply.status).toBe(200);
  const { content } = JSON.parse(reply.text).choices[0].message as { content: string };
  await gate.close();
  const spans = JSON.stringify(receiver.spans);
  expect(spans).toContain('"alice"');
  for (const text of ['of-the-prompt', content]) expect([text, spans.includes(text)]).toEqual([text, false]);
});

test('responses of an MCP server reach the client byte for byte, apart from the id', async () => {
  const result =
    '{ "content" :[{"type":"text","text":"\\u00e9 1.0 9007199254740993"}],"n":9007199254740993,"d":1.0, "n2":1e2 }';
  await using server = await mcpUpstream({
    script: ({ message }, response) => {
      if (message?.method !== 'tools/call') return false;
      response.setHeader('content-type', 'application/json');
      response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${result}}`);
      return true;
    },
  });
  await using gate = await gateway(mcpConfig([{ name: 'one', mcp: { host: server.url } }]));
  const session = await openSession(`${gate.url}/mcp`);
  const reply = await send(`${gate.url}/mcp`, {
    method: 'POST',
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'say' } }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session.id,
    },
  });
  expect(reply.text).toContain(`"result":${result}`);
});
