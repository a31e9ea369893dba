import type { LineFormat, LineSink, Log } from '../../core/log.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { operatorRequest } from '../kernel/request/shared-slots.ts';
import { Slot } from '../kernel/slot.ts';
import { settleRecordings } from '../llm/cache/response-cache.ts';
import { finalizeUsage } from '../llm/call/finalize-usage.ts';
import { llmCall } from '../llm/llm-call.ts';
import { AccessLog, recordBody } from '../observe/access-log.ts';
import { RequestDebugLog } from '../observe/debug-log.ts';
import { connectionFields, type Field } from '../observe/request-fields.ts';
import { TraceObserver, traceBegin, traceEnd } from '../observe/trace/trace-observer.ts';
import { createTraceSubscribers } from '../observe/trace-subscribers.ts';
import type { Recorder } from '../record/recorder.ts';
import type { RelayedConnection } from '../transport/listener/entrance.ts';
import { type ActiveConfig, activeConfig } from './port.ts';
import type { Runtime } from './runtime.ts';
import { isForwarded } from './worker-role.ts';

interface RequestRecordsOptions {
  /** Destination and format of access-log lines. */
  readonly sink: LineSink;
  readonly format: LineFormat;
  readonly log: Log;
  /** The record of requests in the database, if there is one. */
  readonly recorder: Recorder | undefined;
}

/** A request whose response has ended; `status` is 0 if there was none. */
interface EndedRequest {
  readonly ctx: RequestContext;
  readonly active: ActiveConfig;
  readonly status: number;
  readonly bodyBytes: number;
}

/** Gets the status that the log shows, and the configuration that handled the request. */
export type RequestEndedListener = (ctx: RequestContext, status: number, runtime: Runtime) => void;

/** What is done with each, in this order. */
const STEPS: readonly ((ended: EndedRequest, records: RequestRecords) => void)[] = [
  function usage({ ctx, active: { runtime } }) {
    const llm = llmCall.get(ctx);
    if (llm === undefined) return;
    try {
      finalizeUsage(ctx, llm, runtime.catalog);
    } finally {
      settleRecordings(ctx, llm);
    }
  },
  function traceFinished({ ctx, status }) {
    if (ctx.observer !== undefined) tracers.get(ctx)?.finished(status);
  },
  function accessLog(ended, records) {
    records.logged(ended);
  },
  function record(ended, records) {
    records.stored(ended);
  },
  function listeners(ended, records) {
    records.told(ended);
  },
  function metrics({ ctx, active: { bind }, status, bodyBytes }) {
    bind?.ended(ctx, status === 0 ? 499 : status, bodyBytes);
  },
  function traceEnded({ ctx }) {
    const tracer = ctx.observer === undefined ? undefined : tracers.get(ctx);
    if (tracer !== undefined) traceEnd(tracer, ctx);
  },
];

const placeOf = ({ route, endpoint }: RequestContext) => ({ route, endpoint });

/** The trace observer of a request. */
const tracers = new Slot<TraceObserver>();

/**
 * What a gateway keeps of requests: live traces and debug lines while they run; usage, access log, span, database record
 * and metrics when they have ended. The worker that handled a forwarded request records it, and not the one that received it.
 */
export class RequestRecords {
  /** Streams of `/debug/trace`. */
  readonly traceSubscribers = createTraceSubscribers();
  readonly accessLog: AccessLog;
  readonly #listeners = new Set<RequestEndedListener>();
  readonly #debugLog: RequestDebugLog;
  readonly #recorder: Recorder | undefined;
  readonly #log: Log;

  constructor({ sink, format, log, recorder }: RequestRecordsOptions) {
    this.#log = log;
    this.accessLog = new AccessLog({ sink, format, log });
    this.#debugLog = new RequestDebugLog(log);
    this.#recorder = recorder;
  }

  /** Sets the observer of a request that a live trace or the debug log follows. Called before the pipeline. */
  observe(ctx: RequestContext, runtime: Runtime): void {
    if (!this.traceSubscribers.active && !this.#debugLog.isOn) return;
    const tracer = this.#tracerOf(ctx);
    if (tracer === undefined) return;
    ctx.observer = tracer;
    tracers.set(ctx, tracer);
    traceBegin(tracer, runtime.config.frontendPolicies, runtime);
  }

  #tracerOf(ctx: RequestContext): TraceObserver | undefined {
    const lines = this.#debugLog.isOn ? this.#debugLog.of(ctx) : undefined;
    const claimed = this.traceSubscribers.active ? this.traceSubscribers.claim(ctx, lines) : undefined;
    return claimed ?? (lines === undefined ? undefined : new TraceObserver(ctx, lines));
  }

  /** Called when the reply is ready, before it is written. */
  replied(ctx: RequestContext, reply: Reply): void {
    if (isForwarded.get(ctx) === true) return;
    const active = activeConfig.get(ctx);
    if (active === undefined) return;
    const { logReads, settings } = active.runtime;
    if (logReads.reads('response.body', 'response.bodyPrefix'))
      recordBody(ctx, reply, settings.maxBufferSize);
    ctx.timings.replied = performance.now();
  }

  /**
   * Called once, after the response has ended. `status` is 0 if the client disconnected before it began. A step that throws
   * leaves the others as they are, and never reaches the caller: nobody else could handle it.
   */
  ended(ctx: RequestContext, status: number, bodyBytes: number): void {
    if (isForwarded.get(ctx) === true) return;
    const active = activeConfig.get(ctx);
    if (active === undefined) return;
    if (ctx.internalError !== undefined) this.#log.internalError('request', ctx.internalError, placeOf(ctx));
    const ended: EndedRequest = { ctx, active, status, bodyBytes };
    for (const step of STEPS) {
      try {
        step(ended, this);
      } catch (error) {
        this.#log.internalError('request', error, { ...placeOf(ctx), step: step.name });
      }
    }
  }

  /** Writes the line, and hands it to the collector; ends the span, which has the same fields. */
  logged({ ctx, active: { runtime, tracing }, status }: EndedRequest): void {
    let fields: readonly Field[] | undefined;
    try {
      const needsFields = ctx.span !== undefined || runtime.accessLogExport !== undefined;
      fields = this.accessLog.ended(ctx, status, runtime.accessLog, needsFields);
    } catch (error) {
      this.accessLog.endedWithout(ctx, status);
      throw error;
    } finally {
      runtime.accessLogExport?.ended(ctx, fields ?? [], runtime.accessLog);
      if (ctx.span !== undefined) tracing?.ended(ctx, ctx.span, fields ?? []);
    }
  }

  /** Writes the line of a connection whose bytes were passed on. */
  relayed(connection: RelayedConnection, { accessLog, accessLogExport }: Runtime): void {
    const fields = connectionFields(connection);
    this.accessLog.relayed(fields, accessLog);
    accessLogExport?.relayed(fields, accessLog);
  }

  /** Calls `listener` with each request that has ended, until the returned function is called. */
  onEnded(listener: RequestEndedListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  told({ ctx, active: { runtime }, status }: EndedRequest): void {
    for (const listener of this.#listeners) listener(ctx, status === 0 ? 499 : status, runtime);
  }

  /** Adds the request to the database, unless it is one of an operator. */
  stored({ ctx, active: { runtime }, status }: EndedRequest): void {
    if (runtime.record === undefined || operatorRequest.get(ctx) === true) return;
    this.#recorder?.add(ctx, status === 0 ? 499 : status, runtime.record);
  }
}
