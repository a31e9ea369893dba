import { withoutTokens } from '../../core/credentials.ts';
import type { Log, LogFields, LogLevel } from '../../core/log.ts';
import type {
  AuthorizationResultMessage,
  PolicyEventMessage,
  PolicyMessage,
  RouteSelectionMessage,
  TraceEvent,
  TraceMessageType,
  TracePlace,
} from '../../core/trace/event.ts';
import { placeText } from '../../core/trace/read-event.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { llmCall } from '../llm/llm-call.ts';
import { numberOf } from './access-log.ts';
import type { TraceSink } from './trace/tracer.ts';

/** Log modules of debug lines about single requests. Documented in `docs/observability.md`. */
const SCOPES = ['proxy::httpproxy', 'proxy::policy', 'auth', 'llm', 'llm::guardrail', 'mcp::call'] as const;
type Scope = (typeof SCOPES)[number];

/** Trace events that become log lines. Others are for trace subscribers only and are not built for the log. */
const ONLY: ReadonlySet<TraceMessageType> = new Set([
  'routeSelection',
  'policy',
  'policyEvent',
  'authorizationResult',
  'backendCallStart',
  'backendCallResult',
  'llmRequestDetected',
  'requestFinished',
]);

interface Line {
  readonly level?: LogLevel;
  readonly scope: Scope;
  readonly message: string;
  readonly fields?: LogFields;
}

/**
 * Writes debug lines about single requests: the decisions that `/debug/trace` shows, without values taken from the
 * request. Requests get a tracer for this only while one of the modules is at level debug or trace.
 */
export class RequestDebugLog {
  readonly #log: Log;
  #version = -1;
  #isOn = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Whether any of the modules is at debug or trace. Cheap enough to check per request: compares two numbers. */
  get isOn(): boolean {
    const { directives } = this.#log;
    if (this.#version !== directives.version) {
      this.#version = directives.version;
      this.#isOn = SCOPES.some((scope) => directives.allows(scope, 'debug'));
    }
    return this.#isOn;
  }

  /** A sink that logs the events of a request. Assigns the request a number, which its access-log line also carries. */
  of(ctx: RequestContext): TraceSink {
    numberOf(ctx);
    return {
      only: ONLY,
      event: (event) => this.#write(ctx, event),
      ended: () => undefined,
    };
  }

  #write(ctx: RequestContext, event: TraceEvent): void {
    const line = lineOf(event, ctx);
    if (line === undefined) return;
    const { level = 'debug', scope, message, fields } = line;
    if (level !== 'debug' && level !== 'trace') return;
    this.#log[level](scope, message, {
      'request.id': numberOf(ctx),
      'trace.id': ctx.span?.traceId,
      ...fields,
    });
  }
}

function lineOf(event: TraceEvent, ctx: RequestContext): Line | undefined {
  const { message } = event;
  switch (message.type) {
    case 'routeSelection':
      return routeLine(message, ctx);
    case 'policy':
      return policyLine(message);
    case 'authorizationResult':
      return rulesLine(message);
    case 'policyEvent':
      return eventLine(message);
    case 'llmRequestDetected': {
      const { provider, requestModel: requested } = message;
      const fields = { requested, model: llmCall.get(ctx)?.providerModel, provider };
      return { scope: 'llm', message: 'model selected', fields };
    }
    case 'backendCallStart':
      return { scope: callScope(event), message: 'call started', fields: { to: message.target } };
    case 'backendCallResult': {
      const { target, status, error } = message;
      const took =
        event.eventStart === null ? undefined : Math.round((event.eventEnd - event.eventStart) / 1000);
      return {
        scope: callScope(event),
        message: error === null ? 'call completed' : 'call failed',
        fields: { to: target, status: status ?? undefined, problem: error ?? undefined, ms: took },
      };
    }
    case 'requestFinished': {
      const { status, error, detail } = message;
      // The same field names as in the access log.
      const fields = {
        'http.status': status ?? undefined,
        error: error ?? undefined,
        'error.detail': detail,
        reason: ctx.reason,
      };
      if (status === null)
        return { scope: 'proxy::httpproxy', message: 'client disconnected before the response', fields };
      return error === null
        ? { level: 'trace', scope: 'proxy::httpproxy', message: 'request ended', fields }
        : { scope: 'proxy::httpproxy', message: 'request failed', fields };
    }
    default:
      return undefined;
  }
}

