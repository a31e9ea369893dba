import { expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { CHAT, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { INITIALIZE, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

// Rack, Laravel, Symfony (CVE-2018-14773), ASP.NET and others take the method or path from such headers, so a rule that allows
// GET only, or denies a path, says nothing about what they do.

const OVERRIDES = {
  'X-HTTP-Method-Override': 'DELETE',
  'x-http-method': 'DELETE',
  'X-METHOD-OVERRIDE': 'DELETE',
  'x-original-method': 'DELETE',
  'X-Original-URL': '/admin',
  'x-rewrite-url': '/admin',
  _method: 'DELETE',
  X_HTTP_Method_Override: 'DELETE',
};
const settings = (more: object): object => ({ config: { http: more } });
const NAMES = new Set(Object.keys(OVERRIDES).map((name) => name.toLowerCase()));
const overridesIn = (headers: object): string[] => Object.keys(headers).filter((name) => NAMES.has(name));

test.each([[{}], [{ headersWithUnderscores: 'allow' }]])(
  'headers that replace the method or the path do not reach a backend (%o)',
  async (more) => {
    await using upstream = await httpUpstream();
    const rules = ['!request.headers.exists(name, name.contains("method") || name.contains("url"))'];
    await using gate = await proxyGateway(upstream.address, { authorization: { rules } }, settings(more));
    expect((await send(gate.url, { headers: { ...OVERRIDES, 'x-a': '1' } })).status).toBe(200);
    const { headers = {} } = upstream.received[0] ?? {};
    expect([headers['x-a'], overridesIn(headers)]).toEqual(['1', []]);
  },
);

test('overrideHeaders can reject requests that replace the method, or keep the headers', async () => {
  await using upstream = await httpUpstream();
  const underscores = { headersWithUnderscores: 'allow' };
  await using strict = await proxyGateway(
    upstream.address,
    {},
    settings({ ...underscores, overrideHeaders: 'reject' }),
  );
  for (const [name, value] of Object.entries(OVERRIDES)) {
    const { statuses, text } = await sendRaw(
      strict.port,
      rawRequest('GET / HTTP/1.1', [`${name}: ${value}`, 'Connection: close']),
    );
    expect([name, statuses]).toEqual([name, [400]]);
    expect(text).toContain('config.http.overrideHeaders');
  }
  expect(upstream.received).toEqual([]);
  await using open = await proxyGateway(
    upstream.address,
    {},
    settings({ ...underscores, overrideHeaders: 'allow' }),
  );
  await send(open.url, { headers: OVERRIDES });
  expect(overridesIn(upstream.received[0]?.headers ?? {})).toHaveLength(NAMES.size);
});

test('headers that replace the method never reach LLM providers and MCP servers', async () => {
  const more = settings({ overrideHeaders: 'allow' });
  await using provider = await llmProvider();
  await using llm = await llmGateway(provider, { more: { config: { http: { overrideHeaders: 'allow' } } } });
  await send(`${llm.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...OVERRIDES, 'content-type': 'application/json' },
    body: JSON.stringify(CHAT),
  });
  expect(provider.received.map(({ headers }) => overridesIn(headers))).toEqual([[]]);
  await using up = await mcpUpstream();
  const backends = [{ mcp: { targets: [{ name: 'up', mcp: { host: up.url } }] } }];
  await using mcp = await gateway(routesConfig([{ backends }], more));
  await post(`${mcp.url}/mcp`, INITIALIZE, OVERRIDES);
  expect(up.of('initialize').map(({ headers }) => overridesIn(headers ?? {}))).toEqual([[]]);
});
