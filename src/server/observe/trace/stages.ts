import type { RouteSelectionMessage, TracePlace } from '../../../core/trace/event.ts';
import type { Policy, Reply, RequestContext, Route } from '../../kernel/request-context.ts';
import { explainSkipped } from '../../kernel/route-explain.ts';
import type { Tracer } from './tracer.ts';

/** Policies of the listener, which come before any route. */
export interface FrontendPolicies {
  readonly effective: Readonly<Record<string, unknown>>;
  /** Spans are exported: `Tracing` decides on each admitted request, and says so. */
  readonly exportsSpans: boolean;
}

/** What is in force before a route is known. */
export function traceListener(tracer: Tracer, { effective, exportsSpans }: FrontendPolicies): void {
  tracer.emit({ type: 'policySelection', phase: 'listenerFrontend', effectivePolicy: effective });
  if (!exportsSpans) tracer.emit({ type: 'traceSampling', decision: 'not sampled (random)' });
  tracer.emit({ type: 'policySelection', phase: 'gateway', effectivePolicy: {} });
  tracer.requestSnapshot('gateway policies');
}

/** Which route was taken, why the others were not, and what is in force on it. */
export function traceRoute(
  tracer: Tracer,
  ctx: RequestContext,
  routes: readonly Route[],
  selected: Route | undefined,
): void {
  // Why the others were not taken is much to find out for every request, and asked where none was.
  const isTold = selected === undefined || !tracer.isBrief;
  const skipped = isTold ? routes.filter((route) => route !== selected) : [];
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
  select(tracer, selected, 'route');
}

/** All policies let the request pass. */
export function tracePassed(tracer: Tracer, route: Route): void {
  tracer.requestSnapshot('route policies');
  select(tracer, route, 'backend');
}

function select(tracer: Tracer, { policies }: Route, phase: 'route' | 'backend'): void {
  const own = policies.filter(({ trace }) => (trace?.isBackendPolicy === true) === (phase === 'backend'));
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

const listedName = ({ key, trace }: Policy): string => trace?.listedAs ?? key;

function placesOf(policies: readonly Policy[]): Record<string, TracePlace> {
  return Object.fromEntries(
    policies.flatMap((policy) =>
      policy.origin === undefined ? [] : [[listedName(policy), policy.origin.place]],
    ),
  );
}

/** The response side of the policies, each that changed something with what it left. */
export function traceResponse(
  tracer: Tracer,
  ctx: RequestContext,
  reply: Reply,
  entered: readonly Policy[],
): void {
  if (tracer.isBrief) {
    for (const policy of entered) policy.response?.(ctx, reply);
    return;
  }
  tracer.responseSnapshot('backend response ready', reply);
  for (const policy of entered) {
    if (policy.response === undefined) continue;
    const before = headText(reply);
    policy.response(ctx, reply);
    if (headText(reply) === before) continue;
    const stage = policy.trace?.responseStage ?? 'response headers';
    tracer.responseSnapshot(stage, reply);
  }
  tracer.responseSnapshot('final response', reply);
}

const headText = ({ status, headers }: Reply): string => `${status}\n${headers.raw.join('\n')}`;
