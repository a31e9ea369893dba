import { LIMITS } from '../../../core/limits.ts';
import { mcpProblem } from '../../../core/outcome.ts';
import { VERSION } from '../../../core/version.ts';
import type { CallKind, CallMeter } from '../../kernel/call-meter.ts';
import type { Bound } from '../../kernel/inspection.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { type LlmCall, llmCall } from '../../llm/call.ts';
import { CLIENT_METHODS } from '../../mcp/protocol.ts';
import { type McpFields, mcpFields } from '../../mcp/request-fields.ts';
import { createFamilies, type Families } from './families.ts';
import { type CounterSeries, type Family, Gauge, type HistogramSeries, UNKNOWN } from './family.ts';
import { LabelValues } from './label-values.ts';
import { LlmSeriesByLabels } from './llm-series.ts';
import type { MetricsPolicy } from './metrics-policy.ts';
import { processFamilies } from './process.ts';
import { renderFamilies } from './render.ts';

/** The open port that requests come from; its names are labels. */
export interface BindNames {
  readonly bind: string;
  readonly gateway: string;
  readonly listener: string;
}

/** What every ended request adds to, found again by one short key. */
interface HttpSeries {
  readonly requests: CounterSeries;
  readonly bytes: CounterSeries;
  readonly duration: HistogramSeries;
  readonly requestProcessing: HistogramSeries;
  readonly responseProcessing: HistogramSeries;
}

/** The counters of a running gateway. They outlive a reload of the configuration. */
export class Metrics {
  readonly families: Families;
  #policy: MetricsPolicy | undefined;
  readonly #others: readonly Family[];
  readonly #models = new LabelValues();
  readonly #responseModels = new LabelValues();
  readonly #mcpMethods = new LabelValues(CLIENT_METHODS);
  readonly #mcpResources = new LabelValues();
  readonly #custom: readonly LabelValues[];
  readonly #first: readonly Family[];
  readonly #llm: LlmSeriesByLabels;

