import type { Outage } from '../kernel/inspection.ts';
import { sharedStore } from '../kernel/shared-store.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Services of the gateway itself that do not answer this process. */
export function outagesOf({ database, settings }: Pick<Runtime, 'database' | 'settings'>): Outage[] {
  return [database?.outage, sharedStore.get(settings)?.outage].filter((outage) => outage !== undefined);
}

/** One of each service, as the process says that has waited longest. */
export function mergeOutages(all: readonly Outage[]): Outage[] {
  return [...Map.groupBy(all, ({ at }) => at).values()].flatMap((own) =>
    own.toSorted((a, b) => a.since - b.since).slice(0, 1),
  );
}
