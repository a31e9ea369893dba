import { isDeepStrictEqual } from 'node:util';
import { LIMITS } from '../../../core/limits.ts';
import type { PolicyPlan } from '../../config/plan/plan.ts';
import type { Config } from '../../config/schema.ts';
import { portKey } from '../port.ts';
import type { Runtime } from '../runtime.ts';

/** The changes of a reload as fields of a log line; empty if nothing has changed. */
export function changesBetween(before: Runtime, after: Runtime): Record<string, string> {
  const [oldRoutes, newRoutes] = [routesOf(before), routesOf(after)];
  const [oldPorts, newPorts] = [portsOf(before), portsOf(after)];
  const { frontendPolicies, config } = before.config;
  const sections = [
    ...(isDeepStrictEqual(frontendPolicies, after.config.frontendPolicies) ? [] : ['frontendPolicies']),
    ...(before.catalog === after.catalog &&
    isDeepStrictEqual(config.modelCatalog, after.config.config.modelCatalog)
      ? []
      : ['config.modelCatalog']),
    ...(isDeepStrictEqual(config.adminRoles, after.config.config.adminRoles) ? [] : ['config.adminRoles']),
  ];
  const all = {
    'routes.added': missing(newRoutes, oldRoutes),
    'routes.removed': missing(oldRoutes, newRoutes),
    'routes.changed': [...newRoutes.keys()].filter(
      (key) => oldRoutes.has(key) && !isDeepStrictEqual(oldRoutes.get(key), newRoutes.get(key)),
    ),
    'ports.opened': missing(newPorts, oldPorts),
    'ports.closed': missing(oldPorts, newPorts),
    sections,
  };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([, names]) => names.length > 0)
      .map(([key, names]) => [key, listed(names)]),
  );
}

/**
 * Paths of changed process settings, such as `config.logging.level`, which take effect only after a restart.
 */
export function needRestart(active: Config, loaded: Config): string[] {
  const { modelCatalog: _old, adminRoles: _before, ...current } = active.config;
  const { modelCatalog: _new, adminRoles: _after, ...changed } = loaded.config;
  return differences(current, changed, 'config');
}

function differences(a: unknown, b: unknown, path: string): string[] {
  if (isDeepStrictEqual(a, b)) return [];
  if (!isSection(a) || !isSection(b)) return [path];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].flatMap((key) => differences(a[key], b[key], `${path}.${key}`));
}

const isSection = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What each route is made of, wherever it is written. */
function routesOf({ gateways }: Runtime): Map<string, unknown> {
  const listeners = gateways.flatMap(({ plan }) => plan.listeners);
  return new Map(
    listeners.flatMap(({ policies: before, hostname, routes }) =>
      routes.map(({ fullKey, config, policies, backends }): [string, unknown] => [
        fullKey,
        [
          [hostname, config, settingsOf(before), settingsOf(policies)],
          backends.map((backend) => [backend.config, settingsOf(backend.policies)]),
        ],
      ]),
    ),
  );
}

const settingsOf = (policies: readonly PolicyPlan[]): unknown[] =>
  policies.map(({ key, config }) => [key, config]);

function portsOf({ gateways }: Runtime): Map<string, unknown> {
  return new Map(gateways.map(({ plan }) => [portKey(plan), plan]));
}

function missing(from: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>): string[] {
  return [...from.keys()].filter((key) => !other.has(key));
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, LIMITS.reloadNames).join(', ');
  return names.length > LIMITS.reloadNames ? `${shown} and ${names.length - LIMITS.reloadNames} more` : shown;
}
