import { describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { CHAT, chat, chunk, errorOf, modelsGateway } from '../../kit/llm-provider.ts';
import { INITIALIZE, post } from '../../kit/mcp.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, refusingPort } from '../../kit/upstream.ts';

// A plain service, an LLM provider and an MCP server fail alike: the client learns the cause, the log also the address.

/** A gateway with one upstream, and one request to it with its status and text. */
interface Kind {
  open(origin: string, policies?: object): Promise<TestGateway>;
  ask(gate: TestGateway): Promise<{ status: number; text: string }>;
  /** Status for an unreachable upstream, and for one with an invalid response. */
  readonly statuses: { readonly unreachable: number; readonly invalid: number };
  /** The gateway's log message for an unreachable upstream. */
  readonly warning: string;
}

const plain: Kind = {
  open: (origin, policies) => proxyGateway(origin, policies),
  ask: ({ url }) => send(url).then(({ status, text }) => ({ status, text })),
  statuses: { unreachable: 503, invalid: 502 },
  warning: 'an upstream cannot be reached',
};
const llm: Kind = {
  open: (origin, policies = {}) =>
    modelsGateway([{ name: '*', provider: 'oaiCompat', params: { baseUrl: `${origin}/v1` } }], {
      policies,
    }),
  ask: async (gate) => {
    const reply = await chat(gate);
    return { status: reply.status, text: reply.status === 200 ? '' : errorOf(reply).message };
  },
  statuses: { unreachable: 503, invalid: 502 },
  warning: 'an upstream cannot be reached',
};
const mcp: Kind = {
  open: (origin) => gateway(mcpConfig([{ name: 'a', mcp: { host: `${origin}/mcp` } }])),
  ask: async ({ url }) => {
    const { status, error } = await post(`${url}/mcp`, INITIALIZE);
    return { status, text: error.message };
  },
  // Of a session that could not be initialized.
  statuses: { unreachable: 500, invalid: 500 },
  warning: 'target is not available',
};

describe.each([
  ['a plain service', plain],
  ['a provider of models', llm],
  ['an MCP server', mcp],
] as const)('failures of %s', (kind, { open, ask, statuses, warning }) => {
  /** Sends one request: the client gets the cause without the address; the log and the access log have both. */
  async function failsWith(origin: string, status: number, why: string): Promise<void> {
    const address = origin.replace(/^https?:\/\//, '');
    await using gate = await open(origin);
    const reply = await ask(gate);
    expect(reply.status).toBe(status);
    expect(reply.text).toContain(why);
    expect(reply.text).not.toContain(address);
    expect((await gate.accessLine(1))['error.detail']).toContain(`${address}: ${why}`);
    const lines = gate.log.filter((line) => line.includes(warning));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(address);
    expect(lines[0]).toContain(why);
  }

  test(`${kind} that refuses connections gives a status, a client message and one log line`, async () => {
    await failsWith(`http://127.0.0.1:${await refusingPort()}`, statuses.unreachable, 'connection refused');
  });

  test(`${kind} whose name does not resolve gives a status, a client message and one log line`, async () => {
    await failsWith('http://nowhere.invalid:8080', statuses.unreachable, 'the host name does not resolve');
  });

  test(`${kind} that does not speak TLS gives a status, a client message and one log line`, async () => {
    await using upstream = await httpUpstream();
    await failsWith(`https://${upstream.address}`, statuses.invalid, 'it does not speak TLS');
  });

  test(`${kind} that closes the connection before a response is named in the access log`, async () => {
    await using upstream = await httpUpstream((request) => request.socket.destroy());
    await using gate = await open(`http://${upstream.address}`);
    expect((await ask(gate)).text).toContain('the connection was closed before a response');
    const detail = `${upstream.address}: the connection was closed before a response`;
    expect((await gate.accessLine(1))['error.detail']).toContain(detail);
  });
});

describe.each([
  ['a plain service', plain],
  ['a provider of models', llm],
] as const)('timeouts of %s', (kind, { open, ask }) => {
  test(`${kind} that does not answer in time gives 504`, async () => {
    await using upstream = await httpUpstream(() => undefined);
    const timeout = { backendRequestTimeout: '100ms' };
    await using gate = await open(`http://${upstream.address}`, { timeout });
    expect(await ask(gate)).toEqual({ status: 504, text: 'upstream call timeout' });
    expect((await gate.accessLine(1))['error.detail']).toBe(`${upstream.address}: response timeout`);
    // The upstream was reached, so the log has no warning.
    expect(gate.log.filter((line) => line.includes('\twarn\t'))).toEqual([]);
  });

  test(`${kind} is logged once while unreachable and once when reachable again`, async () => {
    const port = await refusingPort();
    await using gate = await open(`http://127.0.0.1:${port}`);
    for (let turn = 0; turn < 3; turn += 1) expect((await ask(gate)).status).toBe(503);
    const news = (): string[] =>
      gate.log
        .filter((line) => line.includes('proxy::upstream'))
        .map((line) => line.split('\t')[3] as string);
    expect(news()).toEqual(['an upstream cannot be reached']);
    await using _back = await httpUpstream((_request, response) => response.end('{"error":{}}'), { port });
    await ask(gate);
    expect(news()).toEqual(['an upstream cannot be reached', 'an upstream is reachable again']);
  });
});

const ECHO = { name: '*', provider: 'echo' };
/** Real limits are seconds. */
const QUICK = { limits: { authorizationTimeout: 200, guardrailTimeout: 200 } };
/** Every call gets a span, which no collector receives. */
const RECORDED = { config: { tracing: { otlpEndpoint: 'http://127.0.0.1:1', randomSampling: true } } };

describe.each([
  [
    'an authorization service',
    (host: string) => modelsGateway([ECHO], { policies: askPolicy(host) }, RECORDED, QUICK),
    'the authorization service could not be reached: ',
    'timed out',
  ],
  [
    'a webhook of a guardrail',
    (host: string) =>
      modelsGateway(
        [{ ...ECHO, guardrails: { request: [{ webhook: { target: { host } } }] } }],
        {},
        RECORDED,
        QUICK,
      ),
    '',
    'the webhook timed out',
  ],
] as const)('failures of %s', (kind, open, said, late) => {
  test(`${kind} that is unreachable is named in the access log, and once in the log`, async () => {
    const port = await refusingPort();
    const address = `127.0.0.1:${port}`;
    await using gate = await open(address);
    for (let call = 1; call < 4; call += 1) {
      const reply = await chat(gate);
      expect(reply.status).toBeGreaterThan(400);
      expect(reply.text).not.toContain(address);
      const detail = (await gate.accessLine(call))['error.detail'];
      expect(detail).toBe(`${said}${address}: connection refused`);
    }
    const news = (): string[] => gate.log.filter((line) => line.includes('proxy::upstream'));
    expect(news()).toHaveLength(1);
    expect(news()[0]).toContain(`upstream="${address}" problem="connection refused"`);
    await using _back = await httpUpstream((_request, response) => response.end('{"action":{}}'), { port });
    expect((await chat(gate)).status).toBe(200);
    expect(news()[1]).toContain('an upstream is reachable again');
  });

  test(`${kind} that does not answer is named in the access log`, async () => {
    await using upstream = await httpUpstream(() => undefined);
    await using gate = await open(upstream.address);
    expect((await chat(gate)).text).not.toContain(upstream.address);
    expect((await gate.accessLine(1))['error.detail']).toBe(`${said}${upstream.address}: ${late}`);
    expect(gate.log.filter((line) => line.includes('proxy::upstream'))).toEqual([]);
  });
});

test('an MCP server that does not answer in time is named in the access log', async () => {
  await using upstream = await httpUpstream(() => undefined);
  const config = mcpConfig([{ name: 'a', mcp: { host: `http://${upstream.address}/mcp` } }]);
  await using gate = await gateway(config, { limits: { sessionStartTimeout: 200 } });
  expect((await mcp.ask(gate)).text).toContain('no answer within 0.2 s');
  expect((await gate.accessLine(1))['error.detail']).toBe(
    `target "a": ${upstream.address}: no answer within 0.2 s`,
  );
});

test.each([
  ['a whole response', {}, 'text/plain'],
  ['a stream', { stream: true }, 'text/event-stream'],
])('an LLM provider that ends %s early is named in the log', async (_, more, type) => {
  await using provider = await httpUpstream((_request, response) => {
    response.writeHead(200, { 'content-type': type });
    response.write(chunk({ content: 'Hel' }), () => response.destroy());
  });
  await using gate = await llm.open(`http://${provider.address}`);
  await chat(gate, { ...CHAT, ...more }).catch(() => undefined);
  expect((await gate.accessLine(1))['error.detail']).toBe(
    `${provider.address}: the connection was closed before a response`,
  );
});

test('a client disconnect is not logged as a failure of the provider', async () => {
  let asked = false;
  await using provider = await httpUpstream(() => {
    asked = true;
  });
  await using gate = await llm.open(`http://${provider.address}`);
  const leaving = new AbortController();
  const call = fetch(`${gate.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(CHAT),
    signal: leaving.signal,
  });
  await until(() => asked);
  leaving.abort();
  await expect(call).rejects.toThrow();
  expect((await gate.accessLine(1))['error.detail']).toBeUndefined();
});
