import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../kit/config.ts';
import { gateway } from '../kit/gateway.ts';
import { CHAT, llmGateway, llmProvider } from '../kit/llm-provider.ts';
import { openSession } from '../kit/mcp.ts';
import { mcpUpstream } from '../kit/mcp-upstream.ts';
import { answeringGateway, proxyGateway } from '../kit/routes.ts';
import { send } from '../kit/send.ts';
import { httpUpstream } from '../kit/upstream.ts';

// Sentences of docs/security.md, "What the defaults do not protect", that no other test holds: an operator relies on them, too.

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
  const JWT = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2lnbmF0dXJl';

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

  test('each has a list of ended sessions of its own', async () => {
    await using server = await mcpUpstream({
      // A server that ends no sessions, as MCP allows.
      script: ({ verb }, response) => {
        if (verb !== 'DELETE') return false;
        response.writeHead(405).end();
        return true;
      },
    });
    const yaml = mcpConfig([{ name: 'one', mcp: { host: server.url } }], {
      config: { session: { key: 'ab'.repeat(32) } },
    });
    await using one = await gateway(yaml);
    await using two = await gateway(yaml);
    const session = await openSession(`${one.url}/mcp`);
    await session.end();
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' };
    const at = async (url: string): Promise<number> => {
      const reply = await send(`${url}/mcp`, {
        method: 'POST',
        body: JSON.stringify(list),
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-session-id': session.id,
        },
      });
      return reply.status;
    };
    expect([await at(one.url), await at(two.url)]).toEqual([404, 200]);
  });
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
