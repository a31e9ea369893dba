import type { Readable } from 'node:stream';
import { LIMITS } from '../../../core/limits.ts';
import type { Redactor } from '../../../core/redact.ts';
import type { RouteSelectionMessage, TracePlace } from '../../../core/trace/event.ts';
import type { SecretNames } from '../../kernel/compile-context.ts';
import type { BackendRequest, RequestObserver } from '../../kernel/observer.ts';
import { runResponse } from '../../kernel/request/error-response.ts';
import type { Policy, Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { Listener, Route, WeightedBackend } from '../../kernel/routing/route.ts';
import { explainSkipped } from '../../kernel/routing/router.ts';
import { tokenFacts } from '../../llm/facts.ts';
import { type CostOutcome, llmCall } from '../../llm/llm-call.ts';
import type { Usage } from '../../llm/usage.ts';
import { tapUpload } from './body-tap.ts';
import { Tracer } from './tracer.ts';

/** The part of `frontendPolicies` that traces show. */
interface FrontendConfig {
  readonly http: object;
  readonly accessLog: {
    readonly filter?: unknown;
    readonly remove: readonly unknown[];
    readonly add: object;
  };
}

/** Starts the trace of a request: emits the request and the policies that apply before routing. */
export function traceBegin(
  tracer: Tracer,
  frontendPolicies: FrontendConfig,
  {
    secretNames,
    redactor,
    tracing,
  }: { readonly secretNames: SecretNames; redactor(): Redactor; readonly tracing: object | undefined },
): void {
  tracer.begin({ names: secretNames, redactor: redactor() });
  const { accessLog, http } = frontendPolicies;
  const isChanged =
    accessLog.filter !== undefined || accessLog.remove.length > 0 || Object.keys(accessLog.add).length > 0;
  traceListener(tracer, {
    effective: {
      http: { maxBufferSize: LIMITS.requestBodyBytes, ...http },
      ...(isChanged ? { access_log: accessLog } : {}),
    },
    exportsSpans: tracing !== undefined,
  });
}

/** Ends the trace of a request after its access-log line: emits the cost of an LLM call first. */
export function traceEnd(tracer: Tracer, ctx: RequestContext): void {
  const llm = llmCall.get(ctx);
  if (llm?.cost !== undefined) {
    const { provider, responseModel, providerModel, requestModel, usage, cost } = llm;
    const model = responseModel ?? providerModel ?? requestModel;
    tracer.emit(
      {
        type: 'policyEvent',
        kind: 'llm_cost',
        details: { provider, model, ...costDetails(cost, usage) },
      },
      { severity: cost.status === 'Exact' ? 'info' : 'warn' },
    );
  }
  tracer.end();
}

function costDetails({ status, reason, total, parts, rates }: CostOutcome, usage: Usage | undefined): object {
  return {
    status: status.charAt(0).toLowerCase() + status.slice(1),
    ...(reason === undefined ? {} : { reason }),
    ...(usage === undefined ? {} : { usage: tokenCounts(usage) }),
    ...(rates === undefined ? {} : { rates }),
    ...(parts === undefined ? {} : { cost: { total, ...parts } }),
  };
}

/** Known token counts under their names in trace events. */
function tokenCounts(usage: Usage): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { count, traced } of tokenFacts) {
    const value = usage[count];
    if (value !== undefined) counts[traced] = value;
  }
  return counts;
}

/** Converts the pipeline's notifications about a request into trace events. */
export class TraceObserver extends Tracer implements RequestObserver {
  listenerSelected({ policies }: Listener): void {
    this.knowPolicies(policies);
    emitPolicies(this, policies, 'gateway');
  }

  listenerPassed(): void {
    this.requestSnapshot('gateway policies');
  }

  routed(routes: readonly Route[], selected: Route | undefined): void {
    if (selected !== undefined && selected.delegates === undefined) this.knowRoute(selected);
    traceRoute(this, this.context, routes, selected);
  }

  policiesPassed(): void {
    this.requestSnapshot('route policies');
  }

  backendSelected(route: Route, { policies, ownPolicies }: WeightedBackend): void {
    this.knowPolicies(policies);
    emitPolicies(this, [...backendPoliciesOf(route), ...policies, ...ownPolicies], 'backend');
  }

  responding(ctx: RequestContext, reply: Reply, entered: readonly Policy[]): Reply {
    return traceResponse(this, ctx, reply, entered);
  }

