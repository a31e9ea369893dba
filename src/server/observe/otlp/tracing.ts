import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { redactTarget } from '../../../core/credentials.ts';
import type { Log } from '../../../core/log.ts';
import { mcpProblem } from '../../../core/outcome.ts';
import { byForm } from '../../../core/redact.ts';
import { VERSION } from '../../../core/version.ts';
import type { RequestContext, Route } from '../../kernel/request-context.ts';
import type { Router } from '../../kernel/router.ts';
import { llmCall } from '../../llm/call.ts';
import { mcpFields } from '../../mcp/request-fields.ts';
import type { Field } from '../request-fields.ts';
import { parseTraceparent, type TraceContext } from './context.ts';
import { loadTransport, SpanQueue } from './exporter.ts';
import type { TracingSettings } from './settings.ts';
import { type AttributeValue, type CallSpan, RequestSpan, serverAttributes } from './span.ts';

const KIND = { server: 1, client: 2 } as const;
const STATUS = { unset: 0, error: 2 } as const;

/** Traces of a running gateway: which requests are recorded, and what leaves for the collector. */
export class Tracing {
  readonly #settings: TracingSettings;
  readonly #queue: SpanQueue;
  readonly #resource: Promise<ReadableSpan['resource']>;
  readonly #scope = { name: 'agctl', version: VERSION };

  constructor(settings: TracingSettings, log: Log) {
    this.#settings = settings;
    this.#queue = new SpanQueue(loadTransport(settings.protocol, settings.url, settings.headers), log);
    this.#resource = import('@opentelemetry/resources').then(({ resourceFromAttributes }) =>
      resourceFromAttributes({
        'service.name': settings.serviceName,
        'service.version': VERSION,
        ...settings.resources,
      }),
    );
    this.#resource.catch(() => undefined);
  }

  get dropped(): number {
    return this.#queue.dropped;
  }

  /** Spans that wait for the collector, at most `LIMITS.spanQueue`. */
  get queued(): number {
    return this.#queue.queued;
  }

  /** A router that decides, of each admitted request, whether it is recorded. */
  around(router: Router<Route>): Router<Route> {
    return (ctx) => {
      const exchange = ctx as RequestContext;
      const span = this.#begin(exchange);
      exchange.span = span;
      const route = router(ctx);
      if (span !== undefined) span.route = route;
      return route;
    };
  }

  #begin(ctx: RequestContext): RequestSpan | undefined {
    const parent = parseTraceparent(ctx.headers.all('traceparent'));
    const { samplesNew, samplesClient } = this.#settings;
    const isSampled = parent === undefined ? samplesNew(ctx) : samplesClient(ctx);
    ctx.observer?.emit({
      type: 'traceSampling',
      decision: `${isSampled ? 'sample' : 'not sampled'} (${parent === undefined ? 'random' : 'client'})`,
    });
    return isSampled ? new RequestSpan(parent) : undefined;
  }

  /** The request has ended, with these fields of the access log. */
  ended(ctx: RequestContext, span: RequestSpan, fields: readonly Field[]): void {
    if (!this.#settings.isWanted(ctx)) return;
    const now = performance.now();
    const attributes = this.#attributes(ctx, fields);
    const name = attributes['span.name'] ?? spanName(ctx, span);
    const server = { context: span, parent: span.parent, kind: KIND.server, name: String(name), attributes };
    void this.#resource.then((resource) => {
      const shared = { resource, scope: this.#scope };
      this.#queue.add([
        readable({ ...server, error: problemOf(ctx), started: ctx.timings.started, ended: now }, shared),
        ...span.calls.map((call) => readable(clientSpan(call, span, now), shared)),
      ]);
    });
  }

  #attributes(ctx: RequestContext, fields: readonly Field[]): Record<string, AttributeValue> {
    const attributes: Record<string, AttributeValue> = {};
    for (const [name, value] of fields) {
      if (value !== undefined && value !== null && name !== 'error')
        attributes[name] = measured(name, value) ?? attributeOf(value);
    }
    attributes['url.scheme'] = 'http';
    attributes['network.protocol.version'] = ctx.request.httpVersion;
    Object.assign(attributes, serverAttributes(ctx.host));
    for (const [part, cost] of Object.entries(llmCall.get(ctx)?.cost?.parts ?? {}))
      attributes[`gw.ai.usage.cost.${snakeCase(part)}`] = cost;
    for (const [name, value] of this.#settings.added(ctx)) {
      const attribute = attributeOf(value);
      attributes[name] = typeof attribute === 'string' ? redactTarget(attribute) : attribute;
    }
    for (const name of this.#settings.removed) delete attributes[name];
    return attributes;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }
}

