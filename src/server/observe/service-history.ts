import { LIMITS } from '../../core/limits.ts';
import { isOfService, OUTCOME_FIELDS, outcomeOfFields } from '../../core/outcome.ts';
import type { ServiceBucket, ServiceFigures, ServiceKind } from '../../core/service-figures.ts';
import type { Field } from './request-fields.ts';

// Counts by minute, hour and day of what MCP targets and providers have answered: latency has no sum, so each part has a histogram.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Lengths of parts in ms, and how many of each are kept: a period begins and ends within a part. */
const TIERS = {
  minute: { step: MINUTE, kept: 61 },
  hour: { step: HOUR, kept: 25 },
  day: { step: DAY, kept: 31 },
} as const;
export type ServiceStep = keyof typeof TIERS;
export const SERVICE_STEPS = ['minute', 'hour', 'day'] as const satisfies readonly ServiceStep[];

/** Bounds of latencies grow by this factor, from 1 ms to 9 min; a quantile is off by at most half of it. */
const GROWTH = 2 ** (1 / 3);
const LATENCIES = 58;
const ERRORS = 1;
const FAILOVERS = 2;
const FIRST_LATENCY = 3;
const LENGTH = FIRST_LATENCY + LATENCIES;

const TARGET = 'mcp.target';
const PROVIDER = 'gen_ai.provider.name';
const DURATION = 'duration';
const FAILED_MODELS = 'gw.ai.failover.from';
const READ_FIELDS: ReadonlySet<string> = new Set([
  TARGET,
  PROVIDER,
  DURATION,
  FAILED_MODELS,
  ...OUTCOME_FIELDS,
]);

/** The counts of one part: calls, errors, failovers, then calls by latency. */
type Counts = ArrayLike<number>;

/** What a process has counted of one service. A JSON value, because workers send it. */
export interface CountedService {
  readonly kind: ServiceKind;
  readonly name: string;
  readonly parts: readonly { readonly at: number; readonly counts: readonly number[] }[];
}

export interface CountedServices {
  /** ms since 1970. */
  readonly since: number;
  readonly services: readonly CountedService[];
}

/** A ring of parts: the part at a time has the place of its number, modulo the number of parts. */
class Parts {
  readonly #step: number;
  readonly #numbers: Float64Array;
  readonly #counts: Uint32Array;

  constructor({ step, kept }: { readonly step: number; readonly kept: number }) {
    this.#step = step;
    this.#numbers = new Float64Array(kept);
    this.#counts = new Uint32Array(kept * LENGTH);
  }

