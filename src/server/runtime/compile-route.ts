import { allSettings, appliesAlways } from '../config/conditional-schema.ts';
import { kindsOf } from '../config/plan/backend-kinds.ts';
import { type BackendPlan, type PolicyPlan, policyOf, type RoutePlan } from '../config/plan/plan.ts';
import { anyPolicyKinds } from '../features.ts';
import type { Expression } from '../kernel/expression.ts';
import type { PolicyBackend, PolicyKind, PolicyRoute } from '../kernel/policy.ts';
import type { ClientApi, Policy } from '../kernel/request/request-context.ts';
import { canonicalName } from '../kernel/request/request-target.ts';
import { compileMatches } from '../kernel/routing/match.ts';
import type { Delegate, RequestMatcher, Route } from '../kernel/routing/route.ts';
import { createRouter } from '../kernel/routing/router.ts';
import { compileBackend } from './compile-backend.ts';
import type { ContextOptions } from './compile-context.ts';
import { bodyUse, type CompileScope, compilePolicies, contextAt } from './compile-policies.ts';
import type { ComponentCache } from './component-cache.ts';

/**
 * Compiles one route. Its policies and backends become components, or are reused from the active configuration.
 *
 * @param before Policies of the listener, which have run before.
 */
export function compileRoute(
  plan: RoutePlan,
  before: readonly PolicyPlan[],
  options: ContextOptions,
  components: ComponentCache,
  logReadsBody: boolean,
): Route {
  const { key, fullKey, name, config, path } = plan;
  const hostnames = config.hostnames.map(canonicalName);
  const literal = new Set(hostnames.filter((hostname) => !hostname.startsWith('*')));
  const expressions: Expression[] = [];
  const scope: CompileScope = { options, components, hostnames: literal, expressions };
  const context = contextAt(path, scope);
  const policies = compilePolicies(plan.policies, scope);
  for (const policy of policies)
    for (const hostname of policy.hostnames ?? []) literal.add(canonicalName(hostname));
  const ofBackends = plan.backends.map((backend) => compilePolicies(backend.policies, scope));
  // Before backends are compiled: a webhook header that reads a missing token is omitted, which may be intended.
  checkPolicies(plan, before, expressions, scope);
  const backends = plan.backends.flatMap((backend, index) =>
    compileBackend(
      backend,
      ofBackends[index] ?? [],
      backend.reference === undefined ? scope : { ...scope, hostnames: options.hostnamesOf(backend) },
    ),
  );
  if (config.backends.length === 0 && !isAnsweredByPolicy(plan)) {
    context.report({
      code: 'AGW0103',
      severity: 'warning',
      message: `route \`${name}\` has no backend`,
      label: 'every request would get 500 `no valid backends`',
      help: 'add `backends:` with one entry, or the policy `directResponse`',
    });
  }
  const route: Route = {
    key,
    fullKey,
    name,
    place: context.place(),
    hostnames,
    matches: [...compileMatches(config.matches, context), ...ownPaths(policies)],
    policies,
    aroundPolicies: policies.filter(({ around }) => around !== undefined),
    api: apiOf(plan.backends),
    ...(plan.backends.flatMap(kindsOf).some(({ kind }) => kind.isForOperators === true) && {
      isForOperators: true,
    }),
    backends,
    ...bodyUse(expressions, logReadsBody, options.settings),
  };
  if (plan.groups.length === 0) return route;
  const delegates = plan.groups.map(({ weight, routes }): Delegate => {
    const compiled = routes.map((child) => compileRoute(child, before, options, components, logReadsBody));
    return { weight, routes: compiled, find: createRouter(compiled) };
  });
  const ownWeight = backends.reduce((sum, { weight }) => sum + weight, 0);
  const own: Delegate[] = ownWeight === 0 ? [] : [{ weight: ownWeight, routes: [route], find: () => route }];
  return { ...route, delegates: [...own, ...delegates.filter(({ weight }) => weight > 0)] };
}

/** Matches for the paths that policies answer themselves. */
function ownPaths(policies: readonly Policy[]): RequestMatcher[] {
  const matcher =
    (kind: 'exact' | 'prefix') =>
    (value: string): RequestMatcher => ({
      path: { kind, value },
      headers: [],
      query: [],
    });
  return policies.flatMap(({ paths = [], pathsBelow = [] }) => [
    ...paths.map(matcher('exact')),
    ...pathsBelow.map(matcher('prefix')),
  ]);
}

/** The API of the first backend that has one: all clients of a route use the same API. */
function apiOf(backends: readonly BackendPlan[]): ClientApi | undefined {
  return backends.flatMap(kindsOf).find(({ kind }) => kind.clientApi !== undefined)?.kind.clientApi;
}

const policyBackends = (backends: readonly BackendPlan[]): PolicyBackend[] =>
  backends.flatMap(kindsOf).map(({ kind, settings }) => ({
    api: kind.api,
    countsTokens: kind.countsTokens,
    connectsTo: kind.connectsTo(settings),
  }));

function isAnsweredByPolicy({ policies }: RoutePlan): boolean {
  return anyPolicyKinds.some(({ key, answersAll }) => {
    const policy = answersAll === true ? policyOf(policies, key) : undefined;
    return policy !== undefined && appliesAlways(policy.config);
  });
}

/** Warns about policies without effect, and about variables that expressions read but no policy sets. */
function checkPolicies(
  { name, path, config: { matches }, policies, backends }: RoutePlan,
  before: readonly PolicyPlan[],
  expressions: readonly Expression[],
  scope: CompileScope,
): void {
  const configured = [...before, ...policies, ...backends.flatMap((backend) => backend.policies)];
  for (const { key, sets } of anyPolicyKinds)
    if (
      sets !== undefined &&
      [key, ...(sets.others ?? [])].every((each) => policyOf(configured, each) === undefined) &&
      expressions.some((each) => sets.isReadBy(each))
    )
      contextAt(path, scope).report(sets.missingFrom(name));
  const route = { name, backends: policyBackends(backends), matches };
  for (const kind of anyPolicyKinds) {
    checkEach(kind, policies, route, scope);
    for (const backend of backends)
      checkEach(kind, backend.policies, { name, backends: policyBackends([backend]), matches }, scope);
  }
}

function checkEach(
  kind: PolicyKind,
  policies: readonly PolicyPlan[],
  route: PolicyRoute,
  scope: CompileScope,
): void {
  if (kind.checkRoute === undefined) return;
  for (const { key, config, path } of policies)
    if (key === kind.key)
      for (const settings of allSettings(kind, config))
        kind.checkRoute(settings, route, contextAt(path, scope));
}
