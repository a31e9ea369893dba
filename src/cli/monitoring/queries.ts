import type { MetricDescription } from '../../server/observe/metrics/family.ts';
import { Metrics } from '../../server/observe/metrics/metrics.ts';

/** First part of the names of metrics, unless `config.metrics.prefix` changes it. */
const PREFIX = 'gw_';

/** What a query is about. */
export interface QueryOptions {
  /** Labels to group by. Default: one value for all. */
  readonly by?: readonly string[];
  /** Label matchers, such as `status=~"5.."`. */
  readonly where?: string;
}

/**
 * PromQL for the metrics of the gateway. Names are without prefix and without `_total`. `scope`: matchers of every query.
 * `range`: that of rates, such as `5m`. A name or label that no metric has is an error, so dashboards and alerts cannot
 * outlive a renamed metric.
 */
export class Queries {
  readonly metrics: readonly MetricDescription[] = new Metrics([], PREFIX).describe();
  /** Names of the metrics that queries have read. */
  readonly used = new Set<string>();
  readonly #scope: readonly string[];
  readonly #range: string;

  constructor(scope: readonly string[], range: string) {
    this.#scope = scope;
    this.#range = range;
  }

  /** Current value of a gauge. */
  gauge(name: string, options: QueryOptions = {}, aggregate = 'sum'): string {
    return this.#grouped(aggregate, this.#selected(name, 'gauge', '', options), options);
  }

  /** Increase per second of a counter. */
  rate(name: string, options: QueryOptions = {}): string {
    return this.#grouped(
      'sum',
      `rate(${this.#selected(name, 'counter', '_total', options)}[${this.#range}])`,
      options,
    );
  }

  /** Increase of a counter in `range`. */
  increase(name: string, range: string, options: QueryOptions = {}): string {
    return this.#grouped(
      'sum',
      `increase(${this.#selected(name, 'counter', '_total', options)}[${range}])`,
      options,
    );
  }

  /**
   * True if a counter has grown in `range`. A series begins with its first count, in which `increase` sees no growth: a
   * series that did not exist before counts, too.
   */
  hasGrown(name: string, range: string, options: QueryOptions = {}): string {
    const selected = this.#selected(name, 'counter', '_total', options);
    const begun = this.#grouped('sum', `${selected} unless ${selected} offset ${range}`, options);
    return `${this.increase(name, range, options)} > 0 or ${begun} > 0`;
  }

  /** Sum of what a histogram measured, per second. */
  sumRate(name: string, options: QueryOptions = {}): string {
    return this.#grouped(
      'sum',
      `rate(${this.#selected(name, 'histogram', '_sum', options)}[${this.#range}])`,
      options,
    );
  }

  /** Upper bound of the given share of the values of a histogram. */
  quantile(share: number, name: string, options: QueryOptions = {}): string {
    const buckets = `rate(${this.#selected(name, 'histogram', '_bucket', options)}[${this.#range}])`;
    const by = [...(options.by ?? []), 'le'];
    return `histogram_quantile(${share}, sum by (${by.join(', ')}) (${buckets}))`;
  }

  /** The metric with the given name. */
  describe(name: string, type: MetricDescription['type']): MetricDescription {
    const found = this.metrics.find((metric) => metric.name === PREFIX + name && metric.type === type);
    if (found === undefined) throw new Error(`no ${type} is called ${PREFIX}${name}`);
    return found;
  }

  #selected(name: string, type: MetricDescription['type'], suffix: string, options: QueryOptions): string {
    const { labels } = this.describe(name, type);
    const asked = [
      ...(options.by ?? []),
      ...[...(options.where ?? '').matchAll(/(\w+)[=!]/g)].map(([, label = '']) => label),
    ];
    for (const label of asked)
      if (!labels.includes(label) && label !== 'instance')
        throw new Error(`${PREFIX}${name} has no label ${label}`);
    this.used.add(PREFIX + name);
    const matchers = [...this.#scope, ...(options.where === undefined ? [] : [options.where])];
    return `${PREFIX}${name}${suffix}${matchers.length === 0 ? '' : `{${matchers.join(', ')}}`}`;
  }

  #grouped(aggregate: string, expression: string, { by = [] }: QueryOptions): string {
    return by.length === 0
      ? `${aggregate}(${expression})`
      : `${aggregate} by (${by.join(', ')}) (${expression})`;
  }
}