/** Skipped routes that a line lists: a gateway may have a thousand, and the first show the reason. */
const MAX_SKIPPED = 8;

function routeLine(
  { selectedRoute, skippedRoutes = [], ...place }: RouteSelectionMessage,
  ctx: RequestContext,
): Line {
  const { method } = ctx;
  const path = withoutTokens(ctx.path);
  if (selectedRoute !== null) {
    const fields = { method, path, route: selectedRoute, config: placed(place) };
    return { scope: 'proxy::httpproxy', message: 'route selected', fields };
  }
  const shown = skippedRoutes.slice(0, MAX_SKIPPED);
  const more = skippedRoutes.length - shown.length;
  return {
    scope: 'proxy::httpproxy',
    message: 'no route matches',
    fields: {
      method,
      path,
      ...Object.fromEntries(
        shown.map(({ route, reason }, index) => [`skipped.${index + 1}`, `${route}: ${reason}`]),
      ),
      more: more > 0 ? more : undefined,
    },
  };
}

/** Policies that authenticate the client. Their lines belong to the module `auth`. */
const AUTHENTICATION: ReadonlySet<string | undefined> = new Set([
  'mcpAuthentication',
  'jwtAuth',
  'basicAuth',
  'oidc',
  'apiKey',
]);

const POLICY_MESSAGES = {
  apply: 'policy applied',
  skip: 'policy skipped',
  deny: 'policy denied the request',
  end: 'policy ended the request',
  respond: 'policy sent the response',
} as const;

function policyLine({ policy, action = 'apply', result, ...place }: PolicyMessage): Line {
  const reason = result.type === 'skip' ? result.reason : result.details;
  // Snapshots of other policies contain values taken from requests.
  const counts = policy === 'localRateLimit' && result.type === 'apply' ? result.snapshot : undefined;
  return {
    level: action === 'skip' ? 'trace' : 'debug',
    scope: AUTHENTICATION.has(policy) ? 'auth' : 'proxy::policy',
    message: POLICY_MESSAGES[action],
    fields: { policy, reason, ...counts, config: placed(place) },
  };
}

function rulesLine({ policy, result, reason, item, ...place }: AuthorizationResultMessage): Line {
  const isAllowed = result === 'allow';
  const about = item === undefined ? {} : { item: `${item.kind} ${item.name}`, target: item.target };
  return {
    // List calls check every item, and most items are allowed.
    level: isAllowed && item !== undefined ? 'trace' : 'debug',
    scope: 'proxy::policy',
    message: isAllowed ? 'rules allowed' : 'rules denied',
    fields: { policy, reason, ...about, config: placed(place) },
  };
}

function eventLine({ kind, details, ...place }: PolicyEventMessage): Line | undefined {
  if (typeof details === 'string') return undefined;
  switch (kind) {
    case 'guardrail':
      return {
        scope: 'llm::guardrail',
        message: 'guardrail verdict',
        fields: { ...details, config: placed(place) },
      };
    case 'llm_eviction':
      return { scope: 'llm', message: 'model evicted', fields: details };
    case 'llm_evicted':
      return { scope: 'llm', message: 'target still evicted', fields: details };
    case 'mcp_bundle':
      return { scope: 'mcp::call', message: 'bundle', fields: details };
    case 'mcp_result_cut':
      return { scope: 'mcp::call', message: 'result cut', fields: details };
    case 'llm_failover':
      return { scope: 'llm', message: 'trying the next target', fields: details };
    default:
      return undefined;
  }
}

function callScope({ scope }: TraceEvent): Scope {
  switch (scope?.[0]) {
    case 'mcp':
      return 'mcp::call';
    case 'ext_authz':
    case 'ext_proc':
      return 'proxy::policy';
    case 'guardrail':
      return 'llm::guardrail';
    default:
      return 'proxy::httpproxy';
  }
}

function placed(place: TracePlace): string | undefined {
  return placeText(place) || undefined;
}
