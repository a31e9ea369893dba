import { useMemo } from 'react';
import { isOfService } from '../../../core/outcome.ts';
import type { Overview } from '../../../core/overview.ts';
import { quantile } from '../../../core/render/figures.ts';
import type { ShownServices } from '../../../core/service-figures.ts';
import { useLoaded } from '../../shared/use-loaded.ts';
import { field, isError, latencyOf } from '../model/fields.ts';
import { DAY, HOUR, type Usage } from '../model/recorded.ts';
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
  /** Since when the gateway counts latency and failovers; undefined if the page knows the requests itself. */
  readonly since: number | undefined;
}

/** The field of the access log with the models that failed before another one answered. */
const FAILOVER = 'gw.ai.failover.from';
const BUCKETS = 30;
export const MINUTE = 60_000;
/** How often the figures of minutes are read again, in ms. */
const SOON = 5_000;

/**
 * From what the gateway has counted; of hours and days, a database has calls and errors of before its start, too. Parts of the period that
 * the gateway no longer has by minute are those of the requests that the page knows.
 */
export function useServices(
  kind: 'target' | 'provider',
  { period: { from, to }, step }: ChosenPeriod,
  entries: readonly Entry[],
  isRecording: boolean,
): Services {
  const isKept = step !== MINUTE || from >= Date.now() - HOUR - MINUTE;
  const times = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  const time = nameOf(step);
  const usage = new URLSearchParams({ by: `${time},${kind}`, ...times });
  const { data: recorded } = useLoaded<Usage>(
    step === undefined || step === MINUTE || !isRecording ? undefined : `/api/usage?${usage}`,
    EVERY,
  );
  const counts = new URLSearchParams({ step: time, ...times });
  const { data: counted } = useLoaded<ShownServices>(
    step === undefined || !isKept ? undefined : `/api/services?${counts}`,
    step === MINUTE ? SOON : EVERY,
  );
  return useMemo(
    () =>
      step === undefined || !isKept
        ? liveServices(kind, within(entries, { from, to }), { from, to })
        : countedServices(kind, counted, isRecording ? recorded : undefined, { from, to }, step),
    [kind, from, to, step, isKept, recorded, counted, entries, isRecording],
  );
}

function liveServices(
  kind: 'target' | 'provider',
  entries: readonly Entry[],
  { from, to }: { readonly from: number; readonly to: number },
): Services {
  const name = kind === 'target' ? 'mcp.target' : 'gen_ai.provider.name';
  const step = (to - from) / BUCKETS;
  const groups = Map.groupBy(
    entries.filter((entry) => isOfService(field(entry, 'reason'))),
    (entry) => field(entry, name),
  );
  const failovers = new Map<string, number>();
  for (const entry of entries)
    for (const model of field(entry, FAILOVER).split(', '))
      if (model !== '') failovers.set(model, (failovers.get(model) ?? 0) + 1);
  return {
    step,
    failovers,
    since: undefined,
    of(service) {
      const own = groups.get(service) ?? [];
      const parts = Map.groupBy(own, (entry) => Math.floor((entry.at - from) / step));
      const buckets = Array.from({ length: BUCKETS }, (_, at) => figuresOf(parts.get(at) ?? []));
      return { ...figuresOf(own), buckets };
    },
  };
}

function figuresOf(entries: readonly Entry[]): Bucket {
  const took = entries.map(latencyOf).filter((value) => value !== undefined);
  took.sort((a, b) => a - b);
  return { calls: entries.length, errors: entries.filter(isError).length, p95: quantile(took, 0.95) };
}

function countedServices(
  kind: 'target' | 'provider',
  counted: ShownServices | undefined,
  recorded: Usage | undefined,
  { from, to }: { readonly from: number; readonly to: number },
  step: number,
): Services {
  const all = counted?.services ?? [];
  const rows = Map.groupBy(recorded?.rows ?? [], ({ group }) => group[kind] ?? '');
  const time = nameOf(step);
  // Calls of a target that rules do not allow are recorded with it, but it has not seen them.
  const callsIn = ({ requests, refused }: Usage['rows'][number]): number =>
    kind === 'target' ? requests - refused : requests;
  const empty = Array.from({ length: Math.round((to - from) / step) });
  return {
    step,
    since: counted?.since,
    failovers: new Map(
      all.flatMap((each) => (each.kind === 'model' ? [[each.name, each.failovers] as const] : [])),
    ),
    of(service) {
      const own = all.find((each) => each.kind === kind && each.name === service);
      const known = new Map(own?.buckets.map((bucket) => [bucket.at, bucket]));
      const stored = Map.groupBy(rows.get(service) ?? [], ({ group }) => Date.parse(group[time] ?? ''));
      const buckets = empty.map((_, index): Bucket => {
        const at = from + index * step;
        const { calls = 0, errors = 0, p95 } = known.get(at) ?? {};
        const sums = stored.get(at) ?? [];
        // The database is written a moment later.
        return {
          calls: Math.max(calls, sum(sums.map(callsIn))),
          errors: Math.max(errors, sum(sums.map((each) => each.errors))),
          p95: p95 ?? undefined,
        };
      });
      return {
        calls: sum(buckets.map(({ calls }) => calls)),
        errors: sum(buckets.map(({ errors }) => errors)),
        p95: own?.p95 ?? undefined,
        buckets,
      };
    },
  };
}

const nameOf = (step: number | undefined): 'minute' | 'hour' | 'day' =>
  step === DAY ? 'day' : step === MINUTE ? 'minute' : 'hour';

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

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
