import { beforeAll, describe, expect, test } from 'vitest';
import type { TraceEvent } from '../../../src/core/trace/event.ts';
import { mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { collector, type ReceivedSpan } from '../../kit/otlp.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** A meaningless value in the form of a signed token (RFC 7519). */
const JWT = `eyJhbGciOiJub25lIn0.eyJzdWIiOiJub2JvZHkifQ.${'c2ln'.repeat(8)}`;
const VALUE = 'V4lueOfACredential';

const PARAMETERS = [
  'access_token',
  'id_token_hint',
  'api_key',
  'apikey',
  'key',
  'password',
  'token',
  'sig',
  'signature',
  'code',
  'client_secret',
  'client_assertion',
  'subscription-key',
  'session_id',
  'X-Amz-Signature',
  'X-Amz-Credential',
  'X-Amz-Security-Token',
  'X-Goog-Signature',
  // As a server reads it, this is `token`.
  '%74oken',
  'token%5B%5D',
];

interface Outputs {
  /** The text about the request in each output, by the name of the output. */
  readonly texts: Readonly<Record<string, string>>;
  readonly path: string;
  readonly upstreamTarget: string;
}

/** Everything that a gateway outputs about one request. */
async function outputsOf(
  target: string,
  headers: Record<string, string> = {},
  process: object = {},
  env: Record<string, string> = {},
): Promise<Outputs> {
  await using sink = await collector('http');
  await using upstream = await httpUpstream((_, response) =>
    response.writeHead(200, { 'x-refreshed': JWT, location: `/done?${target.split('?')[1]}` }).end('ok'),
  );
  const policies = { requestHeaderModifier: { set: { authorization: `Bearer \${UPSTREAM_KEY:-none}` } } };
  const yaml = routesConfig([{ policies, backends: [{ host: upstream.address }] }], {
    config: {
      tracing: {
        otlpEndpoint: sink.url,
        otlpProtocol: 'http',
        randomSampling: true,
        fields: { add: { 'added.uri': 'request.uri', 'added.auth': 'request.headers["authorization"]' } },
      },
      logging: { format: 'text' },
      ...process,
    },
    frontendPolicies: {
      accessLog: {
        add: {
          uri: 'request.uri',
          user: 'request.headers["x-user"]',
          auth: 'request.headers["authorization"]',
          all: '{"headers": [request.headers]}',
        },
      },
    },
  });
  let trace: TraceEvent[] = [];
  let path = '';
  let recent = '';
  let log: readonly string[] = [];
  {
    await using gate = await gateway(yaml, { admin: true, level: 'debug', env });
    trace = await recorded(gate, () => send(gate.url, { target, headers }));
    const line = await gate.accessLine(1);
    path = line['http.path'] as string;
    recent = (await send(`${gate.admin}/api/requests`)).text;
    log = [...gate.log, ...gate.accessLog];
    await gate.close();
  }
  await until(() => sink.spans.length > 0);
  return {
    texts: {
      'access log and log': log.join(''),
      'recent requests': recent,
      trace: JSON.stringify(trace),
      spans: JSON.stringify(sink.spans satisfies readonly ReceivedSpan[]),
    },
    path,
    upstreamTarget: upstream.received[0]?.target ?? '',
  };
}

describe('redaction of query parameters', () => {
  let outputs: Outputs;
  const target = `/x?first=1&${PARAMETERS.map((name) => `${name}=${VALUE}`).join('&')}&last=2`;
  beforeAll(async () => {
    outputs = await outputsOf(target);
  });

  test.each(['access log and log', 'recent requests', 'trace', 'spans'])(
    'query credentials are redacted in: %s',
    (output) => {
      expect(outputs.texts[output]).toContain('first=1');
      expect(outputs.texts[output]).not.toContain(VALUE);
    },
  );

  test('redaction keeps parameter names and all other values, and the upstream receives everything', () => {
    const shown = PARAMETERS.map((name) => `${name}=<redacted>`).join('&');
    expect(outputs.path).toBe(`/x?first=1&${shown}&last=2`);
    expect(outputs.upstreamTarget).toBe(target);
  });
});

describe('values that are not credentials', () => {
  test.each([
    '/x?q=token&page=2&sort=key',
    '/x?codec=h264&monkey=1&authors=a&passage=3',
    '/keys/code?a=b;c=d',
  ])('the query of %s, which has no credential, is not redacted', async (target) => {
    expect((await outputsOf(target)).path).toBe(target);
  });
});

describe('values redacted by their form or name', () => {
  test('a token is redacted in a parameter of any name, in a path and after a semicolon', async () => {
    const { texts, path } = await outputsOf(`/reset/${JWT}?state=${JWT}&a=1;token=${VALUE};x`);
    expect(path).toBe('/reset/<redacted>?state=<redacted>&a=1;token=<redacted>');
    for (const text of Object.values(texts)) {
      expect(text).not.toContain(JWT);
      expect(text).not.toContain(VALUE);
    }
  });

  test('credentials in request and response headers are redacted in traces', async () => {
    const headers = {
      'x-user': JWT,
      'x-vault-token': `${VALUE}1`,
      'x-user-session': `${VALUE}2`,
      'x-session-id': `${VALUE}3`,
      'ocp-apim-subscription-key': `${VALUE}4`,
      referer: `https://app.example/callback?code=${VALUE}5`,
      'x-plain': 'stays-readable',
    };
    const { texts } = await outputsOf('/x?first=1', headers);
    const { trace = '' } = texts;
    expect(trace).toContain('stays-readable');
    expect(trace).toContain('"x-refreshed"');
    expect(trace).not.toContain(VALUE);
    expect(trace).not.toContain(JWT);
  });
});

test('a secret of the configuration is redacted in fields that it adds, also inside of objects', async () => {
  const { texts } = await outputsOf(
    '/x?first=1',
    { 'x-plain': 'stays-readable' },
    {},
    { UPSTREAM_KEY: VALUE },
  );
  expect(texts['access log and log']).toContain('auth="<redacted>"');
  expect(texts['access log and log']).toContain('stays-readable');
  expect(texts['spans']).toContain('<redacted>');
  for (const text of Object.values(texts)) expect(text).not.toContain(VALUE);
});

test('the values of `sensitiveHeaders` are redacted in traces, in requests and responses', async () => {
  const headers = { 'x-patient': `${VALUE}1`, 'x-plain': 'stays-readable' };
  const shown = await outputsOf('/x?first=1', headers);
  expect(shown.texts['trace']).toContain(VALUE);
  const { trace = '' } = (
    await outputsOf('/x?first=1', headers, { sensitiveHeaders: ['X-Patient', 'location'] })
  ).texts;
  expect(trace).toContain('stays-readable');
  expect(trace).not.toContain(VALUE);
  expect(trace).not.toContain('/done?');
});

describe('MCP resource URIs', () => {
  test('credentials of a resource URI are redacted in the access log but sent to the server', async () => {
    await using upstream = await mcpUpstream({ capabilities: { resources: {} } });
    await using gate = await gateway(mcpConfig([{ name: 'files', mcp: { host: upstream.url } }]));
    const session = await openSession(gate.url);
    const uri = `https://files.example/a?access_token=${VALUE}&v=1`;
    await session.request('resources/read', { uri });
    await until(() => gate.accessLog.some((line) => line.includes('resources/read')));
    const line = gate.accessLog.find((text) => text.includes('resources/read')) ?? '';
    expect(line).toContain('mcp.resource.uri=https://files.example/a?access_token=<redacted>&v=1');
    expect(gate.accessLog.join('')).not.toContain(VALUE);
  });
});
