import type { Registry } from 'prom-client';
import { LIMITS } from '../../../core/limits.ts';
import { mcpProblem } from '../../../core/outcome.ts';
import { VERSION } from '../../../core/version.ts';
import type { Bound, CertificateState } from '../../kernel/inspection.ts';
import type { CallKind, CallMeter } from '../../kernel/observer.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { type LlmCall, llmCall } from '../../llm/llm-call.ts';
import { CLIENT_METHODS } from '../../mcp/protocol/protocol.ts';
import { type McpFields, mcpFields } from '../../mcp/request-fields.ts';
import { createRegistry, type MetricSource, type Sample, type SampledMetric } from './exposition.ts';
import { createFamilies, type Families } from './families.ts';
import {
  type HistogramForm,
  LabelValues,
  type MetricDescription,
  type MetricValues,
  UNKNOWN,
} from './family.ts';
import { type MetricsPolicy, OWN_PREFIX } from './policy.ts';
import { processMetrics } from './process.ts';
import { encodeMetrics } from './protobuf.ts';
import { RouteSeries } from './route-series.ts';
import type { Counter, Histogram } from './series.ts';
import { printed, renderMetrics } from './text.ts';

/** Identifies the port that requests arrive on. The names are label values. */
export interface BindNames {
  readonly bind: string;
  readonly gateway: string;
  readonly listener: string;
}

/** The metrics of a running gateway. Counts are kept when the configuration is reloaded. */
export class Metrics {
  readonly families: Families;
  #policy: MetricsPolicy | undefined;
  /** Created with the gateway, because event-loop utilization is measured since the previous scrape. */
  readonly #process = processMetrics();
  #registry: Registry | undefined;
  readonly #models = new LabelValues();
  readonly #responseModels = new LabelValues();
  readonly #mcpMethods = new LabelValues(CLIENT_METHODS);
  readonly #mcpResources = new LabelValues();
  readonly #custom: readonly LabelValues[];
  /** First part of all names. */
  readonly #prefix: string;
  readonly #form: HistogramForm;

  /** `custom` and `prefix`: label names added, and the prefix set by `config.metrics`. `configure` sets the expressions that compute their values. */
  constructor(custom: readonly string[] = [], prefix = OWN_PREFIX, form: HistogramForm = 'classic') {
    this.families = createFamilies(custom, prefix, form);
    this.#form = form;
    this.#prefix = prefix;
    this.#custom = custom.map(() => new LabelValues());
  }

  /** False after a failed reload, until a reload succeeds. Default: true. */
  isSynchronized = true;

  /** Returns the number of spans that were not exported. Undefined if tracing is off: the metric is then omitted. */
  spansLost: (() => number) | undefined;

  /** Returns the number of access-log lines that were not written. Undefined until the access log is created. */
  accessLogLinesLost: (() => number) | undefined;

  /** Returns the number of internal errors that were contained. Undefined until the gateway is created. */
  internalErrors: (() => number) | undefined;

  /** Counts recorded requests. Undefined without a database: the metrics are then omitted. */
  records: (() => { readonly stored: number; readonly lost: number; readonly queued: number }) | undefined;

  /** Counters with charges that are not written yet. Undefined without a database: the metric is then omitted. */
  chargesWaiting: (() => number) | undefined;

  /** Counts workers. Undefined without workers: the metrics are then omitted. */
  workers: (() => { readonly ready: number; readonly restarts: number }) | undefined;

  /**
   * The certificates of the active configuration. Undefined until the gateway is created; so is `sharedStoreAvailable`. With workers, the
   * first process has neither: its own are not used.
   */
  certificates: (() => readonly CertificateState[]) | undefined;

  /** Whether the shared store is available. Undefined without one: the metric is then omitted. */
  sharedStoreAvailable: (() => boolean) | undefined;

  configure(policy: MetricsPolicy): void {
    this.#policy = policy;
  }

  /** Limits and current use: series per metric family, and distinct values per label taken from requests. */
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

