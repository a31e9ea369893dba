import { LIMITS } from '../../core/limits.ts';
import type { TraceEvent } from '../../core/trace/event.ts';
import {
  CelSyntaxError,
  compileExpression,
  HeadersView,
  tryEvaluate,
} from '../expressions/cel/expression.ts';
import type { Expression, VariableResolver } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { traceFilterScope } from './scopes.ts';
import { TraceObserver } from './trace/trace-observer.ts';
import type { TraceSink } from './trace/tracer.ts';

/** Whether a subscriber wants to trace a request. `raw` resolves the variables of the raw request. */
export type TraceFilter = (raw: VariableResolver) => boolean;

export interface SubscribeOptions {
  /** Default: any request. */
  readonly filter?: TraceFilter | undefined;
  /** The text that the filter was compiled from. */
  readonly expression?: string | undefined;
  /**
   * Whether to trace requests until cancelled, up to `LIMITS.traceFollowed` at once and `LIMITS.traceFollowedPerSecond`; the trace of
   * the next one says how many were left out. Their events carry `requestId`. Default: one request.
   */
  readonly follow?: boolean;
  /** Number of requests to trace, sequential or concurrent. Events carry `requestId` if it is more than 1. */
  readonly count?: number | undefined;
  /** Receives every event, in order, when it happens. Must not throw or block. */
  sink(event: TraceEvent): void;
  /** Called after the last event of a request, if several requests are traced. */
  requestEnded?(requestId: string): void;
  /** Called after the last event of the last request. Not called after `cancel`. */
  ended(): void;
}

export interface TraceSubscription {
  /** Resolves when further requests are traced; absent if that is immediately. */
  readonly ready?: Promise<void>;
  /** Stops receiving events. Requests in flight continue untraced. */
  cancel(): void;
}

/** Subscribers to traces of data-plane requests. Without any, a request costs one check of `active`. */
export interface TraceSubscribers {
  /** Whether any subscriber accepts further requests. */
  readonly active: boolean;
  /** Subscribers that accept further requests. */
  readonly count: number;
  /** All subscribers, including those whose last request is still in flight. */
  readonly size: number;
  /** Registers a subscriber immediately. Undefined if `LIMITS.traceWatchers` are registered already. */
  subscribe(options: SubscribeOptions): TraceSubscription | undefined;
  /** Assigns a request, before validation, to the first subscriber that accepts it. `also` receives the same events. */
  claim(ctx: RequestContext, also?: TraceSink): TraceObserver | undefined;
}

export function createTraceSubscribers(): TraceSubscribers {
  return new SubscriberList();
}

class SubscriberList implements TraceSubscribers {
  active = false;
  /** In the order of registration. */
  readonly #accepting = new Set<Subscriber>();
  /** Subscribers whose last request is in flight. */
  readonly #finishing = new Set<Subscriber>();
  readonly #pace = new Pace();
  #requests = 0;

  get count(): number {
    return this.#accepting.size;
  }

  get size(): number {
    return this.#accepting.size + this.#finishing.size;
  }