  count(time: number, indexes: readonly number[]): void {
    const number = Math.floor(time / this.#step);
    const place = number % this.#numbers.length;
    const start = place * LENGTH;
    if (this.#numbers[place] !== number) {
      this.#numbers[place] = number;
      this.#counts.fill(0, start, start + LENGTH);
    }
    for (const index of indexes) this.#counts[start + index] = (this.#counts[start + index] ?? 0) + 1;
  }

  /** Those that begin within a period, whose end is excluded. */
  between(from: number, to: number): CountedService['parts'] {
    return [...this.#numbers]
      .map((number, place) => ({ at: number * this.#step, place }))
      .filter(({ at }) => at > 0 && at + this.#step > from && at < to)
      .map(({ at, place }) => ({
        at,
        counts: [...this.#counts.subarray(place * LENGTH, (place + 1) * LENGTH)],
      }));
  }
}

/**
 * Calls of MCP targets and providers of the last hour by minute, of the last day by hour, and of the last month by day, however many there
 * are. At most `LIMITS.countedServices` services, each of which takes 29 KiB; calls of further ones are not counted.
 */
export class ServiceHistory {
  readonly #since = Date.now();
  readonly #services = new Map<
    string,
    Readonly<Record<ServiceStep, Parts>> & { readonly kind: ServiceKind; readonly name: string }
  >();

  get size(): number {
    return this.#services.size;
  }

  /** Adds a finished request by the fields of its access-log line. `now`: ms since 1970. */
  add(fields: readonly Field[], now: number): void {
    // One pass over the fields: this is done for every request.
    const read: Record<string, unknown> = {};
    for (const field of fields) if (READ_FIELDS.has(field[0])) read[field[0]] = field[1];
    const target = textOf(read[TARGET]);
    const provider = textOf(read[PROVIDER]);
    if ((target === undefined && provider === undefined) || !isOfService(textOf(read['reason']))) return;
    const indexes = [0];
    if (outcomeOfFields(read).outcome === 'bad') indexes.push(ERRORS);
    const duration = Number.parseFloat(textOf(read[DURATION]) ?? '');
    if (Number.isFinite(duration)) indexes.push(FIRST_LATENCY + latencyOf(duration));
    if (target !== undefined) this.#count('target', target, now, indexes);
    if (provider !== undefined) this.#count('provider', provider, now, indexes);
    for (const model of textOf(read[FAILED_MODELS])?.split(', ') ?? [])
      this.#count('model', model, now, [FAILOVERS]);
  }

  #count(kind: ServiceKind, name: string, now: number, indexes: readonly number[]): void {
    const key = `${kind} ${name}`;
    let service = this.#services.get(key);
    if (service === undefined) {
      if (this.#services.size >= LIMITS.countedServices) return;
      service = {
        kind,
        name,
        minute: new Parts(TIERS.minute),
        hour: new Parts(TIERS.hour),
        day: new Parts(TIERS.day),
      };
      this.#services.set(key, service);
    }
    for (const step of SERVICE_STEPS) service[step].count(now, indexes);
  }

  /** What was counted in parts of that length that overlap a period in ms since 1970; its end is excluded. */
  counted(step: ServiceStep, from: number, to: number): CountedServices {
    const services = [...this.#services.values()].map((service) => ({
      kind: service.kind,
      name: service.name,
      parts: service[step].between(from, to),
    }));
    return { since: this.#since, services: services.filter(({ parts }) => parts.length > 0) };
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const latencyOf = (ms: number): number =>
  ms <= 1 ? 0 : Math.min(LATENCIES - 1, Math.ceil(Math.log(ms) / Math.log(GROWTH)));

/** The figures of several processes together. */
export function figuresOfServices(all: readonly CountedServices[]): ServiceFigures[] {
  const services = Map.groupBy(
    all.flatMap((each) => each.services),
    ({ kind, name }) => `${kind} ${name}`,
  );
  return [...services.values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const parts = Map.groupBy(
      same.flatMap((each) => each.parts),
      ({ at }) => at,
    );
    const buckets = [...parts]
      .map(([at, own]): ServiceBucket => ({ at, ...figuresOf(own.map(({ counts }) => counts)) }))
      .sort((a, b) => a.at - b.at);
    const total = figuresOf(same.flatMap((each) => each.parts.map(({ counts }) => counts)));
    return [{ kind: first.kind, name: first.name, ...total, buckets }];
  });
}

function figuresOf(parts: readonly Counts[]): Omit<ServiceBucket, 'at'> {
  const sum = (index: number): number => parts.reduce((all, counts) => all + (counts[index] ?? 0), 0);
  const latencies = Array.from({ length: LATENCIES }, (_, index) => sum(FIRST_LATENCY + index));
  return { calls: sum(0), errors: sum(ERRORS), failovers: sum(FAILOVERS), p95: quantileOf(latencies, 0.95) };
}

/** In the middle of the latencies that are counted together, as their bounds grow. */
function quantileOf(latencies: readonly number[], part: number): number | null {
  const all = latencies.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const rank = Math.max(1, Math.ceil(all * part));
  let counted = 0;
  const index = latencies.findIndex((count) => {
    counted += count;
    return counted >= rank;
  });
  return index === 0 ? 1 : Math.round(GROWTH ** (index - 0.5));
}
