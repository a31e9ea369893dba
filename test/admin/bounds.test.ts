import { expect, test } from 'vitest';
import { askPolicy } from '../kit/authz.ts';
import { chaos } from '../kit/config.ts';
import { openEvents } from '../kit/event-stream.ts';
import { gateway } from '../kit/gateway.ts';
import { startIdp } from '../kit/idp.ts';
import { webhook } from '../kit/llm-provider.ts';
import { openSession } from '../kit/mcp.ts';
import { send } from '../kit/send.ts';
import { signIn } from '../kit/sign-in.ts';
import { until } from '../kit/until.ts';
import { refusingPort } from '../kit/upstream.ts';

interface Listed {
  readonly name: string;
  readonly at?: string;
  readonly used?: number;
  readonly max: number;
}

/** Every buffer, queue, cache and count of `core/limits.ts` that a gateway has, by its name in `/memory`. */
const COUNTED = [
  'admin.auditEvents',
  'admin.connections',
  'admin.recentRequestBytes',
  'admin.recentRequests',
  'admin.services',
  'admin.streams',
  'cel.patterns',
  'connections',
  'extAuthz.connections',
  'guardrail.connections',
  'localRateLimit.keys',
  'mcp.children',
  'mcp.endedSessions',
  'mcp.keptResultBytes',
  'mcp.keptStarts',
  'mcp.session.inFlight',
  'mcp.session.keptResultBytes',
  'mcp.session.keptResults',
  'mcp.session.queuedMessages',
  'mcp.session.unanswered',
  'mcp.sessions',
  'mcpAuthentication.keys',
  'mcpAuthentication.registrations',
  'mcpAuthentication.tokens',
  'metrics.labelValues',
  'metrics.series',
  'trace.queueBytes',
  'trace.queueEvents',
  'trace.watchers',
  'tracing.spans',
  'upstream.hosts',
];

const EACH = [
  'admin.bodyBytes',
  'extAuthz.answerBytes',
  'extProc.answerBytes',
  'guardrail.answerBytes',
  'guardrail.heldBytes',
  'llm.batchLineBytes',
  'llm.requestBytes',
  'llm.responseBodyBytes',
  'llm.streamFrameBytes',
  'log.queueBytes',
  'mcp.child.errorBytes',
  'mcp.child.inputBytes',
  'mcp.messageBytes',
  'mcpAuthentication.keySetBytes',
  'mcpAuthentication.metadataBytes',
  'mcpAuthentication.registrationBytes',
  'playground.replyBytes',
  'request.bodyBytes',
  'request.headerBytes',
  'request.spans',
  'response.waitingBytes',
  'trace.bodyBytes',
  'trace.followed',
];

test('/memory lists every bounded buffer, and the use of those that outlive a request', async () => {
  await using idp = await startIdp();
  const port = await refusingPort();
  const tools = {
    name: 'tools',
    matches: [{ path: { pathPrefix: '/mcp' } }],
    policies: { ...signIn(idp.issuer), localRateLimit: [{ maxTokens: 99, fillInterval: '1h' }] },
    backends: [{ mcp: { targets: [{ ...chaos('one'), tools: { maxResultTokens: 1000 } }] } }],
  };
  const asking = { policies: { ...askPolicy(`127.0.0.1:${port}`), directResponse: {} } };
  const model = {
    name: '*',
    provider: 'oaiCompat',
    params: { baseUrl: `http://127.0.0.1:${port}/v1` },
    guardrails: { request: [webhook({ address: `127.0.0.1:${port}` })] },
  };
  const config = {
    config: {
      adminAddr: 'off',
      connectionTerminationDeadline: '100ms',
      tracing: { otlpEndpoint: `http://127.0.0.1:${port}`, randomSampling: true },
    },
    gateways: { default: { port: 0, routes: [tools, asking] } },
    llm: { port: 0, models: [model] },
  };
  await using gate = await gateway(JSON.stringify(config), { admin: true });
  const headers = { authorization: `Bearer ${idp.token({ sub: 'ann' })}` };
  const session = await openSession(`${gate.url}/mcp`, headers);
  const call = { id: 9, method: 'tools/call', params: { name: 'hang', arguments: {} } };
  const leave = new AbortController();
  void session.send({ jsonrpc: '2.0', ...call }, { signal: leave.signal }).catch(() => undefined);
  // A server request without an open stream is queued.
  const watching = await openEvents(`${gate.admin}/debug/trace?count=2`, {});
  await using _ = watching;
  const list = async (): Promise<Listed[]> => JSON.parse((await send(`${gate.admin}/memory`)).text).bounds;
  await until(async () =>
    (await list()).some(({ name, used }) => name === 'mcp.session.inFlight' && used === 1),
  );
  const bounds = await list();
  leave.abort();
  const names = (wanted: (bound: Listed) => boolean): string[] =>
    [...new Set(bounds.filter(wanted).map(({ name }) => name))].toSorted();
  expect(names(({ used }) => used !== undefined)).toEqual(COUNTED);
  expect(names(({ used }) => used === undefined)).toEqual(EACH);
  for (const { name, used = 0, max } of bounds) expect(used, name).toBeLessThanOrEqual(max);
  const used = (name: string): number | undefined => bounds.find((bound) => bound.name === name)?.used;
  expect([used('mcpAuthentication.keys'), used('mcpAuthentication.tokens')]).toEqual([1, 1]);
  expect([used('trace.watchers'), used('localRateLimit.keys'), used('mcp.sessions')]).toEqual([1, 1, 1]);
  expect(used('admin.connections')).toBeGreaterThan(0);
  expect(bounds).toContainEqual({
    name: 'metrics.series',
    at: 'gw_requests',
    used: expect.any(Number),
    max: 2000,
  });
});
