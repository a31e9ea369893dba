import { entryIn, isRecord, textIn } from './foreign.ts';
import type { TracePlace, TraceSeverity } from './trace/event.ts';
import { type AnyMessage, placeOf, type ReadEvent, readEvent, recordsOf } from './trace/read-event.ts';
import { effectivePolicies, labelOf, policyName, summaryOf } from './trace/summary.ts';

// The state of a trace, built from its events without Node.js or browser APIs, for `agctl proxy trace` and the web
// pages.

type State = Readonly<Record<string, unknown>>;

/** One event, ready for display. Texts come from the sender: escape them before printing. */
export interface TraceStep {
  readonly number: number;
  readonly label: string;
  readonly summary: string;
  readonly severity: TraceSeverity;
  /** Skipped policies are displayed as skipped, whatever their severity. */
  readonly isSkip: boolean;
  /** µs since the request arrived; `start` only for events with a duration. */
  readonly start: number | undefined;
  readonly end: number;
  readonly scope: readonly string[];
  readonly place: TracePlace | undefined;
  readonly message: AnyMessage;
  /** Variables as of this step and before it. */
  readonly state: State | undefined;
  readonly before: State | undefined;
}

export type PolicyOutcome = 'in force' | 'applied' | 'skipped' | 'denied' | 'ended' | 'answered';

/** A policy of the request and its outcome. */
export interface TracePolicy {
  readonly name: string;
  readonly phase: string;
  readonly outcome: PolicyOutcome;
  readonly reason: string;
  readonly place: TracePlace | undefined;
}

export interface TraceRoute {
  /** Undefined if no route matched. */
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
  /** µs from the call to its result. */
  readonly took: number | undefined;
}

/** How the request ended. */
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
  /** The backend that was called last for the request itself, outermost target. */
  readonly backend: TraceBackend | undefined;
  /** What refused or answered the request before a backend did. */
  readonly decision: TraceDecision | undefined;
  readonly verdict: TraceVerdict | undefined;
  readonly state: State | undefined;
  /** Events that were lost to a slow reader or a limit. */
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

/** Adds an event to the trace. Input that is not an event is counted as lost. */
export function addEvent(trace: TraceModel, json: unknown): TraceModel {
  const event = readEvent(json);
  if (event === undefined) return { ...trace, dropped: trace.dropped + 1 };
  const { message } = event;
  const state = isRecord(message['requestState']) ? message['requestState'] : undefined;
  const isWhole = message.type !== 'cel';
  const isOmitted = isOmittedField(trace, event);
  const step: TraceStep = {
    number: trace.steps.length + 1,
    label: labelOf(message),
    summary: summaryOf(message),
    severity: isOmitted ? 'info' : event.severity,
    isSkip: isOmitted || (isRecord(message['result']) && message['result']['type'] === 'skip'),
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
    ...entryIn(CHANGES, message.type)?.(trace, event),
    steps: [...trace.steps, step],
    // The state of a CEL event contains only what the expression read.
    state: state !== undefined && isWhole ? state : trace.state,
  };
}

/**
 * Whether an expression has no value for a field of the access log, which then omits the field: only those are evaluated
 * after the end of the request. That a request has no such value is not a problem.
 */
const isOmittedField = ({ verdict }: TraceModel, { message, severity }: ReadEvent): boolean =>
  verdict !== undefined && message.type === 'cel' && severity === 'warn';

type Change = (trace: TraceModel, event: ReadEvent) => Partial<TraceModel>;

const CHANGES: Readonly<Record<string, Change>> = {
  routeSelection: selectRoute,
  policySelection: selectPolicies,
  policy: (trace, { message, severity }) =>
    applyPolicyResult(trace, message, policyOutcome(message, severity)),
  authorizationResult: (trace, { message }) => {
    const isDenied = message['result'] === 'deny';
    const { place, reason } = decidingRule(message);
    const text = textIn(message['reason']) || reason;
    return applyPolicyResult(trace, message, {
      outcome: isDenied ? 'denied' : 'applied',
      reason: text,
      place,
    });
  },
  cel: (trace, event) => {
    const { result } = event.message;
    const isError = isRecord(result) && typeof result['error'] === 'string' && !isOmittedField(trace, event);
    return { hasCelError: trace.hasCelError || isError };
  },
  backendCallStart: (trace, { message, scope }) =>
    isPolicyCall(scope)
      ? {}
      : {
          backend: {
            target: textIn(message['target']),
            status: undefined,
            error: undefined,
            took: trace.backend?.took,
          },
        },
  backendCallResult: (trace, { message, scope, start, end }) =>
    isPolicyCall(scope)
      ? {}
      : {
          backend: {
            target: textIn(message['target']) || (trace.backend?.target ?? ''),
            status: numberOf(message['status']),
            error: textIn(message['error']) || undefined,
            took: start === undefined ? undefined : end - start,
          },
        },
  requestFinished: (trace, { message }) => ({
    verdict: {
      status: numberOf(message['status']),
      error: textIn(message['error']) || undefined,
      detail: textIn(message['detail']) || undefined,
    },
    decision: trace.decision,
  }),
  message: (trace, { message }) => ({ dropped: trace.dropped + (numberOf(message['dropped']) ?? 0) }),
};