  /** Every metric that may be printed, in the order in which they are. */
  describe(): MetricDescription[] {
    return [
      ...this.#sampledMetrics().map(({ name, help, type = 'gauge' as const, labels = [] }) => ({
        name: this.#prefix + name,
        help,
        type,
        labels,
      })),
      ...Object.values(this.families).map(({ description }) => description),
    ];
  }

  /** Renders all metrics as OpenMetrics text. Metrics removed by `config.metrics.remove` are omitted. */
  async render(): Promise<string> {
    const { sampled, counted } = await this.#metrics();
    return renderMetrics([...sampled.map(printed), ...counted.map((family) => family.printed)]);
  }

  /** Whether histograms are native: only then are metrics also exposed in the protobuf format. */
  get hasProtobuf(): boolean {
    return this.#form !== 'classic';
  }

  /** Encodes all metrics that `render` renders in the Prometheus protobuf format; undefined without `hasProtobuf`. */
  async encode(): Promise<Buffer | undefined> {
    return this.hasProtobuf ? encodeMetrics(await this.#sources()) : undefined;
  }

  /** The values of all metrics that are printed. */
  async read(): Promise<MetricValues[]> {
    const all: MetricValues[] = [];
    for (const source of await this.#sources()) all.push(...[(await source()) ?? []].flat());
    return all;
  }

  async #sources(): Promise<MetricSource[]> {
    const { sampled, counted } = await this.#metrics();
    return [...sampled.map((metric) => () => metric), ...counted.map((family) => () => family.read())];
  }

  /** Metrics that are printed: sampled now, and counted. */
  async #metrics() {
    this.#registry ??= createRegistry(this.#prefix, this.#sampledMetrics());
    const isPrinted = ({ name }: { readonly name: string }): boolean =>
      this.#policy?.isRemoved(name) !== true;
    const sampled = (await this.#registry.getMetricsAsJSON()).filter(isPrinted);
    return { sampled, counted: Object.values(this.families).filter(isPrinted) };
  }

  #sampledMetrics(): readonly SampledMetric[] {
    return [
      {
        name: 'config_synchronized',
        help: '1 if the last configuration reload succeeded, 0 if it failed',
        ofSeveral: 'first',
        read: () => (this.isSynchronized ? 1 : 0),
      },
      {
        name: 'trace_spans_lost',
        help: 'Spans that were not exported to the collector',
        type: 'counter',
        read: () => this.spansLost?.(),
      },
      {
        name: 'access_log_lines_lost',
        help: 'Access-log lines that were not written because stdout is not read fast enough or cannot be written',
        type: 'counter',
        read: () => this.accessLogLinesLost?.(),
      },
      {
        name: 'internal_errors',
        help: 'Errors of the gateway itself that ended one request, message or log line',
        type: 'counter',
        read: () => this.internalErrors?.(),
      },
      {
        name: 'tls_certificate_expiry_timestamp_seconds',
        help: 'When the certificate in use expires, as Unix time',
        labels: ['file'],
        ofSeveral: 'min',
        read: () => this.#ofCertificates(({ expires }) => expires / 1000),
      },
      {
        name: 'tls_certificate_synchronized',
        help: '1 if the last attempt to read the certificate succeeded, 0 if the previous one stays in use',
        labels: ['file'],
        ofSeveral: 'min',
        read: () => this.#ofCertificates(({ isCurrent }) => Number(isCurrent)),
      },
      {
        name: 'shared_store_available',
        help: '1 if the shared store is available, 0 if it is not',
        ofSeveral: 'min',
        read: () => this.sharedStoreAvailable && Number(this.sharedStoreAvailable()),
      },
      {
        name: 'request_records',
        help: 'Requests that were recorded in the database',
        type: 'counter',
        read: () => this.records?.().stored,
      },
      {
        name: 'request_records_lost',
        help: 'Requests that were not recorded because the database fails or is too slow',
        type: 'counter',
        read: () => this.records?.().lost,
      },
      {
        name: 'request_records_queued',
        help: 'Requests that wait to be recorded in the database',
        read: () => this.records?.().queued,
      },
      {
        name: 'budget_charges_waiting',
        help: 'Counters of budgets with charges that are not in the database yet: the end of the process loses them while the database fails',
        read: () => this.chargesWaiting?.(),
      },
      ...this.#process,
      {
        name: 'workers',
        help: 'Workers that take connections',
        read: () => this.workers?.().ready,
      },
      {
        name: 'worker_restarts',
        help: 'Workers that have ended unexpectedly and were replaced',
        type: 'counter',
        read: () => this.workers?.().restarts,
      },
      {
        name: 'build_info',
        help: 'Version of the program',
        labels: ['tag'],
        ofSeveral: 'first',
        read: () => [{ labels: { tag: VERSION }, value: 1 }],
      },
    ];
  }

  /** One value for each file: the smallest, if several listeners have it. */
  #ofCertificates(value: (state: CertificateState) => number): Sample[] {
    const byFile = Map.groupBy(this.certificates?.() ?? [], ({ file }) => file);
    return [...byFile].map(([file, states]) => ({
      labels: { file },
      value: Math.min(...states.map(value)),
    }));
  }

  /** The metrics of one port. */
  forBind(names: BindNames): BindMetrics {
    return new BindMetrics(this, names);
  }

  /** Measures connections and calls to one upstream. Durations are passed in ms. */
  calls(kind: CallKind, subtype: string): CallMeter {
    const { callDuration, connectDuration, unsolicited } = this.families;
    let calls: Histogram | undefined;
    return {
      kind,
      subtype,
      connected: (transport, duration) => connectDuration.with([transport]).observe(duration / 1000),
      answered: (duration) => {
        calls ??= callDuration.with([kind, subtype]);
        calls.observe(duration / 1000);
      },
      unsolicited: () => unsolicited.with([kind, subtype]).inc(),
    };
  }

  /** Values of the labels added by `config.metrics`, in configuration order; `unknown` where there is no text. */
  custom(ctx: RequestContext): readonly string[] {
    if (this.#custom.length === 0) return NONE;
    const values = this.#policy?.values(ctx) ?? [];
    return this.#custom.map((known, index) => known.of(values[index], true));
  }

  recordMcp(mcp: McpFields, route: RouteSeries): void {
    if (mcp.method === undefined) return;
    const succeeded = mcpProblem(mcp) === undefined;
    const resource = this.#mcpResources.of(mcp.tool ?? mcp.prompt ?? mcp.resourceUri, succeeded);
    const method = this.#mcpMethods.of(mcp.method, succeeded);
    route.mcp([method, mcp.resourceType ?? UNKNOWN, mcp.target ?? UNKNOWN, resource]).inc();
  }

  recordLlm(call: LlmCall, seconds: number, succeeded: boolean, route: RouteSeries): void {
    const { operation, provider, responseModel } = call;
    const requested = this.#requestedModel(call, succeeded);
    const responding = this.#responseModels.of(responseModel, succeeded);
    route.llm([operation, provider, requested, responding]).record(call, seconds);
  }

  /** Names of the configuration are bounded: they are labels whether or not a call has succeeded. */
  #requestedModel({ requestModel, configuredModel }: LlmCall, succeeded: boolean): string {
    if (requestModel === configuredModel) return requestModel;
    const label = this.#models.of(requestModel, succeeded);
    return label === UNKNOWN ? (configuredModel ?? UNKNOWN) : label;
  }
}

