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
import type { RequestContext } from '../kernel/request-context.ts';
import { llmCall } from '../llm/call.ts';
import { numberOf } from './request-number.ts';
import type { TraceOutlet } from './trace/tracer.ts';

/** The modules of what is said of single requests. Documented in `docs/observability.md`. */
const SCOPES = ['proxy::httpproxy', 'proxy::policy', 'auth', 'llm', 'llm::guardrail', 'mcp::call'] as const;
type Scope = (typeof SCOPES)[number];

/** What a line is made of; anything else that a tracer tells is for watchers alone, and is not even built. */
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
 * The log's debug lines on requests: the same decisions that `/debug/trace` shows, without any value that a request
 * brought. Requests have a tracer for it only while one of the modules is at debug or trace.
 */
export class RequestLines {
  readonly #log: Log;
  #version = -1;
  #isOn = false;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Whether anything is to be said of requests. Asked for every one: two numbers are compared. */
  get isOn(): boolean {
    const { directives } = this.#log;
    if (this.#version !== directives.version) {
      this.#version = directives.version;
      this.#isOn = SCOPES.some((scope) => directives.allows(scope, 'debug'));
    }
    return this.#isOn;
  }

  /** Writes what a tracer tells of the request. From now on it has a number, which its access-log line shows, too. */
  of(ctx: RequestContext): TraceOutlet {
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
      return { scope: 'llm', message: 'model chosen', fields };
    }
    case 'backendCallStart':
      return { scope: callScope(event), message: 'call begins', fields: { to: message.target } };
    case 'backendCallResult': {
      const { target, status, error } = message;
      const took =
        event.eventStart === null ? undefined : Math.round((event.eventEnd - event.eventStart) / 1000);
      return {
        scope: callScope(event),
        message: error === null ? 'call answered' : 'call failed',
        fields: { to: target, status: status ?? undefined, problem: error ?? undefined, ms: took },
      };
    }
    case 'requestFinished': {
      const { status, error, detail } = message;
      // Named as in the access log.
      const fields = {
        'http.status': status ?? undefined,
        error: error ?? undefined,
        'error.detail': detail,
        reason: ctx.reason,
      };
      if (status === null)
        return { scope: 'proxy::httpproxy', message: 'the client left before its answer', fields };
      return error === null
        ? { level: 'trace', scope: 'proxy::httpproxy', message: 'request ended', fields }
        : { scope: 'proxy::httpproxy', message: 'request failed', fields };
    }
    default:
      return undefined;
  }
}

/** Of a gateway with a thousand routes, the first that were not taken are enough to see why. */
const MOST_SKIPPED = 8;

function routeLine(
  { selectedRoute, skippedRoutes = [], ...place }: RouteSelectionMessage,
  ctx: RequestContext,
): Line {
  const { method } = ctx;
  const path = withoutTokens(ctx.path);
  if (selectedRoute !== null) {
    const fields = { method, path, route: selectedRoute, config: placed(place) };
    return { scope: 'proxy::httpproxy', message: 'route taken', fields };
  }
  const shown = skippedRoutes.slice(0, MOST_SKIPPED);
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

/** Policies that say who somebody is. */
const SIGN_IN: ReadonlySet<string | undefined> = new Set(['mcpAuthentication', 'apiKey']);

const DONE = {
  apply: 'policy applied',
  skip: 'policy skipped',
  deny: 'policy refused',
  end: 'policy ended the request',
  respond: 'policy answered',
} as const;

function policyLine({ policy, action = 'apply', result, ...place }: PolicyMessage): Line {
  const reason = result.type === 'skip' ? result.reason : result.details;
  // The other snapshots are of what requests brought.
  const counts = policy === 'localRateLimit' && result.type === 'apply' ? result.snapshot : undefined;
  return {
    level: action === 'skip' ? 'trace' : 'debug',
    scope: SIGN_IN.has(policy) ? 'auth' : 'proxy::policy',
    message: DONE[action],
    fields: { policy, reason, ...counts, config: placed(place) },
  };
}

function rulesLine({ policy, result, reason, item, ...place }: AuthorizationResultMessage): Line {
  const isAllowed = result === 'allow';
  const about = item === undefined ? {} : { item: `${item.kind} ${item.name}`, target: item.target };
  return {
    // A list asks for every item, most of which are allowed.
    level: isAllowed && item !== undefined ? 'trace' : 'debug',
    scope: 'proxy::policy',
    message: isAllowed ? 'rules allow' : 'rules refuse',
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
      return { scope: 'llm', message: 'model is left alone', fields: details };
    case 'llm_left_alone':
      return { scope: 'llm', message: 'a target is still left alone', fields: details };
    case 'llm_failover':
      return { scope: 'llm', message: 'the next target is tried', fields: details };
    default:
      return undefined;
  }
}

function callScope({ scope }: TraceEvent): Scope {
  switch (scope?.[0]) {
    case 'mcp':
      return 'mcp::call';
    case 'ext_authz':
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
