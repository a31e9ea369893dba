import {
  type Context,
  type Link,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  type IdGenerator,
  RandomIdGenerator,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../../../core/log.ts';
import { VERSION } from '../../../core/version.ts';
import type { RequestSpan } from '../../kernel/observer.ts';
import type { RequestContext, Route } from '../../kernel/request-context.ts';
import type { Router } from '../../kernel/router.ts';
import type { Field } from '../request-fields.ts';
import { addedAttribute, attributesNamed, failureOf, requestAttributes, requestName } from './attributes.ts';
import { parseTraceparent } from './context.ts';
import { BoundedExport, loadExporter } from './exporter.ts';
import { RecordedRequest } from './recorded-request.ts';
import { createSampler, REQUEST } from './sampler.ts';
import type { TracingSettings } from './settings.ts';

const NONE = {};
const NO_LINKS: Link[] = [];

/** Loads the exporter and begins to record. Rejects when the package of the protocol is not installed. */
export async function openTracing(settings: TracingSettings, log: Log): Promise<Tracing> {
  return new Tracing(settings, await loadExporter(settings.protocol, settings.url, settings.headers), log);
}

/** Traces of a running gateway: which requests are recorded, and what leaves for the collector. */
export class Tracing {
  readonly #settings: TracingSettings;
  readonly #export: BoundedExport;
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #sampler: Sampler;
  readonly #ids = new DrawnTraceIds();

  constructor(settings: TracingSettings, exporter: SpanExporter, log: Log) {
    this.#settings = settings;
    this.#export = new BoundedExport(exporter, log);
    this.#sampler = createSampler(settings.random, settings.client);
    this.#provider = new TracerProvider({
      resource: resourceOf(settings),
      // Of requests: `#begin` has asked the sampler, and made no span for those that are not sampled.
      sampler: new AlwaysOnSampler(),
      idGenerator: this.#ids,
      // As many as the configuration asks for.
      spanLimits: { attributeCountLimit: Number.POSITIVE_INFINITY },
      spanProcessors: [this.#export],
    });
    this.#tracer = this.#provider.getTracer('agctl', VERSION);
  }

  get dropped(): number {
    return this.#export.dropped;
  }

  /** Spans that wait for the collector, at most `LIMITS.spanQueue`. */
  get queued(): number {
    return this.#export.queued;
  }

  /** A router that decides, of each admitted request, whether it is recorded. */
  around(router: Router<Route>): Router<Route> {
    return (ctx) => {
      const request = ctx as RequestContext;
      const span = this.#begin(request);
      request.span = span;
      const route = router(ctx);
      if (span !== undefined) span.route = route;
      return route;
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
   * The context of the request's span; undefined when it is not sampled. Asked before there is a span: what the SDK does
   * for one that is not sampled takes four times as long.
   */
  #sampled(ctx: RequestContext, parent: SpanContext | undefined): Context | undefined {
    const rule = parent === undefined ? this.#settings.random : this.#settings.client;
    if (rule === false) return undefined;
    let context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
    if (typeof rule === 'function') context = context.setValue(REQUEST, ctx);
    const traceId = parent?.traceId ?? this.#ids.draw();
    const { decision } = this.#sampler.shouldSample(context, traceId, '', SpanKind.SERVER, NONE, NO_LINKS);
    return decision === SamplingDecision.RECORD_AND_SAMPLED ? context : undefined;
  }

  /** The request has ended, with these fields of the access log. */
  ended(ctx: RequestContext, span: RequestSpan, fields: readonly Field[]): void {
    if (!this.#settings.isWanted(ctx)) return;
    const recorded = span as RecordedRequest;
    const attributes = requestAttributes(ctx, fields, recorded.route);
    for (const name of this.#settings.removed)
      for (const attribute of attributesNamed(name)) delete attributes[attribute];
    for (const [name, value] of this.#settings.added(ctx))
      if (!this.#settings.removed.has(name)) attributes[name] = addedAttribute(value);
    const name = attributes['span.name'] ?? requestName(ctx, attributes);
    recorded.end(String(name), attributes, failureOf(ctx));
  }

  /** Sends what waits, for at most `LIMITS.spanFlush` ms. */
  close(): Promise<void> {
    return this.#provider.shutdown();
  }
}

/** Trace IDs that are drawn before the span exists: by them it is decided whether it will. */
class DrawnTraceIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #drawn = '';

  draw(): string {
    this.#drawn = this.#random.generateTraceId();
    return this.#drawn;
  }

  generateTraceId(): string {
    return this.#drawn;
  }

  generateSpanId(): string {
    return this.#random.generateSpanId();
  }
}

/** Weakest first: the SDK's own, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME, the configuration. */
function resourceOf({ serviceName, resources }: TracingSettings): Resource {
  return defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'agctl', 'service.version': VERSION }))
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector] }))
    .merge(
      resourceFromAttributes({
        ...(serviceName === undefined ? {} : { 'service.name': serviceName }),
        ...resources,
      }),
    );
}
