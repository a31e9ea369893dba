import { LIMITS } from '../../../core/limits.ts';
import { tokenFacts } from '../../llm/facts.ts';
import type { LlmCall } from '../../llm/llm-call.ts';
import type { Usage } from '../../llm/usage.ts';
import type { Families } from './families.ts';
import type { Counter, Histogram } from './series.ts';

/** Labels of a finished request, without those of its route. */
export interface HttpLabels {
  readonly backend: string;
  readonly protocol: string;
  readonly method: string;
  readonly status: number;
  readonly reason: string;
}

/** The series that every finished request updates. */
export interface HttpSeries {
  readonly requests: Counter;
  readonly bytes: Counter;
  readonly duration: Histogram;
  readonly requestProcessing: Histogram;
  readonly responseProcessing: Histogram;
}

interface CachedSeries extends HttpLabels {
  readonly series: HttpSeries;
}

/** Label sets per route that are found by comparison, which takes a tenth of the time needed to build a map key. */
const CACHED_SERIES = 4;

/**
 * The series of one route and one set of added labels, cached by the labels that vary between requests. Each kind of
 * series is cached up to `LIMITS.metricSeries`; the families count anything beyond as `overflow`.
 */
export class RouteSeries {
  readonly #families: Families;
  readonly #labels: readonly string[];
  /** The first label sets seen. */
  readonly #cached: CachedSeries[] = [];
  readonly #http = new Map<string, HttpSeries>();
  readonly #mcp = new Map<string, Counter>();
  readonly #llm = new Map<string, LlmSeries>();

  /** `labels`: values of the route's labels, then of the added labels. */
  constructor(families: Families, labels: readonly string[]) {
    this.#families = families;
    this.#labels = labels;
  }

  http(request: HttpLabels): HttpSeries {
    const { backend, protocol, method, status, reason } = request;
    for (const known of this.#cached)
      if (
        known.status === status &&
        known.method === method &&
        known.reason === reason &&
        known.backend === backend &&
        known.protocol === protocol
      )
        return known.series;
    const series = getOrCreate(this.#http, [String(status), method, reason, protocol, backend], () =>
      this.#httpSeries(request),
    );
    if (this.#cached.length < CACHED_SERIES) this.#cached.push({ ...request, series });
    return series;
  }

  /** `values`: method, resource type, server, resource. */
  mcp(values: readonly string[]): Counter {
    return getOrCreate(this.#mcp, values, () =>
      this.#families.mcpRequests.with([...values, ...this.#labels]),
    );
  }

  /** `values`: operation, provider, request model, response model. */
  llm(values: readonly string[]): LlmSeries {
    return getOrCreate(this.#llm, values, () => new LlmSeries(this.#families, [...values, ...this.#labels]));
  }

  #httpSeries({ backend, protocol, method, status, reason }: HttpLabels): HttpSeries {
    const families = this.#families;
    const labels = [backend, protocol, method, String(status), reason, ...this.#labels];
    const minimal = [backend, ...this.#labels];
    return {
      requests: families.requests.with(labels),
      bytes: families.responseBytes.with(labels),
      duration: families.duration.with(labels),
      requestProcessing: families.requestProcessing.with(minimal),
      responseProcessing: families.responseProcessing.with(minimal),
    };
  }
}

function getOrCreate<Series>(
  known: Map<string, Series>,
  values: readonly string[],
  make: () => Series,
): Series {
  const key = values.join('\u0000');
  const series = known.get(key);
  if (series !== undefined) return series;
  const made = make();
  if (known.size < LIMITS.metricSeries) known.set(key, made);
  return made;
}

/** The classes of tokens that have a metric. */
const COUNTED = tokenFacts.flatMap(({ count, metric }) => (metric === undefined ? [] : [{ count, metric }]));

/** The series for LLM calls with the same labels. Each series is created on first use. */
class LlmSeries {
  readonly #families: Families;
  readonly #labels: readonly string[];
  readonly #duration: Histogram;
  readonly #lookups = new Map<string, Counter>();
  readonly #tokens = new Map<string, Histogram>();
  #cost: Counter | undefined;
  #firstToken: Histogram | undefined;
  #perOutputToken: Histogram | undefined;

  constructor(families: Families, labels: readonly string[]) {
    this.#families = families;
    this.#labels = labels;
    this.#duration = families.modelDuration.with(labels);
  }

  /** Records a finished call. `seconds` is the duration of the whole request. */
  record({ usage, cost, streaming, firstTokenAfter, lastTokenAfter }: LlmCall, seconds: number): void {
    const families = this.#families;
    const labels = this.#labels;
    this.#duration.observe(seconds);
    // One that was refused, or not answered, has nothing to charge, so a price that is missing does not matter.
    if (cost !== undefined && usage !== undefined) this.#lookup(cost.status).inc();
    if (cost?.total !== undefined) {
      this.#cost ??= families.cost.with(labels);
      this.#cost.inc(Number(cost.total));
    }
    if (usage !== undefined) this.#observeTokens(usage);
    if (!streaming || firstTokenAfter === undefined) return;
    this.#firstToken ??= families.firstToken.with(labels);
    this.#firstToken.observe(firstTokenAfter / 1000);
    if (lastTokenAfter === undefined || usage === undefined || usage.output === 0) return;
    this.#perOutputToken ??= families.perOutputToken.with(labels);
    this.#perOutputToken.observe((lastTokenAfter - firstTokenAfter) / usage.output / 1000);
  }

  #observeTokens(usage: Usage): void {
    for (const { count, metric } of COUNTED) {
      const value = usage[count];
      if (value !== undefined) this.#token(metric).observe(value);
    }
  }

  #lookup(status: string): Counter {
    const known = this.#lookups.get(status);
    if (known !== undefined) return known;
    const made = this.#families.catalogLookups.with([status, ...this.#labels]);
    this.#lookups.set(status, made);
    return made;
  }

  #token(type: string): Histogram {
    const known = this.#tokens.get(type);
    if (known !== undefined) return known;
    const made = this.#families.tokenUsage.with([type, ...this.#labels]);
    this.#tokens.set(type, made);
    return made;
  }
}
