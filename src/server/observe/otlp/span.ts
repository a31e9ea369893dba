import { withoutTokens } from '../../../core/credentials.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { HttpCall } from '../../kernel/observer.ts';
import type { Route } from '../../kernel/request-context.ts';
import { newSpanId, newTraceId, type TraceContext, traceparent } from './context.ts';

export type AttributeValue = string | number | boolean;

/** A call of the gateway on behalf of a request. */
export class CallSpan implements TraceContext {
  readonly traceId: string;
  readonly spanId = newSpanId();
  readonly name: string;
  readonly attributes: Record<string, AttributeValue>;
  readonly startedClock = performance.now();
  endedClock: number | undefined;
  error: string | undefined;

  constructor(traceId: string, name: string, attributes: Record<string, AttributeValue>) {
    this.traceId = traceId;
    this.name = name;
    this.attributes = attributes;
  }

  get traceparent(): string {
    return traceparent(this);
  }

  /** Its answer came; `status` is that of HTTP. */
  end(status?: number): void {
    if (this.endedClock !== undefined) return;
    this.endedClock = performance.now();
    if (status === undefined) return;
    this.attributes['http.status'] = status;
    if (status >= 500) this.error = `HTTP ${status}`;
  }

  fail(why: string): void {
    if (this.endedClock !== undefined) return;
    this.error = why;
    this.end();
  }
}

/** `server.address` and `server.port` of `host:port`, or of the path of a socket (OpenTelemetry's conventions). */
export function serverAttributes(address: string): Record<string, AttributeValue> {
  if (address.startsWith('unix:')) return { 'server.address': address.slice('unix:'.length) };
  const [, host = address, port] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  if (host === '') return {};
  const name = host.replace(/^\[|\]$/g, '');
  return { 'server.address': name, ...(port === undefined ? {} : { 'server.port': Number(port) }) };
}

/** A sampled request: its own span and those of the calls made for it. */
export class RequestSpan implements TraceContext {
  readonly traceId: string;
  readonly spanId = newSpanId();
  readonly parent: TraceContext | undefined;
  readonly calls: CallSpan[] = [];
  /** The route that was found. */
  route: Route | undefined;

  constructor(parent: TraceContext | undefined) {
    this.parent = parent;
    this.traceId = parent?.traceId ?? newTraceId();
  }

  /** Begins the span of a call; undefined over the number of a request. */
  call(name: string, attributes: Record<string, AttributeValue>): CallSpan | undefined {
    if (this.calls.length >= LIMITS.spansPerRequest) return undefined;
    const span = new CallSpan(this.traceId, name, attributes);
    this.calls.push(span);
    return span;
  }

  http({ kind, subtype, method, address, path }: HttpCall): CallSpan | undefined {
    return this.call(kind === 'Policy' ? subtype : `${method} ${address}`, {
      'agentgateway.outbound.kind': kind,
      'agentgateway.outbound.subtype': subtype,
      'http.method': method,
      'http.host': address,
      ...serverAttributes(address),
      // A query may hold credentials.
      'http.path': withoutTokens(path.split('?')[0] as string),
    });
  }
}
