import {
  type Context,
  createContextKey,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../../../core/log.ts';
import { VERSION } from '../../../core/version.ts';
import type { RequestSpan } from '../../kernel/observer.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { ListenerSelection } from '../../kernel/routing/listener-selection.ts';
import type { Field } from '../request-fields.ts';
import {
  addedAttribute,
  attributesNamed,
  failureOf,
  requestAttributes,
  requestName,
  TOKEN_ATTRIBUTES,
} from './attributes.ts';
import { BoundedExport, loadExporter } from './exporter.ts';
import { RecordedRequest } from './recorded-request.ts';
import { resourceOf } from './resource.ts';
import type { SamplingRule, TracingSettings } from './settings.ts';

const NONE = {};
const NO_LINKS: Link[] = [];

/** Loads the exporter and starts tracing. Rejects if the exporter package of the protocol is not installed. */
export async function openTracing(settings: TracingSettings, log: Log): Promise<Tracing> {
  return new Tracing(settings, await loadExporter(settings.protocol, settings.url, settings.headers), log);
}

/** Tracing of a running gateway: samples requests, records their spans and exports them. */
export class Tracing {
  readonly #settings: TracingSettings;
  readonly #export: BoundedExport;
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #sampler: Sampler;
  readonly #ids = new PreparedTraceIds();

  constructor(settings: TracingSettings, exporter: SpanExporter, log: Log) {
    this.#settings = settings;
    this.#export = new BoundedExport(exporter, log, URL.parse(settings.url)?.host);
    this.#sampler = createSampler(settings.random, settings.client);
    this.#provider = new TracerProvider({
      resource: resourceOf(settings),
      // `#begin` has applied the sampler already: only sampled requests get a span.
      sampler: new AlwaysOnSampler(),
      idGenerator: this.#ids,
      // The configuration determines the number of attributes.
      spanLimits: { attributeCountLimit: Number.POSITIVE_INFINITY },
      spanProcessors: [this.#export],
    });
    this.#tracer = this.#provider.getTracer('agctl', VERSION);
  }

  /** Spans lost since the start. */
  get dropped(): number {
    return this.#export.dropped;
  }

  /** Spans waiting for export. At most `LIMITS.spanQueue`. */
  get queued(): number {
    return this.#export.queued;
  }

  /** Wraps the selection of a listener to sample each validated request and start its span. */
  around(listenerOf: ListenerSelection): ListenerSelection {
    return (ctx) => {
      ctx.span = this.#begin(ctx);
      return listenerOf(ctx);
    };
  }

  #begin(ctx: RequestContext): RecordedRequest | undefined {
    const parent = ctx.headers.has('traceparent')
      ? parseTraceparent(ctx.headers.all('traceparent'))
      : undefined;
    const context = this.#sampled(ctx, parent);
    ctx.observer?.emit({
      type: 'traceSampling',
      decision: `${context === undefined ? 'not sampled' : 'sample'} (${parent === undefined ? 'random' : 'client'})`,
    });
    return context === undefined ? undefined : new RecordedRequest(this.#tracer, context, ctx);
  }

  /**
   * The context for the request's span; undefined if the request is not sampled. Decided before a span is created: the
   * SDK's own handling of unsampled spans takes four times as long.
   */
  #sampled(ctx: RequestContext, parent: SpanContext | undefined): Context | undefined {
    const rule = parent === undefined ? this.#settings.random : this.#settings.client;
    if (rule === false) return undefined;
    let context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
    if (typeof rule === 'function') context = context.setValue(REQUEST, ctx);
    const traceId = parent?.traceId ?? this.#ids.prepare();
    const { decision } = this.#sampler.shouldSample(context, traceId, '', SpanKind.SERVER, NONE, NO_LINKS);
    return decision === SamplingDecision.RECORD_AND_SAMPLED ? context : undefined;
  }

  /** Ends the spans of a finished request. `fields`: its built-in access-log fields. */
  ended(ctx: RequestContext, span: RequestSpan, fields: readonly Field[]): void {
    if (!this.#settings.isExported(ctx) || !(span instanceof RecordedRequest)) return;
    const attributes = requestAttributes(ctx, fields, span.route);
    // Backends that add up the spans of a trace must not count tokens twice.
    if (span.hasModelCall) for (const name of TOKEN_ATTRIBUTES) delete attributes[name];
    for (const name of this.#settings.removed)
      for (const attribute of attributesNamed(name)) delete attributes[attribute];
    for (const [name, value] of this.#settings.added(ctx))
      if (!this.#settings.removed.has(name)) attributes[name] = addedAttribute(value);
    const name = attributes['span.name'] ?? requestName(ctx, attributes);
    span.end(String(name), attributes, failureOf(ctx));
  }

  /** Exports queued spans, for at most `LIMITS.spanFlush` ms. */
  close(): Promise<void> {
    return this.#provider.shutdown();
  }
}

/** Generates trace IDs before the span exists, because ratio sampling depends on them. */
class PreparedTraceIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #prepared = '';

  prepare(): string {
    this.#prepared = this.#random.generateTraceId();
    return this.#prepared;
  }

  generateTraceId(): string {
    return this.#prepared;
  }

  generateSpanId(): string {
    return this.#random.generateSpanId();
  }
}

/**
 * Parses `traceparent` (W3C Trace Context §3.2). Undefined unless there is exactly one value and it is valid. The SDK's
 * own propagator would accept the first of several.
 */
export function parseTraceparent(values: readonly string[]): SpanContext | undefined {
  const [value, second] = values;
  const parsed = value === undefined || second !== undefined ? null : parseTraceParent(value.trim());
  return parsed === null ? undefined : { ...parsed, isRemote: true };
}

/** Key of the request context in the OpenTelemetry context passed to samplers. */
const REQUEST = createContextKey('agctl request');

/**
 * Samples requests without a trace by `random` and those that continue a client's trace by `client`, whether or not the
 * client sampled its own part.
 */
export function createSampler(random: SamplingRule, client: SamplingRule): Sampler {
  const remote = samplerOf(client);
  return new ParentBasedSampler({
    root: samplerOf(random),
    remoteParentSampled: remote,
    remoteParentNotSampled: remote,
  });
}

function samplerOf(rule: SamplingRule): Sampler {
  if (typeof rule === 'function') return new ExpressionSampler(rule);
  if (typeof rule === 'number') return new TraceIdRatioBasedSampler(rule);
  return rule ? new AlwaysOnSampler() : new AlwaysOffSampler();
}

/** Samples by a CEL expression that returns a boolean or a ratio. Any other result does not sample. */
class ExpressionSampler implements Sampler {
  readonly #rule: (ctx: RequestContext) => unknown;

  constructor(rule: (ctx: RequestContext) => unknown) {
    this.#rule = rule;
  }

  shouldSample(context: Context, traceId: string): SamplingResult {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `#sampled` has set it
    const value = this.#rule(context.getValue(REQUEST) as RequestContext);
    if (typeof value === 'number') return new TraceIdRatioBasedSampler(value).shouldSample(context, traceId);
    return { decision: value === true ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
  }

  toString(): string {
    return 'Expression';
  }
}
