import type { TracePlace, TraceSeverity } from './trace/event.ts';
import {
  type AnyMessage,
  isRecord,
  placeOf,
  type ReadEvent,
  readEvent,
  recordsOf,
  textOf,
} from './trace/read-event.ts';
import { effectivePolicies, labelOf, policyName, summaryOf } from './trace/summary.ts';

// What a trace shows, from its events: pure, without Node or a browser, for `agctl proxy trace` and the web pages.

type State = Readonly<Record<string, unknown>>;

/** One event, ready to be shown. Texts are the sender's: escape them before printing. */
export interface TraceStep {
  readonly number: number;
  readonly label: string;
  readonly summary: string;
  readonly severity: TraceSeverity;
  /** Skipped policies are shown as such, whatever their severity. */
  readonly isSkip: boolean;
  /** µs since the request came in; `start` only for what took time. */
  readonly start: number | undefined;
  readonly end: number;
  readonly scope: readonly string[];
  readonly place: TracePlace | undefined;
  readonly message: AnyMessage;
  /** Variables as of this step, and as they were before. */
  readonly state: State | undefined;
  readonly before: State | undefined;
}

export type PolicyOutcome = 'in force' | 'applied' | 'skipped' | 'denied' | 'ended' | 'answered';

/** A policy of the request and what came of it. */
export interface TracePolicy {
  readonly name: string;
  readonly phase: string;
  readonly outcome: PolicyOutcome;
  readonly reason: string;
  readonly place: TracePlace | undefined;
}

export interface TraceRoute {
  /** Undefined when none matched. */
  readonly key: string | undefined;
  readonly place: TracePlace | undefined;
  readonly skipped: readonly {
    readonly route: string;
    readonly reason: string;
    readonly place: TracePlace | undefined;
  }[];
}

export interface TraceBackend {
  readonly target: string;
  readonly status: number | undefined;
  readonly error: string | undefined;
  /** µs from call to answer. */
  readonly took: number | undefined;
}

/** How the request ended, and what decided that. */
export interface TraceVerdict {
  readonly status: number | undefined;
  readonly error: string | undefined;
  readonly detail: string | undefined;
}

export interface TraceDecision {
  readonly by: string;
  readonly reason: string;
  readonly place: TracePlace | undefined;
}

export interface TraceModel {
  readonly steps: readonly TraceStep[];
  readonly route: TraceRoute | undefined;
  readonly policies: readonly TracePolicy[];
  /** Calls of the request itself and those made for it, outermost target last seen wins. */
  readonly backend: TraceBackend | undefined;
  /** What refused or answered the request before a backend did. */
  readonly decision: TraceDecision | undefined;
  readonly verdict: TraceVerdict | undefined;
  readonly state: State | undefined;
  /** Events that a slow reader or a limit lost. */
  readonly dropped: number;
  readonly hasCelError: boolean;
}

export const EMPTY_TRACE: TraceModel = {
  steps: [],
  route: undefined,
  policies: [],
  backend: undefined,
  decision: undefined,
  verdict: undefined,
  state: undefined,
  dropped: 0,
  hasCelError: false,
};

/** The trace with one more event. What cannot be read as an event is counted as lost. */
export function addEvent(trace: TraceModel, json: unknown): TraceModel {
  const event = readEvent(json);
  if (event === undefined) return { ...trace, dropped: trace.dropped + 1 };
  const { message } = event;
  const state = isRecord(message['requestState']) ? message['requestState'] : undefined;
  const isWhole = message.type !== 'cel';
  const step: TraceStep = {
    number: trace.steps.length + 1,
    label: labelOf(message),
    summary: summaryOf(message),
    severity: event.severity,
    isSkip: isRecord(message['result']) && message['result']['type'] === 'skip',
    start: event.start,
    end: event.end,
    scope: event.scope,
    place: placeOf(message),
    message,
    state: state ?? trace.state,
    before: trace.state,
  };
  return {
    ...trace,
    ...CHANGES[message.type]?.(trace, event),
    steps: [...trace.steps, step],
    // An expression reports only what it read.
    state: state !== undefined && isWhole ? state : trace.state,
  };
}

type Change = (trace: TraceModel, event: ReadEvent) => Partial<TraceModel>;

