import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { TraceEvent } from '../../../src/core/trace/event.ts';
import { askPolicy } from '../../kit/authz.ts';
import { chaos } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { startIdp } from '../../kit/idp.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  FINISH,
  guardrail,
  llmGateway,
  llmProvider,
  streaming,
  USAGE,
  webhook,
} from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { send } from '../../kit/send.ts';
import { signIn } from '../../kit/sign-in.ts';
import { goProblems, normalised, openTrace, recorded, traceServer } from '../../kit/trace.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';

// Whole traces, without times, ports and ids. `vitest -u` updates the files; review the diff.

const seen = new Set<string>();

async function golden(name: string, events: readonly TraceEvent[]): Promise<void> {
  for (const event of events) {
    seen.add(event.message.type);
    expect(goProblems(event)).toEqual([]);
  }
  await expect(normalised(events)).toMatchFileSnapshot(
    fileURLToPath(new URL(`golden/${name}.txt`, import.meta.url)),
  );
}

const route = (policies: object, backend: object = { host: 'unused:1' }): string =>
  JSON.stringify(
    {
      config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
      frontendPolicies: { accessLog: { add: { who: 'jwt.sub', method: 'request.method' } } },
      gateways: { default: { port: 0, routes: [{ name: 'main', policies, backends: [backend] }] } },
    },
    null,
    1,
  );

test('the trace of an allowed MCP tool call matches the golden file', async () => {
  const policies = {
    cors: { allowOrigins: ['https://a.example'] },
    authorization: { rules: ['request.method == "POST" || request.method == "DELETE"'] },
    mcpAuthorization: { rules: ['mcp.tool.name == "echo"', 'mcp.tool.target == "other"'] },
  };
  const backend = { mcp: { targets: [chaos('one', '--tools=echo,write')] } };
  await using gate = await gateway(route(policies, backend));
  const session = await openSession(`${gate.url}/mcp`);
  await golden(
    'mcp-call',
    await recorded(gate, () => session.request('tools/call', { name: 'echo', arguments: { text: 'hi' } })),
  );
  await golden('mcp-list', await recorded(gate, () => session.request('tools/list')));
  await golden(
    'mcp-item-denied',
    await recorded(gate, () => session.request('tools/call', { name: 'write', arguments: {} })),
  );
});

test('the traces of a failing MCP tool and of a rejecting server, both with status 200, match the golden files', async () => {
  await using gate = await gateway(route({}, { mcp: { targets: [chaos('one')] } }));
  const session = await openSession(`${gate.url}/mcp`);
  for (const [name, args] of [
    ['mcp-tool-error', {}],
    ['mcp-error', { code: -32603, message: 'no disk' }],
  ] as const)
    await golden(
      name,
      await recorded(gate, () => session.request('tools/call', { name: 'fail', arguments: args })),
    );
});

test('the trace of a session initialization matches the golden file', async () => {
  await using gate = await gateway(route({}, { mcp: { targets: [chaos('one')] } }));
  let sessionId = '';
  const events = await recorded(gate, async () => {
    const session = await openSession(`${gate.url}/mcp`);
    sessionId = session.id;
  });
  expect(JSON.stringify(events)).not.toContain(sessionId);
  await golden('mcp-initialize', events);
});

test('the trace of an HTTP request with a body matches the golden file', async () => {
  await using upstream = await httpUpstream((_, response) => response.writeHead(201).end('made'));
  const policies = {
    requestHeaderModifier: { set: { 'x-added': 'yes' } },
    responseHeaderModifier: { set: { 'x-answered': 'yes' } },
    apiKey: { mode: 'strict', keys: [{ key: 'canary-key', metadata: { team: 'a' } }] },
    localRateLimit: [{ maxTokens: 9, fillInterval: '1h' }],
    csrf: {},
  };
  await using gate = await gateway(route(policies, { host: upstream.address }));
  const headers = { authorization: 'Bearer canary-key', 'content-type': 'text/plain' };
  const events = await recorded(gate, () =>
    send(`${gate.url}/items?a=1&token=canary-query`, { method: 'POST', headers, body: 'a body' }),
  );
  expect(JSON.stringify(events)).not.toContain('canary');
  await golden('plain', events);
});

test('the trace of each policy that rejects or answers matches the golden file', async () => {
  await using idp = await startIdp();
  await using service = await httpUpstream((_, response) => response.writeHead(403).end('no'));
  await using silent = await httpUpstream(() => undefined);
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const origin = { origin: 'https://b.example', 'access-control-request-method': 'POST' };
  const cases: Record<string, [policies: object, options?: Parameters<typeof send>[1]]> = {
    cors: [{ cors: { allowOrigins: ['https://a.example'] } }, { method: 'OPTIONS', headers: origin }],
    'jwt-missing': [signIn('http://idp.example/realms/main')],
    apiKey: [{ apiKey: { mode: 'strict', keys: [{ key: 'canary-key' }] } }, bearer('canary-other')],
    extAuthz: [askPolicy(service.address), bearer('canary-token')],
    authorization: [
      {
        authorization: {
          rules: ['request.path.startsWith("/")', { deny: 'request.headers["x-bad"] == "1"' }],
        },
      },
      { headers: { 'x-bad': '1' } },
    ],
    csrf: [{ csrf: {} }, { method: 'POST', headers: { origin: 'https://evil.example' } }],
    directResponse: [{ directResponse: { status: 418, body: 'tea' } }],
  };
  for (const [name, [policies, options = {}]] of Object.entries(cases)) {
    await using gate = await gateway(route(policies));
    const events = await recorded(gate, () => send(`${gate.url}/x`, options));
    expect(JSON.stringify(events)).not.toContain('canary');
    await golden(`denied-${name}`, events);
  }
  await using limited = await gateway(
    route({ localRateLimit: [{ maxTokens: 1, fillInterval: '1h' }], directResponse: {} }),
  );
  await send(limited.url);
  await golden('denied-localRateLimit', await recorded(limited, () => send(limited.url)));
  await using slow = await gateway(route({ timeout: { requestTimeout: '50ms' } }, { host: silent.address }));
  await golden('ended-timeout', await recorded(slow, () => send(slow.url)));
  await using signed = await gateway(route({ ...signIn(idp.issuer), directResponse: {} }));
  const wrong = idp.token({ aud: 'other' });
  const refused = await recorded(signed, () => send(signed.url, bearer(wrong)));
  expect(JSON.stringify(refused)).not.toContain(wrong.split('.')[2]);
  const message = refused.map((event) => event.message).find(({ type }) => type === 'policy');
  expect(message).toMatchObject({ kind: 'jwt', action: 'deny', configLine: expect.any(Number) });
});

