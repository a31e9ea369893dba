import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { ConfigDump } from '../../../src/server/kernel/config-dump.ts';
import { Metrics } from '../../../src/server/observe/metrics/metrics.ts';
import { RouteSeries } from '../../../src/server/observe/metrics/route-series.ts';
import { commonPrefix, readMetrics } from '../../../src/web/admin/model/metrics.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import {
  answering,
  CHAT,
  chat,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  webhook,
} from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { type ParsedFamily, parseMetrics, sampleValue } from '../../kit/open-metrics.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { verifies } from '../../kit/verifies.ts';

const scrape = async ({ running }: TestGateway): Promise<Map<string, ParsedFamily>> =>
  parseMetrics(await running.metrics.render());
const ended = (gate: TestGateway, count: number): Promise<void> =>
  until(() => gate.accessLog.length === count);

const PRICES = {
  config: {
    modelCatalog: [
      {
        inline: {
          providers: { openai: { models: { 'acme-mini-1': { rates: { input: '1', output: '2' } } } } },
        },
      },
    ],
  },
};

describe('LLM metrics', () => {
  verifies(
    ['gateway.metrics.token-usage', 'gateway.service.8.metrics'],
    'LLM token metrics have the labels type, operation, system and models',
    async () => {
      await using provider = await llmProvider();
      await using gate = await llmGateway(provider, { more: PRICES });
      await chat(gate);
      await chat(gate);
      await ended(gate, 2);
      const families = await scrape(gate);
      const labels = {
        gen_ai_operation_name: 'chat',
        gen_ai_system: 'openai',
        gen_ai_request_model: 'acme-mini',
        gen_ai_response_model: 'acme-mini-1',
        bind: `bind/${gate.port}`,
        gateway: 'default/default',
        listener: 'llm',
        route: 'internal/llm:request',
      };
      const name = 'gw_gen_ai_client_token_usage';
      expect(families.get(name)?.type).toBe('histogram');
      expect(sampleValue(families, `${name}_sum`, { gen_ai_token_type: 'input', ...labels })).toBe(24);
      expect(sampleValue(families, `${name}_sum`, { gen_ai_token_type: 'output', ...labels })).toBe(14);
      expect(sampleValue(families, `${name}_bucket`, { gen_ai_token_type: 'input', le: '4.0' })).toBe(0);
      expect(sampleValue(families, `${name}_bucket`, { gen_ai_token_type: 'input', le: '16.0' })).toBe(2);
      expect(Object.keys(families.get(name)?.samples[0]?.labels ?? {})).toEqual([
        'gen_ai_token_type',
        ...Object.keys(labels),
      ]);
      expect(sampleValue(families, 'gw_gen_ai_client_cost_usd_total', labels)).toBeCloseTo(0.000052, 10);
      expect(sampleValue(families, 'gw_gen_ai_server_request_duration_count', labels)).toBe(2);
      expect(families.has('gw_gen_ai_server_time_to_first_token')).toBe(false);
    },
  );

  verifies(
    'gateway.metrics.cost-lookups',
    'price lookup metrics have the labels status, provider and model',
    async () => {
      await using provider = await llmProvider();
      await using priced = await llmGateway(provider, { more: PRICES });
      await using bare = await llmGateway(provider);
      for (const gate of [priced, bare]) {
        await chat(gate);
        await ended(gate, 1);
      }
      const labels = { gen_ai_system: 'openai', gen_ai_request_model: 'acme-mini' };
      const name = 'gw_cost_catalog_lookups_total';
      expect(sampleValue(await scrape(priced), name, { status: 'Exact', ...labels })).toBe(1);
      const text = await bare.running.metrics.render();
      expect(sampleValue(parseMetrics(text), name, { status: 'NoCatalog', ...labels })).toBe(1);
      expect(text).toContain(
        '# HELP gw_cost_catalog_lookups Total number of model cost catalog lookups by resolution status.\n' +
          '# TYPE gw_cost_catalog_lookups counter\n' +
          'gw_cost_catalog_lookups_total{status="NoCatalog",gen_ai_operation_name="chat",',
      );
      expect(text).not.toContain('cost_usd');
      // A call that was refused, or that the provider did not answer, needs no price.
      await using failing = await llmProvider(answering('{"error":{}}', 500));
      const localRateLimit = [{ maxTokens: 1, fillInterval: '1h' }];
      await using gate = await llmGateway(failing, { more: PRICES, llm: { policies: { localRateLimit } } });
      const statuses = [await chat(gate), await chat(gate), await chat(gate, { ...CHAT, model: 'unknown' })];
      expect(statuses.map(({ status }) => status)).toEqual([500, 429, 429]);
      await ended(gate, 3);
      expect((await gate.running.metrics.render()).match(/^gw_cost_catalog_lookups.*/gm)).toBeNull();
    },
  );

  test('calls that fail have the label of the model in the configuration that they asked for', async () => {
    await using provider = await llmProvider(answering('{"error":{}}', 500));
    const params = { baseUrl: `http://${provider.address}/v1` };
    const oaiCompat = { provider: 'oaiCompat', params };
    await using gate = await modelsGateway(
      [
        { name: 'exact', ...oaiCompat },
        { name: 'claude-*', ...oaiCompat },
        { name: '*', ...oaiCompat },
      ],
      { virtualModels: [{ name: 'v', routing: { weighted: { targets: [{ model: 'exact', weight: 1 }] } } }] },
    );
    const models = ['exact', 'claude-1', 'claude-2', 'invented-1', 'invented-2', 'v'];
    for (const model of models) await chat(gate, { ...CHAT, model });
    await ended(gate, models.length);
    const families = await scrape(gate);
    const count = (model: string) =>
      sampleValue(families, 'gw_gen_ai_server_request_duration_count', { gen_ai_request_model: model });
    expect(['exact', 'claude-*', 'unknown', 'v'].map(count)).toEqual([1, 2, 2, 1]);
  });

  test('guardrail checks, LLM calls and connections are counted', async () => {
    await using guard = await guardrail(() => ({ body: 'no', status_code: 422 }));
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { llm: { guardrails: { request: [webhook(guard)] } } });
    await chat(gate);
    await ended(gate, 1);
    const families = await scrape(gate);
    expect(sampleValue(families, 'gw_guardrail_checks_total', { phase: 'Request', action: 'Reject' })).toBe(
      1,
    );
    const call = { kind: 'Policy', subtype: 'Guardrail' };
    expect(sampleValue(families, 'gw_upstream_call_duration_seconds_count', call)).toBe(1);
    expect(
      sampleValue(families, 'gw_upstream_connect_duration_seconds_count', { transport: 'plaintext' }),
    ).toBe(1);
  });
});

