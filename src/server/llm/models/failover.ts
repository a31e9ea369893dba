import { z } from 'zod';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { EndpointStats } from './health.ts';
import type { Model } from './model.ts';

export const failoverSchema = z.lazy(() =>
  z
    .strictObject({
      targets: z
        .array(
          z.strictObject({
            model: z
              .string()
              .min(1)
              .describe(
                'Model name that matches an entry of `models`. A `*` in it stands for the text that the one in `name` of the virtual model matched.',
              ),
            priority: z
              .int()
              .min(0)
              .default(0)
              .describe('Targets with a higher number are used only if all targets with lower numbers fail.'),
            weight: z
              .int()
              .min(0)
              .optional()
              .describe(
                'Relative frequency among the healthy targets of the same priority, which are then chosen at random by weight instead of by latency. Targets without it have none: they are used if no target with a weight is healthy.',
              ),
          }),
        )
        .min(1)
        .describe('Models to choose from.'),
    })
    .describe(
      'Uses the healthy models with the best priority. A failing model is evicted for a while (`health.eviction` of the model). Among models of the same priority, the faster of two random ones is used. A request that fails is sent to the next model, as long as the client has received nothing.',
    ),
);

/** A model to call, and the statistics to update with the outcome. */
export interface FailoverTarget {
  readonly model: string;
  readonly stats: EndpointStats;
  readonly weight?: number | undefined;
}

/** Selects targets by priority, health and latency. */
export class Failover {
  /** Targets by ascending priority number. */
  readonly #groups: readonly (readonly FailoverTarget[])[];

  /** `entryOf` returns the entry of `models` that matches a name; `context` is that of the virtual model `name`. */
  constructor(
    targets: z.output<typeof failoverSchema>['targets'],
    entryOf: (model: string) => Model | undefined,
    name: string,
    context: CompileContext,
  ) {
    const groups = new Map<number, FailoverTarget[]>();
    for (const { model, priority, weight } of targets) {
      const entry = entryOf(model);
      const target = { model, stats: statsOf(entry, model), weight };
      target.stats.evictBy(entry?.health.eviction ?? {}, `failover ${name} ${model}`, context);
      groups.set(priority, [...(groups.get(priority) ?? []), target]);
    }
    this.#groups = [...groups].sort(([a], [b]) => a - b).map(([, group]) => group);
  }

  /** Number of targets. */
  get size(): number {
    return this.#groups.reduce((sum, { length }) => sum + length, 0);
  }

  /** Releases the shared eviction state of all targets. */
  close(): void {
    for (const { stats } of this.#groups.flat()) stats.close();
  }

  /** The best untried target; an evicted one only if all are evicted. Undefined if every target was tried. */
  choose(tried: ReadonlySet<object>): FailoverTarget | undefined {
    const now = performance.now();
    let last: FailoverTarget | undefined;
    for (const group of this.#groups) {
      const untried = group.filter((target) => !tried.has(target));
      const usable = untried.filter(({ stats }) => !stats.isEvicted(now));
      if (usable.length > 0) return chosenOf(usable);
      last ??= chosenOf(untried);
    }
    return last;
  }

  /** Currently evicted targets with priorities up to that of `chosen`. Includes `chosen` only if all are evicted. */
  evicted(chosen: object): FailoverTarget[] {
    const now = performance.now();
    const last = this.#groups.findIndex((group) => group.some((target) => target === chosen));
    return this.#groups
      .slice(0, last + 1)
      .flat()
      .filter(({ stats }) => stats.isEvicted(now));
  }
}

/** An entry with a pattern gets separate statistics per model name, because provider limits are often per model. */
function statsOf(entry: Model | undefined, model: string): EndpointStats {
  return entry === undefined || entry.name !== model ? new EndpointStats() : entry.stats;
}

function chosenOf(targets: readonly FailoverTarget[]): FailoverTarget | undefined {
  const weighted = targets.flatMap((target) =>
    target.weight === undefined || target.weight === 0 ? [] : [{ target, weight: target.weight }],
  );
  return weighted.length === 0 ? betterOfTwo(targets) : randomByWeight(weighted)?.target;
}

/** Power of two random choices: always using the best target would overload it. */
function betterOfTwo(targets: readonly FailoverTarget[]): FailoverTarget | undefined {
  const first = targets[Math.floor(Math.random() * targets.length)];
  const others = targets.filter((target) => target !== first);
  const second = others[Math.floor(Math.random() * others.length)];
  if (first === undefined || second === undefined) return first;
  return second.stats.cost < first.stats.cost ? second : first;
}

export function randomByWeight<T extends { readonly weight: number }>(targets: readonly T[]): T | undefined {
  let point = Math.random() * targets.reduce((sum, { weight }) => sum + weight, 0);
  return targets.find(({ weight }) => {
    point -= weight;
    return point < 0;
  });
}
