import type { Path } from '../../core/diagnostic.ts';
import { knownBackends } from '../../server/config/plan/backend-kinds.ts';
import { routesOf } from '../../server/config/plan/plan.ts';
import type { Probe } from '../../server/kernel/probe.ts';
import type { CheckContext } from './check.ts';

/** All that the backends of a configuration need, with the paths of their settings. */
export function probesOf({ gateways }: Pick<CheckContext, 'gateways'>): { probe: Probe; path: Path }[] {
  return gateways
    .flatMap(routesOf)
    .flatMap(({ backends }) => knownBackends(backends))
    .flatMap(({ kind, settings, path }) => kind.probes(settings).map((probe) => ({ probe, path })));
}