describe('MCP metrics', () => {
  test('MCP request metrics have the labels method, server and resource, and unknown names share one label', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--tools=echo'), chaos('b', '--tools=x')]));
    const session = await openSession(`${gate.url}/mcp`);
    for (let i = 0; i < 5; i++) await session.request('tools/call', { name: `invented${i}` });
    await session.request('made/up');
    await session.request('tools/call', { name: 'a_echo', arguments: {} });
    // Servers may report an unknown tool in a result instead of an error.
    await session.request('tools/call', { name: 'b_fail', arguments: {} });
    await ended(gate, 10);
    const families = await scrape(gate);
    const name = 'gw_mcp_requests_total';
    const call = { method: 'tools/call', resource_type: 'tool' };
    expect(sampleValue(families, name, { ...call, server: 'a', resource: 'echo' })).toBe(1);
    expect(JSON.stringify([...families.values()])).not.toMatch(/invented|made/);
    // MCP methods are a fixed list, so they get their own label even without a successful call.
    const invented = { ...call, server: 'unknown', resource: 'unknown' };
    expect(sampleValue(families, name, invented)).toBe(5);
    expect(sampleValue(families, name, { ...call, server: 'b', resource: 'unknown' })).toBe(1);
  });
});

describe('HTTP metrics', () => {
  test('HTTP metrics name backends as the configuration dump does and give every response a reason', async () => {
    await using upstream = await httpUpstream();
    await using closed = await httpUpstream();
    await closed.close();
    const at = (exact: string) => [{ path: { exact } }];
    const models = [{ name: 'mini', provider: 'echo' }];
    const routes = [
      { name: 'plain', matches: at('/plain'), backends: [{ host: upstream.address }] },
      { name: 'gone', matches: at('/gone'), backends: [{ host: closed.address }] },
      { name: 'tools', matches: at('/tools'), backends: [{ mcp: { targets: [chaos('a')] } }] },
      { name: 'chat', matches: at('/chat/completions'), backends: [{ llm: { models } }] },
      { name: 'none', matches: at('/none'), policies: { directResponse: { body: 'x' } } },
    ];
    const yaml = {
      config: { connectionTerminationDeadline: '100ms' },
      gateways: { edge: { port: 0, routes } },
      mcp: { port: 0, targets: [chaos('b')] },
      llm: { port: 0, models: [{ name: 'other', provider: 'echo' }, ...models] },
    };
    await using gate = await gateway(JSON.stringify(yaml), { admin: true });
    const [edge, mcp, llm] = gate.ports.map((port) => `http://127.0.0.1:${port}`);
    await Promise.all([
      send(`${edge}/plain`),
      send(`${edge}/gone`),
      send(`${edge}/none`),
      send(`${edge}/nowhere`),
    ]);
    for (const url of [`${edge}/tools`, `${mcp}/mcp`]) {
      const session = await openSession(url);
      await session.request('tools/list');
      await fetch(url, { method: 'PUT' });
    }
    const body = JSON.stringify({ model: 'mini', messages: [{ role: 'user', content: 'Hi' }] });
    await send(`${edge}/chat/completions`, { method: 'POST', body });
    await send(`${llm}/v1/chat/completions`, { method: 'POST', body });
    await send(`${llm}/v1/chat/completions`, { method: 'POST', body: body.replace('mini', 'missing') });
    await send(`${llm}/v1/models`);
    await ended(gate, 16);
    const samples = (await scrape(gate)).get('gw_requests')?.samples ?? [];
    const seen = new Set(
      samples.map(({ labels: { backend, status, reason } }) => `${backend} ${status} ${reason}`),
    );
    const tools = '/gateway/edge/default/tools/backend0';
    expect([...seen].toSorted()).toEqual(
      [
        '/gateway/edge/default/plain/backend0 200 Upstream',
        '/gateway/edge/default/gone/backend0 503 UpstreamFailure',
        'unknown 200 DirectResponse',
        'unknown 404 NotFound',
        ...[tools, '/mcp'].flatMap((name) => [
          `${name} 200 Upstream`,
          `${name} 202 Upstream`,
          `${name} 405 MCP`,
        ]),
        '/gateway/edge/default/chat/backend0 200 Upstream',
        '/llm:model:mini:1 200 Upstream',
        '/llm:router 404 NotFound',
        '/llm:router 200 DirectResponse',
      ].toSorted(),
    );
    const dump = JSON.parse((await send(`${gate.admin}/config_dump`)).text) as ConfigDump;
    const dumped = dump.backends.flatMap(({ backend }) =>
      Object.values(backend).map((each) => `/${each?.name}`),
    );
    const labels = new Set(samples.map(({ labels: { backend } }) => backend));
    expect([...labels].filter((label) => label !== 'unknown' && !dumped.includes(label ?? ''))).toEqual([]);
  });

  test('HTTP metrics count requests, bytes, durations and connections by backend, status and reason', async () => {
    await using upstream = await httpUpstream((_, response) => response.writeHead(201).end('x'.repeat(100)));
    await using gate = await proxyGateway(upstream.address);
    await send(`${gate.url}/a`);
    await send(`${gate.url}/b`, { method: 'POST', body: 'abc' });
    await ended(gate, 2);
    const families = await scrape(gate);
    const labels = {
      backend: '/gateway/default/default/proxied/backend0',
      protocol: 'http',
      method: 'GET',
      status: '201',
      reason: 'Upstream',
      route: 'default/proxied',
    };
    expect(sampleValue(families, 'gw_requests_total', labels)).toBe(1);
    expect(sampleValue(families, 'gw_response_bytes_total', labels)).toBe(100);
    expect(sampleValue(families, 'gw_request_duration_seconds_count', labels)).toBe(1);
    expect(sampleValue(families, 'gw_request_duration_seconds_sum', labels)).toBeGreaterThan(0);
    const { backend, route } = labels;
    expect(sampleValue(families, 'gw_request_processing_seconds_count', { backend, route })).toBe(2);
    expect(sampleValue(families, 'gw_response_processing_seconds_count', { backend, route })).toBe(2);
    expect(sampleValue(families, 'gw_downstream_connections_total', { protocol: 'http' })).toBeGreaterThan(0);
    expect(sampleValue(families, 'gw_config_synchronized')).toBe(1);
    expect(sampleValue(families, 'gw_process_resident_memory_bytes')).toBeGreaterThan(1e6);
  });

  test('HTTP metrics follow the configured removals and additional labels', async () => {
    await using upstream = await httpUpstream((_, response) => response.end());
    const metrics = {
      remove: ['gw_response_bytes_total', 'request_duration'],
      fields: { add: { team: 'request.headers["x-team"]', number: '1 + 1' } },
    };
    await using gate = await proxyGateway(upstream.address, {}, { config: { metrics } });
    await send(gate.url, { headers: { 'x-team': 'a\\"b' } });
    await send(gate.url);
    await ended(gate, 2);
    const families = await scrape(gate);
    expect(sampleValue(families, 'gw_requests_total', { team: 'a\\"b', number: 'unknown' })).toBe(1);
    expect(sampleValue(families, 'gw_requests_total', { team: 'unknown' })).toBe(1);
    expect([...families.keys()].filter((name) => /response_bytes|request_duration/.test(name))).toEqual([]);
  });

  test('config.metrics.prefix renames all metrics, and removals know them by every name', async () => {
    const metrics = { prefix: 'agentgateway_', remove: ['gw_response_bytes', 'agentgateway_build_info'] };
    await using gate = await proxyGateway('127.0.0.1:1', {}, { config: { metrics } });
    await send(gate.url);
    await ended(gate, 1);
    const text = await gate.running.metrics.render();
    const families = parseMetrics(text, 'agentgateway_');
    expect(sampleValue(families, 'agentgateway_requests_total', {})).toBe(1);
    expect(sampleValue(families, 'agentgateway_request_duration_seconds_count', {})).toBe(1);
    expect(sampleValue(families, 'agentgateway_config_synchronized')).toBe(1);
    // The usage page reads the metrics, too.
    expect(commonPrefix(readMetrics(text))).toBe('agentgateway_');
    const names = [...families.keys()];
    expect(names.filter((name) => !name.startsWith('agentgateway_'))).toEqual([]);
    expect(names.filter((name) => /build_info|response_bytes/.test(name))).toEqual([]);
    await expect(proxyGateway('127.0.0.1:1', {}, { config: { metrics: { prefix: 'a-b' } } })).rejects.toThrow(
      /config\.metrics\.prefix/,
    );
  });

  test('an invalid metric label expression is a configuration error', async () => {
    const config = { metrics: { fields: { add: { a: 'nope.x' } } } };
    await expect(proxyGateway('127.0.0.1:1', {}, { config })).rejects.toThrow(
      /config\.metrics\.fields\.add\.a/,
    );
  });
});

