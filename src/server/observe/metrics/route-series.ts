import type { Counter, Histogram } from 'prom-client';
import { LIMITS } from '../../../core/limits.ts';
import type { Families } from './families.ts';
import { LlmSeries } from './llm-series.ts';

/** Labels of an ended request, without those of its route. */
export interface HttpLabels {
  readonly backend: string;
  readonly protocol: string;
  readonly method: string;
  readonly status: number;
  readonly reason: string;
}

/** What every ended request adds to. */
export interface HttpSeries {
  readonly requests: Counter;
  readonly bytes: Counter;
  readonly duration: Histogram;
  readonly requestProcessing: Histogram;
  readonly responseProcessing: Histogram;
}

interface FrequentSeries extends HttpLabels {
  readonly series: HttpSeries;
}

/** So many kinds of requests of a route are found by comparing, which takes a tenth of building a key. */
const FREQUENT = 4;

/**
 * The series of one route and one set of added labels. They are found again by the labels that differ between its
 * requests, up to `LIMITS.metricSeries` of each kind; the families put what comes after together as `overflow`.
 */
export class RouteSeries {
  readonly #families: Families;
  readonly #labels: readonly string[];
  /** The kinds of requests that came first. */
  readonly #frequent: FrequentSeries[] = [];
  readonly #http = new Map<string, HttpSeries>();
  readonly #mcp = new Map<string, Counter>();
  readonly #llm = new Map<string, LlmSeries>();

  /** `labels`: those of the route, then the added ones. */
  constructor(families: Families, labels: readonly string[]) {
    this.#families = families;
    this.#labels = labels;
  }

  http(request: HttpLabels): HttpSeries {
    const { backend, protocol, method, status, reason } = request;
    for (const known of this.#frequent)
      if (
        known.status === status &&
        known.method === method &&
        known.reason === reason &&
        known.backend === backend &&
        known.protocol === protocol
      )
        return known.series;
    const series = found(this.#http, [String(status), method, reason, protocol, backend], () =>
      this.#httpSeries(request),
    );
    if (this.#frequent.length < FREQUENT) this.#frequent.push({ ...request, series });
    return series;
  }

  /** `values`: method, type of the resource, server, resource. */
  mcp(values: readonly string[]): Counter {
    return found(this.#mcp, values, () => this.#families.mcpRequests.with([...values, ...this.#labels]));
  }

  /** `values`: operation, provider, requested model, model of the response. */
  llm(values: readonly string[]): LlmSeries {
    return found(this.#llm, values, () => new LlmSeries(this.#families, [...values, ...this.#labels]));
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

function found<Series>(known: Map<string, Series>, values: readonly string[], make: () => Series): Series {
  const key = values.join('\u0000');
  const series = known.get(key);
  if (series !== undefined) return series;
  const made = make();
  if (known.size < LIMITS.metricSeries) known.set(key, made);
  return made;
}
