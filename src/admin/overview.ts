import { hostname } from 'node:os';
import type { CertificateView, GatewayView, Overview, RouteView, ToolRuleView } from '../core/overview.ts';
import { realPath } from '../core/real-path.ts';
import { VERSION } from '../core/version.ts';
import { knownBackends } from '../server/config/plan/backend-kinds.ts';
import { originOf } from '../server/config/plan/origin.ts';
import { answeringRoutes, type GatewayPlan, type RoutePlan, settingsOf } from '../server/config/plan/plan.ts';
import type { RouteConfig } from '../server/config/schema.ts';
import { effectOf } from '../server/expressions/rules.ts';
import type { CertificateState } from '../server/kernel/inspection.ts';
import { mcpAuthorization } from '../server/mcp/authorization-policy.ts';
import { activityOf } from '../server/workers/activity.ts';
import { databaseOutages, mergeOutages } from '../server/workers/outages.ts';
import type { Activity } from '../server/workers/process-view.ts';
import type { EndpointCall } from './call.ts';
import { diagnosticsJson } from './config-problems.ts';
import type { Admin } from './sources.ts';
import { problemsWithoutContents } from './without-contents.ts';

export async function overviewOf(admin: Admin): Promise<Overview> {
  const { gateway, levels, startedAt } = admin;
  const { openRequests, backends, outages, certificates } = await activityOf(gateway);
  const { source, diagnostics, runtime } = admin.served();
  const redactor = admin.redactor();
  const overview: Overview = {
    version: VERSION,
    machine: hostname(),
    pid: process.pid,
    node: process.version,
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds: Math.floor((Date.now() - startedAt) / 1000),
    config: source.file,
    ...(admin.configFile === undefined ? {} : { configPath: realPath(admin.configFile) }),
    openRequests,
    isRecording: runtime.database !== undefined,
    logLevel: levels.current,
    problems: diagnosticsJson(diagnostics, redactor),
    outages: mergeOutages([...databaseOutages(runtime), ...outages]).map((outage) => ({
      ...outage,
      since: new Date(outage.since).toISOString(),
    })),
    ...reloadView(admin),
    signalPorts: admin.signalPorts ?? [],
    gateways: gateway.listeners.map(({ gateway: each, port }) =>
      gatewayView(each.plan, port, admin, backends),
    ),
    certificates: certificatesOf(certificates),
  };
  return redactor.value(overview);
}

/** Each file once: listeners and workers may share one. */
function certificatesOf(states: readonly CertificateState[]): CertificateView[] {
  return [...Map.groupBy(states, ({ file }) => file)]
    .map(([file, own]) => ({
      file,
      expires: new Date(Math.min(...own.map(({ expires }) => expires))).toISOString(),
      isCurrent: own.every(({ isCurrent }) => isCurrent),
    }))
    .sort((a, b) => (a.expires < b.expires ? -1 : 1));
}

/** The overview as this caller may see it. */
export function overviewFor(call: Pick<EndpointCall, 'may'>, overview: Overview): Overview {
  if (call.may('operator')) return overview;
  const { problems, reload } = overview;
  const failure = reload?.failure;
  return {
    ...overview,
    problems: problemsWithoutContents(problems),
    ...(reload !== undefined && {
      reload: {
        ...reload,
        ...(failure !== undefined && { failure: { at: failure.at, ...problemsWithoutContents(failure) } }),
      },
    }),
  };
}

function reloadView(admin: Admin): Pick<Overview, 'reload'> {
  const state = admin.reloadState?.();
  if (state === undefined) return {};
  const { isWatching, isSynchronized, reloads, servingSince, failure } = state;
  return {
    reload: {
      watching: isWatching,
      synchronized: isSynchronized,
      count: reloads,
      servingSince: new Date(servingSince).toISOString(),
      ...(failure === undefined
        ? {}
        : {
            failure: {
              at: new Date(failure.at).toISOString(),
              ...diagnosticsJson(failure.diagnostics, admin.redactor()),
            },
          }),
    },
  };
}

function gatewayView(
  plan: GatewayPlan,
  port: number,
  admin: Admin,
  states: Activity['backends'],
): GatewayView {
  const { address, listeners } = plan;
  return {
    key: listeners.length === 1 ? (listeners[0]?.key ?? plan.name) : `gateway/${plan.name}`,
    name: plan.name,
    port,
    url: originOf({ address, protocol: listeners[0]?.protocol, port }),
    routes: listeners.flatMap(({ name: listener, protocol, hostname, routes }) =>
      answeringRoutes(routes).map((route) => ({
        ...routeView(plan, route, admin, states),
        listener,
        origin: originOf({ address, protocol, port, hostnames: [...route.config.hostnames, hostname] }),
      })),
    ),
  };
}

function routeView(
  gateway: GatewayPlan,
  plan: RoutePlan,
  admin: Admin,
  states: Activity['backends'],
): Omit<RouteView, 'origin' | 'listener'> {
  const { hostnames, matches } = plan.config;
  const shown = (matches ?? [{ path: { pathPrefix: '/' }, headers: [], query: [] }]).map(matchText);
  const { source, runtime } = admin.served();
  const order = runtime.gateways
    .find(({ plan: { name } }) => name === gateway.name)
    ?.listeners.flatMap(({ routes }) => routes)
    .find((route) => route.fullKey === plan.fullKey)
    ?.policies.map((policy) => policy.key);
  return {
    key: plan.fullKey,
    name: plan.name,
    title: titleOf(plan, shown),
    hostnames,
    matches: shown,
    policies: order ?? plan.policies.map((policy) => policy.key),
    line: source.keyRange(plan.path).start.line,
    toolRules: toolRulesOf(plan),
    backends: plan.backends.flatMap((backend) =>
      knownBackends([backend]).map(({ kind, settings, path }) => ({
        kind: kind.key,
        api: kind.api,
        weight: backend.weight,
        ...kind.view(settings, states[path.join('.')] ?? {}),
      })),
    ),
  };
}

/** Rules of a route and of its backends decide together. */
function toolRulesOf({ policies, backends }: RoutePlan): ToolRuleView[] {
  const all = [...policies, ...backends.flatMap((backend) => backend.policies)];
  return all
    .flatMap((policy) => settingsOf(policy, mcpAuthorization)?.rules ?? [])
    .map((rule) => {
      const [effect, expression] = effectOf(rule, 'allow');
      return { effect, expression };
    });
}

function titleOf({ isShortForm, path, config: { name, namespace } }: RoutePlan, matches: string[]): string {
  if (isShortForm) return String(path[0]);
  if (name === undefined) return matches.join(', ');
  return namespace === 'default' ? name : `${namespace}/${name}`;
}

function matchText({ path, method, headers, query }: NonNullable<RouteConfig['matches']>[number]): string {
  const where = path.exact ?? (path.pathPrefix === undefined ? `~ ${path.regex}` : `${path.pathPrefix}*`);
  const conditions = headers.length + query.length;
  return `${method === undefined ? '' : `${method} `}${where}${conditions === 0 ? '' : ` and ${conditions} more`}`;
}