const CHANGES: Readonly<Record<string, Change>> = {
  routeSelection: selectRoute,
  policySelection: selectPolicies,
  policy: (trace, { message, severity }) => settlePolicy(trace, message, policyOutcome(message, severity)),
  authorizationResult: (trace, { message }) => {
    const isDenied = message['result'] === 'deny';
    const { place, reason } = decidingRule(message);
    const text = textOf(message['reason']) || reason;
    return settlePolicy(trace, message, { outcome: isDenied ? 'denied' : 'applied', reason: text, place });
  },
  cel: (trace, { message }) => ({
    hasCelError:
      trace.hasCelError || (isRecord(message['result']) && typeof message['result']['error'] === 'string'),
  }),
  backendCallStart: (trace, { message, scope }) =>
    isAside(scope)
      ? {}
      : {
          backend: {
            target: textOf(message['target']),
            status: undefined,
            error: undefined,
            took: trace.backend?.took,
          },
        },
  backendCallResult: (trace, { message, scope, start, end }) =>
    isAside(scope)
      ? {}
      : {
          backend: {
            target: textOf(message['target']) || (trace.backend?.target ?? ''),
            status: numberOf(message['status']),
            error: textOf(message['error']) || undefined,
            took: start === undefined ? undefined : end - start,
          },
        },
  requestFinished: (trace, { message }) => ({
    verdict: {
      status: numberOf(message['status']),
      error: textOf(message['error']) || undefined,
      detail: textOf(message['detail']) || undefined,
    },
    decision: trace.decision,
  }),
  message: (trace, { message }) => ({ dropped: trace.dropped + (numberOf(message['dropped']) ?? 0) }),
};

/** Calls that serve a policy, not the client. */
const ASIDE = new Set(['ext_authz', 'ext_proc', 'guardrail', 'rate_limit', 'oidc', 'mirror']);
const isAside = (scope: readonly string[]): boolean => scope.some((part) => ASIDE.has(part));

function selectRoute({ decision }: TraceModel, { message }: ReadEvent): Partial<TraceModel> {
  const selected = message['selectedRoute'];
  const skipped = recordsOf(message['skippedRoutes']).map((route) => ({
    route: textOf(route['route']),
    reason: textOf(route['reason']),
    place: placeOf(route),
  }));
  const place = placeOf(message);
  return typeof selected === 'string'
    ? {
        route: { key: selected, place, skipped },
        decision: decision?.by === 'routing' ? undefined : decision,
      }
    : {
        route: { key: undefined, place, skipped },
        decision: { by: 'routing', reason: 'no route matches', place },
      };
}

function selectPolicies(trace: TraceModel, { message }: ReadEvent): Partial<TraceModel> {
  const phase = textOf(message['phase']);
  const places = isRecord(message['places']) ? message['places'] : {};
  const known = new Set(trace.policies.map(({ name }) => sameName(name)));
  const added = effectivePolicies(message['effectivePolicy'])
    .filter((name) => !known.has(sameName(name)))
    .map((name): TracePolicy => {
      const place = places[name];
      return {
        name,
        phase,
        outcome: 'in force',
        reason: '',
        place: isRecord(place) ? placeOf(place) : undefined,
      };
    });
  return { policies: [...trace.policies, ...added] };
}

/** Upstream calls the authentication of an MCP route `jwt`. */
const sameName = (name: string): string => (name === 'mcpAuthentication' ? 'jwt' : name);

interface Settled {
  readonly outcome: PolicyOutcome;
  readonly reason: string;
  readonly place?: TracePlace | undefined;
}

function policyOutcome(message: AnyMessage, severity: TraceSeverity): Settled {
  const result = isRecord(message['result']) ? message['result'] : {};
  if (result['type'] === 'skip') return { outcome: 'skipped', reason: textOf(result['reason']) };
  const reason = textOf(result['details']);
  const action = message['action'];
  if (action === 'deny' || (action === undefined && severity === 'error'))
    return { outcome: 'denied', reason };
  return { outcome: OUTCOMES[textOf(action)] ?? 'applied', reason };
}

/** Of actions that decide the request; refusals apart. */
const OUTCOMES: Readonly<Record<string, PolicyOutcome>> = { respond: 'answered', end: 'ended' };

/** Whether it is over for the request with that. */
export const decides = (outcome: PolicyOutcome): boolean =>
  outcome === 'denied' || outcome === 'ended' || outcome === 'answered';

function settlePolicy(trace: TraceModel, message: AnyMessage, settled: Settled): Partial<TraceModel> {
  const name = policyName(message);
  const index = trace.policies.findIndex((policy) => sameName(policy.name) === sameName(name));
  const before = trace.policies[index];
  // A refusal stays, whatever else the policy says afterwards.
  const outcome = before?.outcome === 'denied' ? 'denied' : settled.outcome;
  const policy: TracePolicy = {
    name,
    phase: before?.phase ?? '',
    outcome,
    reason: outcome === settled.outcome ? settled.reason : (before?.reason ?? ''),
    place: settled.place ?? placeOf(message) ?? before?.place,
  };
  const policies = index === -1 ? [...trace.policies, policy] : trace.policies.with(index, policy);
  return decides(settled.outcome) && trace.decision === undefined && !isRecord(message['item'])
    ? { policies, decision: { by: name, reason: policy.reason, place: policy.place } }
    : { policies };
}

function decidingRule(message: AnyMessage): { place: TracePlace | undefined; reason: string } {
  const rules = recordsOf(message['rules']);
  const index = rules.findIndex((rule) => rule['decided'] === true);
  const rule = rules[index];
  if (rule === undefined) return { place: undefined, reason: '' };
  return { place: placeOf(rule), reason: `rules[${index}] ${textOf(rule['name'])}` };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