describe('label limits', () => {
  test('label values over the limit are counted together', async () => {
    const metrics = new Metrics();
    const { guardrails } = metrics.families;
    for (let i = 0; i < LIMITS.metricSeries + 10; i++) guardrails.with(['p', `${i}`]).inc();
    const families = parseMetrics(await metrics.render());
    expect(families.get('gw_guardrail_checks')?.samples).toHaveLength(LIMITS.metricSeries + 1);
    expect(sampleValue(families, 'gw_guardrail_checks_total', { action: 'overflow' })).toBe(10);
  });

  test('models of successful calls have their own label up to a limit', async () => {
    const metrics = new Metrics();
    const route = new RouteSeries(metrics.families, []);
    const called = { operation: 'chat', provider: 'openai', streaming: false, request: {} } as const;
    const call = { ...called, limits: LIMITS };
    for (let i = 0; i < LIMITS.metricLabelValues + 5; i++)
      metrics.recordLlm({ ...call, requestModel: `m${i}` }, 1, true, route);
    metrics.recordLlm({ ...call, requestModel: 'refused' }, 1, false, route);
    metrics.recordLlm({ ...call, requestModel: 'm1' }, 1, false, route);
    const families = parseMetrics(await metrics.render());
    const name = 'gw_gen_ai_server_request_duration_count';
    expect(sampleValue(families, name, { gen_ai_request_model: 'overflow' })).toBe(5);
    expect(sampleValue(families, name, { gen_ai_request_model: 'unknown' })).toBe(1);
    expect(sampleValue(families, name, { gen_ai_request_model: 'm1' })).toBe(2);
  });

  test('a scrape of as many models as there may be gives other work a turn in between', async () => {
    const metrics = new Metrics();
    const route = new RouteSeries(metrics.families, []);
    const usage = { input: 1, output: 9, total: 10 };
    const timings = { streaming: true, firstTokenAfter: 10, lastTokenAfter: 100 };
    for (let i = 0; i < LIMITS.metricLabelValues; i++)
      metrics.recordLlm(
        {
          operation: 'chat',
          provider: 'openai',
          request: {},
          limits: LIMITS,
          requestModel: `m${i}`,
          usage,
          ...timings,
        },
        1,
        true,
        route,
      );
    // Loading the library is no part of it.
    await new Metrics().render();
    let [turns, isDone] = [0, false];
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const text = await metrics.render();
    isDone = true;
    expect(text.split('\n').length).toBeGreaterThan(15_000);
    // Within each family too: there are seven with values.
    expect(turns).toBeGreaterThan(1);
    expect(text.match(/^# TYPE gw_gen_ai_client_token_usage /gm)).toHaveLength(1);
    expect(parseMetrics(text).get('gw_gen_ai_server_time_to_first_token')?.samples.length).toBe(
      LIMITS.metricLabelValues * 19,
    );
  });
});