/** What went wrong, for the span's status: a server's span is an error from 500 on (OpenTelemetry's conventions for HTTP). */
function problemOf(ctx: RequestContext): string | undefined {
  const known = ctx.error ?? mcpProblem(mcpFields.get(ctx));
  const status = ctx.reply?.status ?? 0;
  return known ?? (status >= 500 ? `HTTP ${status}` : undefined);
}

/** Quantities that a line prints as text, as numbers: USD, and times in ms. Undefined for any other field. */
function measured(name: string, value: unknown): number | undefined {
  if (typeof value !== 'string') return undefined;
  if (name === 'gw.ai.usage.cost.total') return Number(value);
  const [, milliseconds] = TIMES.has(name) ? (/^(\d+)ms$/.exec(value) ?? []) : [];
  return milliseconds === undefined ? undefined : Number(milliseconds);
}

const TIMES = new Set(['duration', 'gw.ai.stream.held']);

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function attributeOf(value: unknown): AttributeValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return JSON.stringify(value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value) ?? '';
}

/** Method of MCP, or of HTTP with the path that the route names: paths of clients are too many for names. */
function spanName(ctx: RequestContext, { route }: RequestSpan): string {
  const { method, path } = ctx;
  const mcp = mcpFields.get(ctx);
  if (mcp?.method !== undefined) return mcp.method;
  for (const { path: wanted } of route?.matches ?? []) {
    if (wanted.kind === 'exact' && wanted.value === path) return `${method} ${path}`;
    if (wanted.kind === 'prefix' && path.startsWith(wanted.value))
      return `${method} ${wanted.value.replace(/\/$/, '')}/*`;
  }
  return 'unknown';
}

interface Finished {
  readonly context: TraceContext;
  readonly parent: TraceContext | undefined;
  readonly kind: number;
  readonly name: string;
  readonly attributes: Record<string, AttributeValue>;
  readonly error: string | undefined;
  /** Of `performance.now()`. */
  readonly started: number;
  readonly ended: number;
}

function clientSpan(call: CallSpan, request: RequestSpan, now: number): Finished {
  const { name, attributes, error, startedClock } = call;
  return {
    context: call,
    parent: request,
    kind: KIND.client,
    name,
    attributes,
    error: call.endedClock === undefined ? 'not answered' : error,
    started: startedClock,
    ended: call.endedClock ?? now,
  };
}

const SAMPLED = 1;
const contextOf = ({ traceId, spanId }: TraceContext) => ({ traceId, spanId, traceFlags: SAMPLED });

/** What the library's exporters read of a span. */
function readable(
  { context, parent, kind, name, attributes, error, started, ended }: Finished,
  { resource, scope }: { resource: ReadableSpan['resource']; scope: { name: string; version: string } },
): ReadableSpan {
  return {
    name,
    kind,
    spanContext: () => contextOf(context),
    ...(parent === undefined ? {} : { parentSpanContext: contextOf(parent) }),
    startTime: timeOf(performance.timeOrigin + started),
    endTime: timeOf(performance.timeOrigin + ended),
    duration: timeOf(ended - started),
    status:
      error === undefined ? { code: STATUS.unset } : { code: STATUS.error, message: byForm.text(error) },
    attributes,
    links: [],
    events: [],
    ended: true,
    resource,
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

/** Milliseconds as seconds and nanoseconds. */
function timeOf(milliseconds: number): [number, number] {
  const seconds = Math.floor(milliseconds / 1000);
  return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
}