  /** `custom`: labels that the configuration adds, whose values come with `configure`. */
  constructor(custom: readonly string[] = []) {
    this.families = createFamilies(custom);
    this.#llm = new LlmSeriesByLabels(this.families);
    this.#custom = custom.map(() => new LabelValues());
    this.#first = [
      new Gauge(
        {
          name: 'gw_config_synchronized',
          help: '1 when what serves is the configuration as it was last read, 0 after a reload that failed',
        },
        () => (this.isSynchronized ? 1 : 0),
      ),
    ];
    this.#others = [
      new Gauge(
        { name: 'gw_trace_spans_lost', help: 'Spans that did not reach the collector' },
        () => this.spansLost?.(),
        { type: 'counter' },
      ),
      new Gauge(
        {
          name: 'gw_access_log_lines_lost',
          help: 'Access-log lines that were not written because stdout is not read fast enough',
        },
        () => this.accessLogLinesLost?.(),
        { type: 'counter' },
      ),
      ...processFamilies(),
      new Gauge({ name: 'gw_build_info', help: 'Version of the program' }, () => 1, {
        labels: { tag: VERSION },
      }),
    ];
  }

  /** False after a reload that failed. */
  isSynchronized = true;

  /** Spans that did not reach the collector; undefined where nothing is traced. */
  spansLost: (() => number) | undefined;

  /** Access-log lines that were not written; undefined before the gateway has an access log. */
  accessLogLinesLost: (() => number) | undefined;

  configure(policy: MetricsPolicy): void {
    this.#policy = policy;
  }

  /** Series of each family, and values of each label that others choose. */
  bounds(): Bound[] {
    const values: readonly (readonly [string, LabelValues])[] = [
      ['request models', this.#models],
      ['response models', this.#responseModels],
      ['mcp methods', this.#mcpMethods],
      ['mcp resources', this.#mcpResources],
      ...this.#custom.map((known, index): readonly [string, LabelValues] => [`added label ${index}`, known]),
    ];
    return [
      ...Object.values(this.families).map((family) => ({
        name: 'metrics.series',
        at: family.name,
        max: LIMITS.metricSeries,
        used: () => family.size,
      })),
      ...values.map(([at, known]) => ({
        name: 'metrics.labelValues',
        at,
        max: LIMITS.metricLabelValues,
        used: () => known.size,
      })),
    ];
  }

  /** OpenMetrics text. */
  render(): Promise<string> {
    const all = [...this.#first, ...this.#others, ...Object.values(this.families)];
    return renderFamilies(all.filter(({ name }) => this.#policy?.isRemoved(name) !== true));
  }

  /** The counter of a port. */
  forBind(names: BindNames): BindMetrics {
    return new BindMetrics(this, names);
  }

  /** The meter of an upstream. */
  calls(kind: CallKind, subtype: string): CallMeter {
    const { callDuration, connectDuration } = this.families;
    return {
      kind,
      subtype,
      connected: (transport, duration) => connectDuration.with([transport]).observe(duration / 1000),
      answered: (duration) => callDuration.with([kind, subtype]).observe(duration / 1000),
    };
  }

  /** Values of the labels of `config.metrics`. */
  custom(x: RequestContext): readonly string[] {
    if (this.#custom.length === 0) return NONE;
    const values = this.#policy?.values(x) ?? [];
    return this.#custom.map((known, index) => known.of(values[index], true));
  }

  recordMcp(mcp: McpFields, labels: readonly string[]): void {
    if (mcp.method === undefined) return;
    const succeeded = mcpProblem(mcp) === undefined;
    const resource = this.#mcpResources.of(mcp.tool ?? mcp.prompt ?? mcp.resourceUri, succeeded);
    const method = this.#mcpMethods.of(mcp.method, succeeded);
    this.families.mcpRequests
      .with([method, mcp.resourceType ?? UNKNOWN, mcp.target ?? UNKNOWN, resource, ...labels])
      .add();
  }

  recordLlm(call: LlmCall, seconds: number, succeeded: boolean, labels: readonly string[]): void {
    const { operation, provider, requestModel, responseModel } = call;
    const models = [
      this.#models.of(requestModel, succeeded),
      this.#responseModels.of(responseModel, succeeded),
    ];
    this.#llm.with([operation, provider, ...models, ...labels]).record(call, seconds);
  }
}

const NONE: readonly string[] = [];

/** Metrics of one port. Series are kept by route, then by what differs between requests. */
export class BindMetrics {
  readonly #metrics: Metrics;
  readonly #names: BindNames;
  readonly #routes = new Map<
    string | undefined,
    { labels: readonly string[]; series: Map<string, HttpSeries> }
  >();
  readonly #received: CounterSeries;
  readonly #sent: CounterSeries;
  readonly #connections: CounterSeries;

  constructor(metrics: Metrics, names: BindNames) {
    this.#metrics = metrics;
    this.#names = names;
    const { bind, gateway, listener } = names;
    const labels = [bind, gateway, listener, 'http'];
    this.#connections = metrics.families.connections.with(labels);
    this.#received = metrics.families.receivedBytes.with(labels);
    this.#sent = metrics.families.sentBytes.with(labels);
  }

  connected(): void {
    this.#connections.add();
  }

  disconnected(received: number, sent: number): void {
    this.#received.add(received);
    this.#sent.add(sent);
  }

  /** A request has ended. `bodyBytes` are those of the response body. */
  ended(x: RequestContext, status: number, bodyBytes: number): void {
    const now = performance.now();
    const seconds = (now - x.timings.started) / 1000;
    const custom = this.#metrics.custom(x);
    const { labels, series } = this.#route(x.route);
    const http = this.#http(x, status, labels, series, custom);
    http.requests.value += 1;
    http.bytes.value += bodyBytes;
    http.duration.observe(seconds);
    if (x.timings.called !== undefined)
      http.requestProcessing.observe((x.timings.called - x.timings.started) / 1000);
    if (x.timings.answered !== undefined && x.timings.replied !== undefined)
      http.responseProcessing.observe((x.timings.replied - x.timings.answered) / 1000);
    const mcp = mcpFields.get(x);
    if (mcp !== undefined) this.#metrics.recordMcp(mcp, [...labels, ...custom]);
    const llm = llmCall.get(x);
    if (llm !== undefined)
      this.#metrics.recordLlm(llm, seconds, status >= 200 && status < 300, [...labels, ...custom]);
  }

  #route(route: string | undefined): { labels: readonly string[]; series: Map<string, HttpSeries> } {
    const known = this.#routes.get(route);
    if (known !== undefined) return known;
    const { bind, gateway, listener } = this.#names;
    const made = {
      labels: [bind, gateway, listener, route ?? UNKNOWN, UNKNOWN],
      series: new Map<string, HttpSeries>(),
    };
    this.#routes.set(route, made);
    return made;
  }

  #http(
    x: RequestContext,
    status: number,
    route: readonly string[],
    known: Map<string, HttpSeries>,
    custom: readonly string[],
  ): HttpSeries {
    const reason = x.reason ?? UNKNOWN;
    const backend = x.backend ?? UNKNOWN;
    let key = `${status} ${x.method} ${reason} ${x.protocol} ${backend}`;
    if (custom.length > 0) key += `\u0000${custom.join('\u0000')}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const { families } = this.#metrics;
    const http = [backend, x.protocol, x.method, String(status), reason, ...route, ...custom];
    const minimal = [backend, ...route, ...custom];
    const made = {
      requests: families.requests.with(http),
      bytes: families.responseBytes.with(http),
      duration: families.duration.with(http),
      requestProcessing: families.requestProcessing.with(minimal),
      responseProcessing: families.responseProcessing.with(minimal),
    };
    // Bounded like the families themselves: what comes after goes to their overflow, found anew each time.
    if (known.size < LIMITS.metricSeries) known.set(key, made);
    return made;
  }
}
