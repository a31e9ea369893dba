import { setImmediate } from 'node:timers/promises';
import { AppError, detailOf } from '../../../core/errors.ts';
import { elementsOf, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { JudgedCaller, ToolCallers } from '../../../core/tool-callers.ts';
import { knownBackends } from '../../config/plan/backend-kinds.ts';
import { answeringRoutes, type RoutePlan } from '../../config/plan/plan.ts';
import type { KnownCaller } from '../../kernel/request/policy-description.ts';
import type { Policy } from '../../kernel/request/request-context.ts';
import type { Route } from '../../kernel/routing/route.ts';
import type { Runtime } from '../runtime.ts';
import { type AssumedCaller, judge, type ToolPlace } from './judged-caller.ts';

/** A tool behind a route, and the claims of a token to judge, if any. */
export interface AskedTool {
  /** The name of the gateway. */
  readonly gateway: string;
  /** The name of the route in configuration dumps. */
  readonly route: string;
  readonly target: string;
  /** Its name at the target. */
  readonly tool: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/**
 * Who may list and call a tool: a caller without credentials, one with the given claims, and each known key. Judges at most
 * `LIMITS.judgedCallers` keys, for `LIMITS.judgingTime`. Undefined if there is no such route or target.
 */
export async function toolCallers(
  runtime: Pick<Runtime, 'gateways'>,
  asked: AskedTool,
): Promise<ToolCallers | undefined> {
  const { target, tool, claims } = asked;
  const place = placeOf(runtime, asked);
  if (place === undefined) return undefined;
  const judged = (kind: JudgedCaller['kind'], name: string, caller: AssumedCaller): JudgedCaller => ({
    kind,
    name,
    calls: judge(place, caller, { action: 'call', target, tool }),
    lists: judge(place, caller, { action: 'list', target, tool }),
  });
  const callers = [judged('anonymous', '', {})];
  if (claims !== undefined)
    callers.push(judged('claims', '', { credential: { variable: 'jwt', value: claims } }));
  const policies = [...place.before, ...place.after];
  const { keys, problem } = await keysOf(policies);
  const until = performance.now() + LIMITS.judgingTime;
  let judgedKeys = 0;
  for (const { variable, name, value } of keys.slice(0, LIMITS.judgedCallers)) {
    if (performance.now() > until) break;
    callers.push(judged('key', name, { credential: { variable, value } }));
    judgedKeys += 1;
    // Requests are handled in between.
    await setImmediate();
  }
  return { callers, omitted: keys.length - judgedKeys, ...(problem !== undefined && { problem }) };
}

async function keysOf(
  policies: readonly Policy[],
): Promise<{ keys: readonly (KnownCaller & { variable: string })[]; problem?: string }> {
  try {
    const lists = await Promise.all(
      policies.map(async ({ identifies }) =>
        ((await identifies?.callers?.()) ?? []).map((caller) => ({
          ...caller,
          variable: identifies?.variable ?? '',
        })),
      ),
    );
    return { keys: lists.flat() };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { keys: [], problem: detailOf(error) };
  }
}

function placeOf(
  { gateways }: Pick<Runtime, 'gateways'>,
  { gateway, route: key, target }: AskedTool,
): ToolPlace | undefined {
  for (const { plan, listeners } of gateways.filter((each) => each.plan.name === gateway))
    for (const listener of listeners) {
      const route = routesBelow(listener.routes).find(({ fullKey }) => fullKey === key);
      const planned = plan.listeners
        .flatMap(({ routes }) => answeringRoutes(routes))
        .find(({ fullKey }) => fullKey === key);
      const backend = planned && backendOf(planned, target);
      if (route === undefined || backend === undefined) continue;
      const own = route.backends.find(({ name }) => name === backend.name)?.policies ?? [];
      return {
        listener: listener.name,
        route: route.name,
        before: listener.policies,
        after: [...route.policies, ...own],
        bundles: backend.hasBundles
          ? 'at the path of the route, callers have the tools of the first bundle whose `when` is true'
          : undefined,
      };
    }
  return undefined;
}

/** All of them, with those that they delegate to. */
export function routesBelow(routes: readonly Route[]): Route[] {
  return routes.flatMap((route) => [
    route,
    ...(route.delegates ?? []).flatMap((delegate) =>
      routesBelow(delegate.routes.filter((each) => each !== route)),
    ),
  ]);
}

/** The first backend of a route with that target. */
function backendOf(
  { backends }: RoutePlan,
  target: string,
): { readonly name: string; readonly hasBundles: boolean } | undefined {
  for (const backend of backends)
    for (const { settings } of knownBackends([backend])) {
      const { targets, bundles } = membersOf(settings);
      if (elementsOf(targets).some((each) => membersOf(each)['name'] === target))
        return {
          name: `/${backend.name}`,
          hasBundles: elementsOf(bundles).some((each) => membersOf(each)['when'] !== undefined),
        };
    }
  return undefined;
}
