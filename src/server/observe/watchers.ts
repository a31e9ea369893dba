import { LIMITS } from '../../core/limits.ts';
import type { TraceEvent } from '../../core/trace/event.ts';
import {
  CelSyntaxError,
  compileExpression,
  HeadersView,
  tryEvaluate,
} from '../expressions/cel/expression.ts';
import type { VariableResolver } from '../kernel/expression.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { traceFilterScope } from './scopes.ts';
import { TraceObserver } from './trace/trace-observer.ts';
import type { TraceOutlet } from './trace/tracer.ts';

/** Whether a request is one that a watcher waits for, by what expressions read of it. */
export type TraceFilter = (raw: VariableResolver) => boolean;

export interface WatchOptions {
  /** Any request without one. */
  readonly filter?: TraceFilter | undefined;
  /** Goes on with further requests; their events carry `requestId`. Without it, one request is all. */
  readonly follow?: boolean;
  /** So many requests, one after another or at once, each with its `requestId`; one that comes then goes to others. */
  readonly count?: number | undefined;
  /** Gets every event, in order, at the moment it happens. Must not throw and must not block. */
  sink(event: TraceEvent): void;
  /** No more events come of that request, where there may be several. */
  requestEnded?(requestId: string): void;
  /** No more events come. Not called after `cancel`. */
  ended(): void;
}

export interface Watch {
  /** Leaves: a request that it has claimed goes on without it. */
  cancel(): void;
}

/** Who watches requests of the data plane. While nobody does, a request costs one look at `active`. */
export interface Watchers {
  readonly active: boolean;
  /** Watchers that wait for a request, or still follow. */
  readonly count: number;
  /** All of them, with those whose last request is under way. */
  readonly size: number;
  /** Registers at once. Undefined when there are `LIMITS.traceWatchers` already. */
  watch(options: WatchOptions): Watch | undefined;
  /** Gives a request, not yet admitted, to the first watcher that wants it. `also` is told the same. */
  claim(ctx: RequestContext, also?: TraceOutlet): TraceObserver | undefined;
}

export function createWatchers(): Watchers {
  return new WatcherList();
}

class WatcherList implements Watchers {
  active = false;
  /** Kept in the order of registration. */
  readonly #waiting = new Set<Watcher>();
  /** Those whose one request is under way. */
  readonly #serving = new Set<Watcher>();
  #requests = 0;

  get count(): number {
    return this.#waiting.size;
  }

  get size(): number {
    return this.#waiting.size + this.#serving.size;
  }

  watch(options: WatchOptions): Watch | undefined {
    if (this.size >= LIMITS.traceWatchers) return undefined;
    const watcher = new Watcher(options, (self) => this.#forget(self));
    this.#waiting.add(watcher);
    this.active = true;
    return watcher;
  }

  claim(ctx: RequestContext, also?: TraceOutlet): TraceObserver | undefined {
    const raw = rawLookup(ctx);
    for (const watcher of this.#waiting) {
      if (!watcher.wants(raw)) continue;
      const tracer = watcher.trace(ctx, watcher.isSingle ? undefined : String(++this.#requests), also);
      if (!watcher.isSatisfied) return tracer;
      this.#waiting.delete(watcher);
      this.#serving.add(watcher);
      this.active = this.#waiting.size > 0;
      return tracer;
    }
    return undefined;
  }

  #forget(watcher: Watcher): void {
    this.#waiting.delete(watcher);
    this.#serving.delete(watcher);
    this.active = this.#waiting.size > 0;
  }
}

class Watcher implements Watch {
  readonly #options: WatchOptions;
  readonly #forget: (self: Watcher) => void;
  /** One request is all, and its events need no id. */
  readonly isSingle: boolean;
  /** Requests that it still wants. */
  #wanted: number;
  /** Requests under way. */
  #requests = 0;
  #isOpen = true;

  constructor(options: WatchOptions, forget: (self: Watcher) => void) {
    this.#options = options;
    this.#forget = forget;
    this.#wanted = options.count ?? (options.follow === true ? Number.POSITIVE_INFINITY : 1);
    this.isSingle = this.#wanted === 1;
  }

  get isSatisfied(): boolean {
    return this.#wanted === 0;
  }

  wants(raw: VariableResolver): boolean {
    if (this.#requests >= LIMITS.traceFollowed) return false;
    return this.#options.filter === undefined || this.#options.filter(raw);
  }

  trace(ctx: RequestContext, requestId: string | undefined, also: TraceOutlet | undefined): TraceObserver {
    this.#requests += 1;
    this.#wanted -= 1;
    return new TraceObserver(ctx, {
      ...(requestId === undefined ? {} : { requestId }),
      event: (event) => {
        if (this.#isOpen) this.#options.sink(event);
        also?.event(event);
      },
      ended: () => {
        this.#requests -= 1;
        if (!this.#isOpen) return;
        if (requestId !== undefined) this.#options.requestEnded?.(requestId);
        if (!this.isSatisfied || this.#requests > 0) return;
        this.cancel();
        this.#options.ended();
      },
    });
  }

  cancel(): void {
    this.#isOpen = false;
    this.#forget(this);
  }
}

/**
 * Compiles the `expression` of a trace. It sees `request.method`, `.path`, `.pathAndQuery`, `.host`, `.headers`,
 * `.version` and `source` as they came; one that fails counts as false. `problem` is for the caller's eyes.
 */
export function compileTraceFilter(source: string): { filter: TraceFilter } | { problem: string } {
  try {
    const expression = compileExpression(source, traceFilterScope.roots);
    return {
      filter: (raw) => tryEvaluate(expression, raw) === true,
    };
  } catch (error) {
    if (!(error instanceof CelSyntaxError)) throw error;
    return { problem: error.help === undefined ? error.message : `${error.message} (${error.help})` };
  }
}

/** The variables of a filter, made once for all that look at a request. */
function rawLookup(ctx: RequestContext): VariableResolver {
  let request: object | undefined;
  let source: object | undefined;
  return (root) => {
    if (root === 'request') {
      request ??= rawRequest(ctx);
      return request;
    }
    source ??= { address: ctx.sourceAddress, port: ctx.sourcePort };
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