/** Calls on behalf of a policy rather than the client. */
const POLICY_SCOPES = new Set(['ext_authz', 'ext_proc', 'guardrail', 'rate_limit', 'oidc', 'mirror']);
const isPolicyCall = (scope: readonly string[]): boolean => scope.some((part) => POLICY_SCOPES.has(part));

function selectRoute({ decision }: TraceModel, { message }: ReadEvent): Partial<TraceModel> {
  const selected = message['selectedRoute'];
  const skipped = recordsOf(message['skippedRoutes']).map((route) => ({
    route: textIn(route['route']),
    reason: textIn(route['reason']),
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
  const phase = textIn(message['phase']);
  const places = isRecord(message['places']) ? message['places'] : {};
  const known = new Set(trace.policies.map(({ name }) => sameName(name)));
  const added = effectivePolicies(message['effectivePolicy'])
    .filter((name) => !known.has(sameName(name)))
    .map((name): TracePolicy => {
      const place = entryIn(places, name);
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

/** Upstream uses the name `jwt` for the authentication of an MCP route. */
const sameName = (name: string): string =>
  name === 'mcpAuthentication' || name === 'jwtAuth' ? 'jwt' : name;

interface PolicyResult {
  readonly outcome: PolicyOutcome;
  readonly reason: string;
  readonly place?: TracePlace | undefined;
}

function policyOutcome(message: AnyMessage, severity: TraceSeverity): PolicyResult {
  const result = isRecord(message['result']) ? message['result'] : {};
  if (result['type'] === 'skip') return { outcome: 'skipped', reason: textIn(result['reason']) };
  const reason = textIn(result['details']);
  const action = message['action'];
  if (action === 'deny' || (action === undefined && severity === 'error'))
    return { outcome: 'denied', reason };
  return { outcome: entryIn(OUTCOMES, textIn(action)) ?? 'applied', reason };
}

/** Outcomes of actions that decide the request, except refusals. */
const OUTCOMES: Readonly<Record<string, PolicyOutcome>> = { respond: 'answered', end: 'ended' };

/** Whether the outcome ends the processing of the request. */
export const decides = (outcome: PolicyOutcome): boolean =>
  outcome === 'denied' || outcome === 'ended' || outcome === 'answered';

function applyPolicyResult(
  trace: TraceModel,
  message: AnyMessage,
  result: PolicyResult,
): Partial<TraceModel> {
  const name = policyName(message);
  const index = trace.policies.findIndex((policy) => sameName(policy.name) === sameName(name));
  const before = trace.policies[index];
  // A refusal is kept, whatever the policy reports later.
  const outcome = before?.outcome === 'denied' ? 'denied' : result.outcome;
  const policy: TracePolicy = {
    name,
    phase: before?.phase ?? '',
    outcome,
    reason: outcome === result.outcome ? result.reason : (before?.reason ?? ''),
    place: result.place ?? placeOf(message) ?? before?.place,
  };
  const policies = index === -1 ? [...trace.policies, policy] : trace.policies.with(index, policy);
  return decides(result.outcome) && trace.decision === undefined && !isRecord(message['item'])
    ? { policies, decision: { by: name, reason: policy.reason, place: policy.place } }
    : { policies };
}

function decidingRule(message: AnyMessage): { place: TracePlace | undefined; reason: string } {
  const rules = recordsOf(message['rules']);
  const index = rules.findIndex((rule) => rule['decided'] === true);
  const rule = rules[index];
  if (rule === undefined) return { place: undefined, reason: '' };
  return { place: placeOf(rule), reason: `rules[${index}] ${textIn(rule['name'])}` };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}