  subscribe(options: SubscribeOptions): TraceSubscription | undefined {
    if (this.size >= LIMITS.traceWatchers) return undefined;
    const subscriber = new Subscriber(options, (self) => this.#remove(self));
    this.#accepting.add(subscriber);
    this.active = true;
    return subscriber;
  }

  claim(ctx: RequestContext, also?: TraceSink): TraceObserver | undefined {
    const raw = rawResolver(ctx);
    for (const subscriber of this.#accepting) {
      if (!subscriber.accepts(raw, this.#pace)) continue;
      const tracer = subscriber.trace(ctx, subscriber.isSingle ? undefined : String(++this.#requests), also);
      if (!subscriber.isComplete) return tracer;
      this.#accepting.delete(subscriber);
      this.#finishing.add(subscriber);
      this.active = this.#accepting.size > 0;
      return tracer;
    }
    return undefined;
  }

  #remove(subscriber: Subscriber): void {
    this.#accepting.delete(subscriber);
    this.#finishing.delete(subscriber);
    this.active = this.#accepting.size > 0;
  }
}

/**
 * How many requests all subscribers together may follow: a second's number at once, and then one in a while, so that they do not stop
 * the event loop together.
 */
class Pace {
  #left: number = LIMITS.traceFollowedPerSecond;
  #at = performance.now();

  /** Takes one. False if none is left. */
  take(): boolean {
    const now = performance.now();
    const added = ((now - this.#at) / 1_000) * LIMITS.traceFollowedPerSecond;
    this.#left = Math.min(LIMITS.traceFollowedPerSecond, this.#left + added);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }
}

class Subscriber implements TraceSubscription {
  readonly #options: SubscribeOptions;
  readonly #remove: (self: Subscriber) => void;
  /** Traces one request only, whose events need no request id. */
  readonly isSingle: boolean;
  /** Requests that it still accepts. */
  #remaining: number;
  /** Requests in flight. */
  #inFlight = 0;
  /** Requests that it would have traced since the last one that it has. */
  #skipped = 0;
  #isOpen = true;

  constructor(options: SubscribeOptions, remove: (self: Subscriber) => void) {
    this.#options = options;
    this.#remove = remove;
    this.#remaining = options.count ?? (options.follow === true ? Number.POSITIVE_INFINITY : 1);
    this.isSingle = this.#remaining === 1;
  }

  /** Whether it accepts no further request. */
  get isComplete(): boolean {
    return this.#remaining === 0;
  }

  accepts(raw: VariableResolver, pace: Pace): boolean {
    if (this.#options.filter?.(raw) === false) return false;
    const isFull = this.#inFlight >= LIMITS.traceFollowed;
    if (!isFull && (this.#remaining !== Number.POSITIVE_INFINITY || pace.take())) return true;
    this.#skipped += 1;
    return false;
  }

  trace(ctx: RequestContext, requestId: string | undefined, also: TraceSink | undefined): TraceObserver {
    this.#inFlight += 1;
    this.#remaining -= 1;
    this.#noteSkipped(requestId);
    return new TraceObserver(ctx, {
      ...(requestId === undefined ? {} : { requestId }),
      event: (event) => {
        if (this.#isOpen) this.#options.sink(event);
        also?.event(event);
      },
      ended: () => {
        this.#inFlight -= 1;
        if (!this.#isOpen) return;
        if (requestId !== undefined) this.#options.requestEnded?.(requestId);
        if (!this.isComplete || this.#inFlight > 0) return;
        this.cancel();
        this.#options.ended();
      },
    });
  }

  #noteSkipped(requestId: string | undefined): void {
    if (this.#skipped === 0) return;
    const what = `${this.#skipped} earlier ${this.#skipped === 1 ? 'request was' : 'requests were'} not traced`;
    this.#skipped = 0;
    const message = `${what}: at most ${LIMITS.traceFollowedPerSecond} a second and ${LIMITS.traceFollowed} at once are`;
    this.#options.sink({
      eventStart: null,
      eventEnd: 0,
      severity: 'warn',
      ...(requestId === undefined ? {} : { requestId }),
      message: { type: 'message', message },
    });
  }

  cancel(): void {
    this.#isOpen = false;
    this.#remove(this);
  }
}

/** What is known when a request is chosen, before it is read or routed. */
const FILTER_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  request: ['method', 'path', 'pathAndQuery', 'uri', 'version', 'scheme', 'headers', 'host'],
  source: ['address', 'port'],
};

/**
 * Compiles the `expression` of a trace. It reads `FILTER_MEMBERS`. An expression that fails at run time counts as false.
 * `problem` is a message for the caller, set if the expression does not compile or can never be true.
 */
export function compileTraceFilter(source: string): { filter: TraceFilter } | { problem: string } {
  try {
    const expression = compileExpression(source, traceFilterScope.roots);
    const problem = unmatchable(expression);
    if (problem !== undefined) return { problem };
    return {
      filter: (raw) => tryEvaluate(expression, raw) === true,
    };
  } catch (error) {
    if (!(error instanceof CelSyntaxError)) throw error;
    return { problem: error.help === undefined ? error.message : `${error.message} (${error.help})` };
  }
}

/** Why an expression is true for no request. */
function unmatchable({ nonBooleanType, paths }: Expression): string | undefined {
  if (nonBooleanType !== undefined) return `it returns ${nonBooleanType}, never a boolean`;
  for (const path of paths.keys()) {
    const [root = '', member] = path.split('.');
    const members = FILTER_MEMBERS[root];
    if (member !== undefined && members?.includes(member) === false)
      return `\`${root}.${member}\` is not known when a request is chosen, before its body is read (use ${members.map((name) => `${root}.${name}`).join(', ')})`;
  }
  return undefined;
}

/** The variables of a filter, created once per request for all subscribers. */
function rawResolver(ctx: RequestContext): VariableResolver {
  let request: object | undefined;
  let source: object | undefined;
  return (root) => {
    if (root === 'request') {
      request ??= rawRequest(ctx);
      return request;
    }
    source ??= { address: ctx.client.address, port: ctx.client.port };
    return source;
  };
}

function rawRequest(ctx: RequestContext): object {
  const url = ctx.request.url ?? '';
  const [path = ''] = url.split(/[?#]/, 1);
  const host = ctx.request.headers.host?.toLowerCase();
  return {
    method: ctx.method,
    path,
    pathAndQuery: url,
    uri: url,
    version: `HTTP/${ctx.request.httpVersion}`,
    scheme: 'http',
    headers: new HeadersView(ctx.headers.raw),
    ...(host === undefined ? {} : { host }),
  };
}