  sending<B extends null | string | Uint8Array | Readable>({
    headers,
    path,
    authority,
    body,
  }: BackendRequest<B>): B | Readable {
    this.requestSnapshot('final request', { headers, path, authority });
    if (this.isBrief) return body;
    return tapUpload(body, (tap, isStream) => this.uploaded(tap, isStream));
  }
}

/** Listener policies, which apply before routing. */
export interface FrontendPolicies {
  readonly effective: Readonly<Record<string, unknown>>;
  /** If spans are exported, `Tracing` emits the sampling decision itself. */
  readonly exportsSpans: boolean;
}

/** Emits the policies that apply before routing. */
function traceListener(tracer: Tracer, { effective, exportsSpans }: FrontendPolicies): void {
  tracer.emit({ type: 'policySelection', phase: 'listenerFrontend', effectivePolicy: effective });
  if (!exportsSpans) tracer.emit({ type: 'traceSampling', decision: 'not sampled (random)' });
}

/** Emits the selected route, why other routes were skipped, and the policies of the route. */
function traceRoute(
  tracer: Tracer,
  ctx: RequestContext,
  routes: readonly Route[],
  selected: Route | undefined,
): void {
  // Explaining skipped routes is expensive, so brief traces do it only if no route matched.
  const explainsSkipped = selected === undefined || !tracer.isBrief;
  const skipped = explainsSkipped ? routes.filter((route) => route !== selected) : [];
  const message: RouteSelectionMessage = {
    type: 'routeSelection',
    selectedRoute: selected?.fullKey ?? null,
    evaluatedRoutes: routes.map(({ fullKey }) => fullKey).toSorted(),
    ...(skipped.length === 0
      ? {}
      : {
          skippedRoutes: skipped.map((route) => ({
            route: route.fullKey,
            reason: explainSkipped(route, ctx),
            ...route.place,
          })),
        }),
    ...selected?.place,
  };
  tracer.emit(message);
  if (selected === undefined) return;
  tracer.knowPolicies(selected.policies);
  const own = selected.policies.filter(({ trace }) => trace?.isBackendPolicy !== true);
  emitPolicies(tracer, own, 'route');
}

/** Policies of a route that apply to the call of its backend; those of the backend itself take precedence. */
const backendPoliciesOf = ({ policies }: Route): Policy[] =>
  policies.filter(({ trace }) => trace?.isBackendPolicy === true);

/** The part of a policy that the list of those in effect shows. */
type ListedPolicy = Pick<Policy, 'key' | 'trace' | 'origin'>;

function emitPolicies(
  tracer: Tracer,
  own: readonly ListedPolicy[],
  phase: 'gateway' | 'route' | 'backend',
): void {
  const effectivePolicy = Object.fromEntries(
    own.map((policy) => [listedName(policy), policy.origin?.shown ?? {}]),
  );
  const places = placesOf(own);
  tracer.emit({
    type: 'policySelection',
    phase,
    effectivePolicy,
    ...(own.length === 0 ? {} : { places }),
  });
}

const listedName = ({ key, trace }: ListedPolicy): string => trace?.listedAs ?? key;

function placesOf(policies: readonly ListedPolicy[]): Record<string, TracePlace> {
  return Object.fromEntries(
    policies.flatMap((policy) =>
      policy.origin === undefined ? [] : [[listedName(policy), policy.origin.place]],
    ),
  );
}

/**
 * Runs the response phase of the entered policies and emits a snapshot after each one that changed the response head.
 */
function traceResponse(tracer: Tracer, ctx: RequestContext, first: Reply, entered: readonly Policy[]): Reply {
  let reply = first;
  if (tracer.isBrief) {
    for (const policy of entered) reply = runResponse(policy, ctx, reply);
    return reply;
  }
  tracer.responseSnapshot('backend response ready', reply);
  for (const policy of entered) {
    if (policy.response === undefined) continue;
    const before = headText(reply);
    reply = runResponse(policy, ctx, reply);
    if (headText(reply) === before) continue;
    const stage = policy.trace?.responseStage ?? 'response headers';
    tracer.responseSnapshot(stage, reply);
  }
  tracer.responseSnapshot('final response', reply);
  return reply;
}

const headText = ({ status, headers }: Reply): string => `${status}\n${headers.raw.join('\n')}`;
