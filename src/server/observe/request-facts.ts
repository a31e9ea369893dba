import { redactTarget } from '../../core/credentials.ts';
import { byForm } from '../../core/redact.ts';
import { groupOf, shownKeyOf, userOf } from '../expressions/caller.ts';
import type { Fact } from '../kernel/fact.ts';
import { GATEWAY } from '../kernel/gateway-name.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { withoutParameters } from '../kernel/request/request-target.ts';
import {
  type A2aCall,
  configuredParameters,
  credentialParameters,
  jwtClaims,
  retryAttempt,
} from '../kernel/request/shared-slots.ts';
import { usedByFailed } from '../llm/call/budget.ts';
import { failedModels, llmCall, refusedModel } from '../llm/llm-call.ts';
import { mcpFields } from '../mcp/request-fields.ts';
import type { PickedEndpoints } from '../transport/picked-endpoints.ts';

/** A request that has ended, with the status of its log line. */
export interface EndedRequest {
  readonly ctx: RequestContext;
  readonly status: number;
}

type RequestFact = Fact<EndedRequest>;

const statusFact: RequestFact = {
  name: 'http.status',
  attributes: ['http.response.status_code'],
  read: ({ status }) => status,
};

const protocolFact: RequestFact = { name: 'protocol', read: ({ ctx }) => ctx.protocol };

const durationFact: RequestFact = {
  name: 'duration',
  attribute: ({ ctx }) => Math.round(ctx.timings.duration),
  read: ({ ctx }) => `${Math.round(ctx.timings.duration)}ms`,
};

/** Facts that the gateway itself has set. */
const ownFacts: readonly RequestFact[] = [
  { name: 'gateway', read: () => GATEWAY.label },
  { name: 'listener', read: ({ ctx }) => ctx.listener },
  { name: 'route', read: ({ ctx }) => ctx.route },
  { name: 'endpoint', read: ({ ctx }) => ctx.endpoint },
  {
    name: 'src.addr',
    attributes: ['client.address', 'network.peer.address', 'network.peer.port'],
    read: ({ ctx }) => ctx.client.label,
  },
  {
    // Only if a trusted proxy has named the client: otherwise `src.addr` is the connection.
    name: 'network.peer.address',
    attributes: ['network.peer.address', 'network.peer.port'],
    read: ({ ctx }) => ctx.client.peer?.address,
  },
  {
    name: 'http.method',
    attributes: ['http.request.method', 'http.request.method_original'],
    read: ({ ctx }) => ctx.requestedMethod,
  },
];

/** Facts that come before those of the features, in the order of the access log. */
export const firstFacts: readonly RequestFact[] = [
  ...ownFacts,
  {
    name: 'http.host',
    attributes: ['server.address', 'server.port'],
    read: ({ ctx }) => requestedHost(ctx),
  },
  { name: 'http.path', attributes: ['url.path', 'url.query'], read: ({ ctx }) => redactedTarget(ctx) },
  {
    name: 'http.version',
    attributes: ['network.protocol.version'],
    read: ({ ctx }) => `HTTP/${ctx.request.httpVersion}`,
  },
  statusFact,
  { name: 'trace.id', attributes: [], read: ({ ctx }) => ctx.span?.traceId },
  { name: 'span.id', attributes: [], read: ({ ctx }) => ctx.span?.spanId },
  { name: 'jwt.sub', read: ({ ctx }) => subjectOf(ctx) },
  { name: 'caller.key', read: ({ ctx }) => shownKeyOf(ctx) },
  // The subject of a token has a field of its own.
  { name: 'caller.user', read: ({ ctx }) => (subjectOf(ctx) === undefined ? userOf(ctx) : undefined) },
  { name: 'caller.group', read: ({ ctx }) => groupOf(ctx) },
  protocolFact,
];

/** Facts of a request whose endpoint was picked. */
export const pickedFacts: readonly Fact<PickedEndpoints>[] = [
  { name: 'inferencepool.selected_endpoint', read: ({ first }) => first },
];

/** Facts of a call between agents, in the order of the access log. */
export const a2aFacts: readonly Fact<A2aCall>[] = [
  { name: 'a2a.method', read: ({ method }) => method },
  { name: 'a2a.response.outcome', read: ({ outcome }) => outcome },
  { name: 'a2a.response.error_code', read: ({ errorCode }) => errorCode },
  { name: 'a2a.task.state', read: ({ taskState }) => taskState },
];

/** Of a request that became no call of a model. */
export const refusedFact: RequestFact = {
  name: 'gen_ai.request.model',
  read: ({ ctx }) => (llmCall.get(ctx) === undefined ? refusedModel.get(ctx) : undefined),
};

/** Of a call that was sent to another model after failures. */
export const failoverFacts: readonly RequestFact[] = [
  { name: 'gw.ai.failover.from', read: ({ ctx }) => failedModels.get(ctx)?.join(', ') },
  // Budgets and limits count them with those of the answer.
  { name: 'gw.ai.failover.tokens', read: ({ ctx }) => usedByFailed.get(ctx)?.tokens || undefined },
];

/** Facts that come after those of the features. */
export const lastFacts: readonly RequestFact[] = [
  { name: 'error', isText: true, attributes: [], read: ({ ctx }) => redact(ctx.error) },
  {
    name: 'error.detail',
    isText: true,
    read: ({ ctx }) => redact(ctx.errorDetail ?? mcpFields.get(ctx)?.errorDetail),
  },
  { name: 'reason', read: ({ ctx }) => (ctx.reason === 'Upstream' ? undefined : ctx.reason) },
  { name: 'retry.attempt', read: ({ ctx }) => retryAttempt.get(ctx) },
  durationFact,
];

/** What is left to say of a request whose other facts could not be read. */
export const remainingFacts: readonly RequestFact[] = [
  ...ownFacts,
  statusFact,
  protocolFact,
  {
    name: 'error',
    isText: true,
    read: () => 'internal error: the other fields of this line could not be written',
  },
  durationFact,
];

function subjectOf(ctx: RequestContext): string | undefined {
  const subject = jwtClaims.get(ctx)?.['sub'];
  return typeof subject === 'string' ? subject : undefined;
}

/** Redacts credentials: a server's error message may quote the URL it was called with. */
const redact = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : byForm.text(text);

/**
 * The validated host, or the requested one if the request was rejected before validation. The host of an absolute
 * target takes precedence over the Host header (RFC 9112 §3.2.2).
 */
function requestedHost({ host, requestedHost = host, request }: RequestContext): string {
  if (requestedHost !== '') return requestedHost;
  const { url = '', headers } = request;
  const absolute = url.startsWith('/') ? undefined : /^https?:\/\/(?:[^/?#]*@)?([^/?#]*)/i.exec(url)?.[1];
  return absolute ?? headers.host ?? '';
}

/**
 * The validated request target, or the raw one if the request was rejected before validation. Query parameters that the
 * configuration reads credentials from are removed; other credentials are redacted.
 */
function redactedTarget(ctx: RequestContext): string | undefined {
  const { request, path, query, requestedTarget } = ctx;
  const secretParameters = credentialParameters.get(ctx);
  const url = path === '' ? request.url : (requestedTarget ?? path + query);
  const at = url?.indexOf('?') ?? -1;
  if (url === undefined) return undefined;
  const configured = configuredParameters.get(ctx);
  if (secretParameters === undefined || at === -1) return redactTarget(url, configured);
  return redactTarget(url.slice(0, at) + withoutParameters(url.slice(at), secretParameters), configured);
}