test('the trace of a request without a route lists why each route did not match', async () => {
  const routes = [
    { name: 'health', matches: [{ path: { exact: '/healthz' } }], policies: { directResponse: {} } },
    { name: 'api', hostnames: ['api.example'], policies: { directResponse: {} } },
    {
      name: 'post',
      matches: [
        { path: { pathPrefix: '/x' }, method: 'POST' },
        { path: { pathPrefix: '/x' }, headers: [{ name: 'x-team', value: { exact: 'canary' } }] },
      ],
      policies: { directResponse: {} },
    },
  ];
  await using gate = await gateway(JSON.stringify({ gateways: { default: { port: 0, routes } } }, null, 1));
  const events = await recorded(gate, () => send(`${gate.url}/x`));
  expect(JSON.stringify(events)).not.toContain('canary');
  await golden('no-route', events);
});

test('the trace of an LLM call with guardrails and price matches the golden file', async () => {
  await using provider = await llmProvider(answering(completion('Hello, 555-1234.')));
  await using before = await guardrail(() => ({ reason: 'fine' }));
  await using after = await guardrail(() => ({
    body: { choices: [{ message: { role: 'assistant', content: 'Hello, <phone>.' } }] },
    reason: 'a phone number',
  }));
  const rates = { input: '0.20', output: '1.00' };
  await using gate = await gateway(
    JSON.stringify(
      {
        config: {
          modelCatalog: [{ inline: { providers: { openai: { models: { 'acme-mini-1': { rates } } } } } }],
        },
        llm: {
          port: 0,
          models: [
            {
              name: '*',
              provider: 'oaiCompat',
              params: { baseUrl: `http://${provider.address}/v1`, apiKey: 'canary-provider-key' },
              transformation: {
                max_tokens: 'min(llmRequest.max_tokens, 100)',
                temperature: 'llmRequest.temp',
              },
              guardrails: { request: [webhook(before)], response: [webhook(after)] },
            },
          ],
        },
      },
      null,
      1,
    ),
  );
  const events = await recorded(gate, () =>
    chat(gate, {
      model: 'acme-mini',
      max_tokens: 8000,
      temperature: 0.9,
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  );
  expect(JSON.stringify(events)).not.toContain('canary');
  await golden('llm', events);
});

test('the trace of a streamed LLM call matches the golden file', async () => {
  await using provider = await llmProvider(
    streaming((response) =>
      response.end(
        chunk({ content: 'Hel' }) +
          chunk({ content: 'lo' }) +
          FINISH +
          chunk(undefined, { usage: USAGE }) +
          DONE,
      ),
    ),
  );
  await using gate = await llmGateway(provider);
  const events = await recorded(gate, () => chat(gate, { ...CHAT, stream: true }));
  await golden('llm-stream', events);
});

test('the trace of an unreachable backend matches the golden file', async () => {
  await using gate = await gateway(route({}, { host: `127.0.0.1:${await refusingPort()}` }));
  await golden('unreachable', await recorded(gate, () => send(gate.url)));
});

test('the trace of a request that is rejected before routing matches the golden file', async () => {
  await using gate = await gateway(route({}));
  await using server = await traceServer(gate.running);
  await using trace = await openTrace(server);
  await send(gate.url, { target: '/a%2f..%2fb%zz' });
  await golden('not-admitted', await trace.all());
});

test('the golden files contain every kind of trace event', () => {
  expect([...seen].toSorted()).toEqual(EVERY_TYPE.toSorted());
});

const EVERY_TYPE: Exclude<TraceEvent['message']['type'], 'message'>[] = [
  'requestStarted',
  'requestSnapshot',
  'responseSnapshot',
  'bodySnapshot',
  'cel',
  'routeSelection',
  'policySelection',
  'policy',
  'policyEvent',
  'traceSampling',
  'authorizationResult',
  'backendCallStart',
  'backendCallResult',
  'llmRouteResolved',
  'llmRequestDetected',
  'llmStreamingTranslation',
  'requestFinished',
];

test("the trace check detects events that upstream's decoder would reject", () => {
  const sound: TraceEvent = {
    eventStart: 1,
    eventEnd: 2,
    severity: 'info',
    message: { type: 'requestFinished', status: 200, error: null },
  };
  expect(goProblems(sound)).toEqual([]);
  const bad = [
    { ...sound, eventEnd: 2.5 },
    { ...sound, eventStart: -1 },
    { ...sound, message: { ...sound.message, status: '200' } },
    { ...sound, message: { ...sound.message, error: { code: 1 } } },
    { ...sound, message: { type: 'authorizationResult', rules: [{ name: 'a', matched: 1, mode: 'deny' }] } },
  ];
  for (const event of bad) expect(goProblems(event as unknown as TraceEvent)).toHaveLength(1);
});
