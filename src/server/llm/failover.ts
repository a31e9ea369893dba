import { z } from 'zod';
import { EndpointStats } from './endpoint-stats.ts';
import type { Model } from './model.ts';

export const failoverSchema = z
  .strictObject({
    targets: z
      .array(
        z.strictObject({
          model: z.string().min(1).describe('Name of a model that an entry of `models` answers.'),
          priority: z
            .int()
            .min(0)
            .default(0)
            .describe('Targets of a higher number are for when all of the lower ones fail.'),
        }),
      )
      .min(1)
      .describe('Models to choose from.'),
  })
  .describe(
    'The models that work, by priority. One that fails is left alone for a while (`health.eviction` of the model); of several with the same priority the quicker of two is taken. Only a request that reached no provider goes to the next one at once.',
  );

/** A model to call, and what else is told how the call went. */
export interface FailoverTarget {
  readonly model: string;
  readonly stats: EndpointStats;
}

/** Chooses targets by priority and by how they do. */
export class Failover {
  /** By priority. */
  readonly #groups: readonly (readonly FailoverTarget[])[];

  /** `entryOf` finds the entry of `models` that answers a name. */
  constructor(
    targets: z.output<typeof failoverSchema>['targets'],
    entryOf: (model: string) => Model | undefined,
  ) {
    const groups = new Map<number, FailoverTarget[]>();
    for (const { model, priority } of targets) {
      const target = { model, stats: statsOf(entryOf(model), model) };
      groups.set(priority, [...(groups.get(priority) ?? []), target]);
    }
    this.#groups = [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
  }

  /** The best target besides those that were tried. When all are evicted, they are used all the same. */
  choose(tried: ReadonlySet<object>): FailoverTarget | undefined {
    const now = performance.now();
    let last: FailoverTarget | undefined;
    for (const group of this.#groups) {
      const untried = group.filter((target) => !tried.has(target));
      const usable = untried.filter(({ stats }) => !stats.isEvicted(now));
      if (usable.length > 0) return betterOfTwo(usable);
      last ??= betterOfTwo(untried);
    }
    return last;
  }

  /** Who is left alone at the moment, of the priorities up to that of `chosen`: `chosen` itself only when all are. */
  evicted(chosen: object): FailoverTarget[] {
    const now = performance.now();
    const last = this.#groups.findIndex((group) => group.some((target) => target === chosen));
    return this.#groups
      .slice(0, last + 1)
      .flat()
      .filter(({ stats }) => stats.isEvicted(now));
  }
}

/** An entry for several names says nothing of each of them: limits are often per model. */
function statsOf(entry: Model | undefined, model: string): EndpointStats {
  const stats = entry === undefined || entry.name !== model ? new EndpointStats() : entry.stats;
  stats.eviction = entry?.health.eviction ?? {};
  return stats;
}

/** The better of two by chance, not the best: the best of all would get every request until it is the worst. */
function betterOfTwo(targets: readonly FailoverTarget[]): FailoverTarget | undefined {
  const first = targets[Math.floor(Math.random() * targets.length)];
  const others = targets.filter((target) => target !== first);
  const second = others[Math.floor(Math.random() * others.length)];
  if (first === undefined || second === undefined) return first;
  return second.stats.cost < first.stats.cost ? second : first;
}
