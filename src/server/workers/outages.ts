import type { Outage } from '../kernel/inspection.ts';
import { sharedStore } from '../kernel/shared-store.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Services of the gateway itself that do not answer this process. */
export function outagesOf(runtime: Pick<Runtime, 'database' | 'settings'>): Outage[] {
  const store = sharedStore.get(runtime.settings)?.outage;
  return [...databaseOutages(runtime), ...(store === undefined ? [] : [store])];
}

/** What also the first process of several workers uses: the database, for budgets and pages. It never opens the shared store. */
export const databaseOutages = ({ database }: Pick<Runtime, 'database'>): Outage[] =>
  database?.outage === undefined ? [] : [database.outage];

/** One of each service, as the process says that has waited longest. */
export function mergeOutages(all: readonly Outage[]): Outage[] {
  return [...Map.groupBy(all, ({ at }) => at).values()].flatMap((own) =>
    own.toSorted((a, b) => a.since - b.since).slice(0, 1),
  );
}
