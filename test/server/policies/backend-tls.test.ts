import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { AUTHORITY, certificateOf, certificatePath } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { answering, chat, completion, llmGateway } from '../../kit/llm-provider.ts';
import { INITIALIZE, openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

describe('backendTLS', () => {
  test('backendTLS connects with TLS to a service whose address has no scheme', async () => {
    await using backend = await httpUpstream(undefined, { certificate: 'good' });
    const backendTLS = { root: AUTHORITY, hostname: 'localhost' };
    await using gate = await proxyGateway(backend.address, { backendTLS });
    for (let i = 0; i < 2; i += 1) expect(await send(gate.url)).toMatchObject({ status: 200, text: 'ok' });
    expect(backend.connections).toBe(1);
  });

  test('backendTLS of a backend applies to that backend only', async () => {
    await using secured = await httpUpstream((_, response) => response.end('secured'), {
      certificate: 'good',
    });
    await using plain = await httpUpstream((_, response) => response.end('plain'));
    const policies = { backendTLS: { root: AUTHORITY, hostname: 'localhost' } };
    const routes = [
      { matches: [{ path: { exact: '/s' } }], backends: [{ host: secured.address, policies }] },
      { matches: [{ path: { exact: '/p' } }], backends: [{ host: plain.address }] },
    ];
    await using gate = await gateway(routesConfig(routes));
    expect((await send(`${gate.url}/s`)).text).toBe('secured');
    expect((await send(`${gate.url}/p`)).text).toBe('plain');
  });

  test.each([
    ['an untrusted authority', 'good', { hostname: 'localhost' }],
    ['an untrusted authority and insecureHost', 'good', { insecureHost: true }],
    ['another name', 'good', { root: AUTHORITY, hostname: 'other.example' }],
    ['an expired certificate', 'expired', { root: AUTHORITY, hostname: 'localhost' }],
    ['a self-signed certificate', 'self-signed', { root: AUTHORITY, hostname: 'localhost' }],
  ] as const)('backendTLS sends nothing to a service with %s', async (_, certificate, backendTLS) => {
    await using backend = await httpUpstream(undefined, { certificate });
    await using gate = await proxyGateway(backend.address, { backendTLS });
    const { status } = await send(gate.url);
    expect(status).toBeGreaterThanOrEqual(502);
    expect(backend.received).toHaveLength(0);
  });

  test('backendTLS with insecure accepts any certificate', async () => {
    await using backend = await httpUpstream(undefined, { certificate: 'self-signed' });
    await using gate = await proxyGateway(backend.address, { backendTLS: { insecure: true } });
    expect(await send(gate.url)).toMatchObject({ status: 200 });
  });

  test('the expiry of a client certificate is a metric', async () => {
    const cert = certificatePath('client.crt');
    const backendTLS = { cert, key: certificatePath('client.key') };
    await using gate = await proxyGateway('127.0.0.1:9', { backendTLS });
    const metrics = parseMetrics(await gate.running.metrics.render());
    const expires = Date.parse(new X509Certificate(readFileSync(cert)).validTo) / 1000;
    const name = 'gw_tls_certificate_expiry_timestamp_seconds';
    expect(sampleValue(metrics, name, { file: cert })).toBe(expires);
  });

  test.each([[{ root: '/nowhere.pem' }], [{ cert: AUTHORITY }], [{ ca: AUTHORITY }]])(
    'backendTLS rejects the configuration %j',
    async (backendTLS) => {
      await expect(proxyGateway('127.0.0.1:9', { backendTLS })).rejects.toThrow();
    },
  );

  const TLS = { root: AUTHORITY, hostname: 'localhost' };

  test.each([
    ['a route', { policies: { backendTLS: TLS } }, {}, {}],
    ['a backend', {}, { policies: { backendTLS: TLS } }, {}],
    ['a provider', {}, {}, { policies: { backendTLS: TLS } }],
    [
      'a provider, which takes precedence,',
      { policies: { backendTLS: { hostname: 'other.example' } } },
      {},
      { policies: { backendTLS: TLS } },
    ],
  ])('backendTLS of %s applies to the providers of models', async (_, route, backend, provider) => {
    await using upstream = await httpUpstream(answering(completion('Hello.')), { certificate: 'good' });
    const ai = { name: 'p', provider: { openAI: {} }, hostOverride: upstream.address, ...provider };
    await using gate = await gateway(routesConfig([{ ...route, backends: [{ ai, ...backend }] }]));
    for (let i = 0; i < 2; i += 1) expect((await chat(gate)).status).toBe(200);
    expect(upstream.connections).toBe(1);
  });

  test('backendTLS of a model applies to its provider, and another name sends it nothing', async () => {
    await using upstream = await httpUpstream(answering(completion('Hello.')), { certificate: 'good' });
    await using gate = await llmGateway(upstream, { model: { backendTLS: TLS } });
    expect((await chat(gate)).status).toBe(200);
    await using other = await llmGateway(upstream, { model: { backendTLS: { ...TLS, hostname: 'other' } } });
    expect((await chat(other)).status).toBe(502);
    expect(upstream.received).toHaveLength(1);
  });

  const ROUTED = { gateways: { default: { port: 0 } } };

  test.each([
    [
      'a route',
      (mcp: object) => ({ ...ROUTED, routes: [{ policies: { backendTLS: TLS }, backends: [{ mcp }] }] }),
    ],
    [
      'a backend',
      (mcp: object) => ({ ...ROUTED, routes: [{ backends: [{ mcp, policies: { backendTLS: TLS } }] }] }),
    ],
    [
      'a named backend',
      (mcp: object) => ({
        ...ROUTED,
        routes: [{ backends: [{ backend: 'tools' }] }],
        backends: [{ name: 'tools', mcp, policies: { backendTLS: TLS } }],
      }),
    ],
    ['the short form', (mcp: object) => ({ mcp: { port: 0, ...mcp, policies: { backendTLS: TLS } } })],
  ])('backendTLS of %s applies to MCP servers that have none of their own', async (_, config) => {
    await using up = await mcpUpstream({ certificate: certificateOf('good') });
    const own = { hostname: 'other.example', root: AUTHORITY };
    const host = `localhost:${up.port}`;
    await using gate = await gateway(JSON.stringify(config({ targets: [{ name: 'up', mcp: { host } }] })));
    const session = await openSession(`${gate.url}/mcp`);
    expect((await session.request('tools/list')).result.tools[0].name).toBe('say');
    await session.end();
    const target = { name: 'up', mcp: { host }, policies: { backendTLS: own } };
    await using other = await gateway(JSON.stringify(config({ targets: [target] })));
    expect((await post(`${other.url}/mcp`, INITIALIZE)).error.message).toContain('another host');
  });

  test.each([
    [
      'servers at http: URLs',
      [{ mcp: { targets: [{ name: 'a', mcp: { host: 'http://127.0.0.1:9/mcp' } }] } }],
    ],
    ['a named backend, which other routes share', [{ backend: 'tools' }]],
  ])('backendTLS of a route with MCP %s is refused', async (_, backends) => {
    const targets = [{ name: 'a', mcp: { host: 'https://127.0.0.1:9/mcp' } }];
    const config = routesConfig([{ policies: { backendTLS: {} }, backends }], {
      backends: [{ name: 'tools', mcp: { targets } }],
    });
    await expect(gateway(config)).rejects.toThrow('no effect on MCP servers');
  });
});
