import { useMemo } from 'react';
import type { Overview } from '../../../core/overview.ts';
import { quantile } from '../../../core/render/figures.ts';
import { useLoaded } from '../../shared/use-loaded.ts';
import { durationOf, field, isError } from '../model/fields.ts';
import { DAY, type Usage } from '../model/recorded.ts';
import type { Entry } from '../model/requests.ts';
import { within } from '../model/usage.ts';
import type { ChosenPeriod } from '../parts/period-select.tsx';
import { EVERY } from '../parts/use-figures.ts';
import type { Bucket } from './strip.tsx';

/** What became of the calls of an MCP target or a provider in a period. */
export interface Service extends Bucket {
  readonly buckets: readonly Bucket[];
}

export interface Services {
  readonly step: number;
  readonly of: (name: string) => Service;
  /** Calls of models that had failed before another model answered, by name of the failed model. */
  readonly failovers: ReadonlyMap<string, number>;
}

/** The field of the access log with the models that failed before another one answered. */
const FAILOVER = 'gw.ai.failover.from';
const BUCKETS = 30;

/** From the requests that the page knows, or for a long period from the database, which has no latency and no failovers. */
export function useServices(
  kind: 'target' | 'provider',
  { period: { from, to }, step }: ChosenPeriod,
  entries: readonly Entry[],
): Services {
  const query = new URLSearchParams({
    by: `${step === DAY ? 'day' : 'hour'},${kind}`,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
  });
  const { data } = useLoaded<Usage>(step === undefined ? undefined : `/api/usage?${query}`, EVERY);
  return useMemo(
    () =>
      step === undefined
        ? liveServices(kind, within(entries, { from, to }), { from, to })
        : recordedServices(kind, data, { from, to }, step),
    [kind, from, to, step, data, entries],
  );
}

function liveServices(
  kind: 'target' | 'provider',
  entries: readonly Entry[],
  { from, to }: { readonly from: number; readonly to: number },
): Services {
  const name = kind === 'target' ? 'mcp.target' : 'gen_ai.provider.name';
  const step = (to - from) / BUCKETS;
  const groups = Map.groupBy(entries, (entry) => field(entry, name));
  const failovers = new Map<string, number>();
  for (const entry of entries)
    for (const model of field(entry, FAILOVER).split(', '))
      if (model !== '') failovers.set(model, (failovers.get(model) ?? 0) + 1);
  return {
    step,
    failovers,
    of(service) {
      const own = groups.get(service) ?? [];
      const parts = Map.groupBy(own, (entry) => Math.floor((entry.at - from) / step));
      const buckets = Array.from({ length: BUCKETS }, (_, at) => figuresOf(parts.get(at) ?? []));
      return { ...figuresOf(own), buckets };
    },
  };
}

function figuresOf(entries: readonly Entry[]): Bucket {
  const took = entries.map(durationOf).filter((value) => value !== undefined);
  took.sort((a, b) => a - b);
  return { calls: entries.length, errors: entries.filter(isError).length, p95: quantile(took, 0.95) };
}

function recordedServices(
  kind: 'target' | 'provider',
  usage: Usage | undefined,
  { from, to }: { readonly from: number; readonly to: number },
  step: number,
): Services {
  const time = step === DAY ? 'day' : 'hour';
  const groups = Map.groupBy(usage?.rows ?? [], ({ group }) => group[kind] ?? '');
  return {
    step,
    failovers: new Map(),
    of(service) {
      const own = groups.get(service) ?? [];
      const buckets = Array.from({ length: Math.round((to - from) / step) }, () => ({
        calls: 0,
        errors: 0,
        p95: undefined,
      }));
      for (const { group, requests, errors } of own) {
        const bucket = buckets[Math.floor((Date.parse(group[time] ?? '') - from) / step)];
        if (bucket === undefined) continue;
        bucket.calls += requests;
        bucket.errors += errors;
      }
      const sum = (pick: (bucket: Bucket) => number): number =>
        buckets.reduce((all, bucket) => all + pick(bucket), 0);
      return {
        calls: sum(({ calls }) => calls),
        errors: sum(({ errors }) => errors),
        p95: undefined,
        buckets,
      };
    },
  };
}

/** A target or provider as it is now. */
export interface Now {
  readonly name: string;
  readonly state: 'ok' | 'failing' | 'idle' | 'connecting';
  readonly about: string;
  readonly problem: string | undefined;
  /** Names of the models of a provider. */
  readonly models: readonly string[];
}

/** Targets that several backends have are one, which is as good as the worst of them. */
export function targetsOf({ gateways }: Overview): readonly Now[] {
  const all = gateways
    .flatMap(({ routes }) => routes)
    .flatMap(({ backends }) => backends)
    .flatMap(({ targets = [] }) => targets);
  return [...Map.groupBy(all, ({ name }) => name)].map(([name, own]) => {
    const worst =
      own.find(({ state }) => state === 'failing') ?? own.find(({ state }) => state !== 'idle') ?? own[0];
    const state = worst?.state === 'ready' ? 'ok' : (worst?.state ?? 'idle');
    return { name, state, about: worst?.at ?? '', problem: worst?.problem, models: [] };
  });
}

export function providersOf({ gateways }: Overview): readonly Now[] {
  const all = gateways
    .flatMap(({ routes }) => routes)
    .flatMap(({ backends }) => backends)
    .flatMap(({ models = [] }) => models);
  return [...Map.groupBy(all, ({ loggedProvider }) => loggedProvider)].map(([name, own]) => {
    const failing = own.filter(({ failures }) => failures > 0);
    const isUsed = own.some(({ requests }) => requests > 0);
    return {
      name,
      state: failing.length > 0 ? 'failing' : isUsed ? 'ok' : 'idle',
      about: [...new Set(own.flatMap(({ address }) => address ?? []))].join(', '),
      problem:
        failing.length === 0
          ? undefined
          : failing.map((model) => `${model.name}: ${model.failures} failures in a row`).join(', '),
      models: own.map((model) => model.name),
    };
  });
}