const NONE: readonly string[] = [];

/** Metrics of one port. Series are cached by route, then by the labels that vary between requests. */
export class BindMetrics {
  readonly #metrics: Metrics;
  readonly #names: BindNames;
  /** Keyed by route and the values of the added labels. */
  readonly #routes = new Map<string, RouteSeries>();
  readonly #received: Counter;
  readonly #sent: Counter;
  readonly #connections: Counter;

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
    this.#connections.inc();
  }

  disconnected(received: number, sent: number): void {
    this.#received.inc(received);
    this.#sent.inc(sent);
  }

  /**
   * Records a finished request. `status` is 0 if no response was sent; `bodyBytes` is the size of the response body.
   */
  ended(ctx: RequestContext, status: number, bodyBytes: number): void {
    const seconds = ctx.timings.duration / 1000;
    const route = this.#route(ctx.route ?? UNKNOWN, this.#metrics.custom(ctx));
    const http = route.http({
      backend: ctx.backend ?? UNKNOWN,
      protocol: ctx.protocol,
      method: ctx.requestedMethod,
      status,
      reason: ctx.reason ?? UNKNOWN,
    });
    http.requests.inc();
    http.bytes.inc(bodyBytes);
    http.duration.observe(seconds);
    if (ctx.timings.called !== undefined)
      http.requestProcessing.observe((ctx.timings.called - ctx.timings.started) / 1000);
    if (ctx.timings.answered !== undefined && ctx.timings.replied !== undefined)
      http.responseProcessing.observe((ctx.timings.replied - ctx.timings.answered) / 1000);
    const mcp = mcpFields.get(ctx);
    if (mcp !== undefined) this.#metrics.recordMcp(mcp, route);
    const llm = llmCall.get(ctx);
    if (llm !== undefined) this.#metrics.recordLlm(llm, seconds, status >= 200 && status < 300, route);
  }

  #route(route: string, custom: readonly string[]): RouteSeries {
    const key = custom.length === 0 ? route : [route, ...custom].join('\u0000');
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    const { bind, gateway, listener } = this.#names;
    const made = new RouteSeries(this.#metrics.families, [bind, gateway, listener, route, ...custom]);
    // Beyond the cache limit, series are looked up each time. The families themselves are bounded.
    if (this.#routes.size < LIMITS.metricSeries) this.#routes.set(key, made);
    return made;
  }
}
