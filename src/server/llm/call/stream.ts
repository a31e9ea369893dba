import type { BodyWriter } from '../../../core/body-writer.ts';
import { AppError, ERRORS, messageOf, type Reason } from '../../../core/errors.ts';
import { callBudget } from '../../budgets/call-budget.ts';
import { backendTimeouts } from '../../kernel/backend.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { type BodySink, responseSink, type UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { StreamedCompletion } from '../chat/conversation.ts';
import { rareEncodings, redactKey } from '../credentials.ts';
import { errorInEvent, llmError } from '../errors.ts';
import type { ClientError } from '../formats/format.ts';
import { clientFormatOf, formatOf } from '../formats/index.ts';
import { streamedOutputOf } from '../formats/output.ts';
import { dataOf, FrameSplitter, OversizedFrameError } from '../frames.ts';
import type { StreamGuard } from '../guardrails/stream-guard.ts';
import type { LlmCall } from '../llm-call.ts';
import { CUT_OFF } from '../translation/translated-body.ts';
import { wrongShape } from './answer-shape.ts';
import { chargeBudget } from './budget.ts';
import type { StreamMeter } from './response-meter.ts';
import { SplitKey } from './split-key.ts';

/**
 * Relays a streamed completion to the client: meters it, runs guardrails, and ends it with an error event if it fails
 * after it has started.
 */
export class LlmStream {
  readonly #ctx: RequestContext;
  readonly #call: LlmCall;
  readonly #upstream: UpstreamBody;
  readonly #meter: StreamMeter;
  readonly #guard: StreamGuard | undefined;
  /** Encodings of the provider's key, to be redacted. */
  readonly #keyEncodings: readonly string[];
  readonly #rareEncodings: readonly string[];
  readonly #splitKey: SplitKey | undefined;
  readonly #frames: FrameSplitter;
  /** Events that are sent only when the call is charged; undefined if no budget counts it. */
  readonly #endMarks: readonly Buffer[] | undefined;
  #response: BodySink | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #pending: Promise<void> = Promise.resolve();
  #isDone = false;
  /** Waits for what is sent first. */
  #start: PromiseWithResolvers<void> | undefined;
  /** Sent before there is a response to send it with. */
  readonly #unsent: Buffer[] = [];

  constructor(
    ctx: RequestContext,
    call: LlmCall,
    upstream: UpstreamBody,
    meter: StreamMeter,
    { guard, keyEncodings }: { guard: StreamGuard | undefined; keyEncodings: readonly string[] },
  ) {
    this.#ctx = ctx;
    this.#call = call;
    this.#frames = new FrameSplitter(call.limits.streamFrameBytes);
    this.#upstream = upstream;
    this.#meter = meter;
    this.#guard = guard;
    this.#keyEncodings = keyEncodings;
    this.#rareEncodings = rareEncodings(keyEncodings);
    const texts = clientFormatOf(call.format)?.eventTexts;
    if (texts !== undefined && this.#rareEncodings.length > 0)
      this.#splitKey = new SplitKey(texts, this.#rareEncodings);
    this.#endMarks =
      callBudget.get(ctx)?.isReserved === true ? (formatOf(call.format).endMarks ?? []) : undefined;
  }

  /**
   * Reads until there is something to send: guardrails hold back the beginning of a stream, and another model can be called as
   * long as the client has got nothing of it. Throws an `AppError` (502) if the provider fails before.
   */
  started(): Promise<void> {
    this.#start = Promise.withResolvers();
    this.#read();
    return this.#start.promise;
  }

  /** Called by the listener after `writeHead`. */
  attach(response: BodyWriter): void {
    response.flushHeaders();
    response.once('close', () => {
      clearTimeout(this.#idleTimer);
      this.#isDone = true;
      this.#upstream.discard();
    });
    this.#response = responseSink(response, this.#upstream);
    if (this.#start === undefined) this.#read();
    else this.#sendUnsent(this.#response);
  }

  /** What was ready before there was a response. */
  #sendUnsent(response: BodySink): void {
    const isTaken = this.#unsent.splice(0).every((bytes) => response.push(bytes));
    if (this.#isDone) response.end();
    else if (isTaken) this.#upstream.resume();
  }

  #read(): void {
    if (this.#idle > 0) this.#idleTimer = setTimeout(() => this.#onIdle(), this.#idle);
    this.#upstream.consume({
      push: (chunk) => {
        try {
          return this.#push(chunk);
        } catch (error) {
          this.#fail(error);
          return true;
        }
      },
      end: () => this.#end(),
      fail: (why) => this.#onUpstreamFailure(why),
      // The beginning of an answer that was cut off is worth having, also if it arrived together with its end.
      takesRest: true,
    });
  }

  /** Idle timeout of the provider in ms; 0 for none. Default: `LIMITS.streamIdle`. */
  get #idle(): number {
    return backendTimeouts.get(this.#ctx)?.idle ?? this.#call.limits.streamIdle;
  }

  discard(): void {
    clearTimeout(this.#idleTimer);
    this.#isDone = true;
    this.#upstream.discard();
  }

  expired(): boolean {
    if (this.#isDone || this.#response === undefined) return false;
    const { status, text: message, reason } = ERRORS.gateway_closing;
    this.#abort({ status, type: 'api_error', code: 'gateway_closing', message }, reason);
    return true;
  }

  /** The upstream failed, or was cancelled because the client disconnected. */
  #onUpstreamFailure(why: string): void {
    const isCancelled = this.#ctx.isAbandoned;
    if (!isCancelled && this.#failsStart(`the provider ended the stream early: ${why}`)) return;
    if (!isCancelled) this.#setErrorDetail(why);
    const message = isCancelled
      ? 'the client disconnected before the end of the response'
      : 'the provider ended the stream early';
    this.#abort(upstreamFailed(message));
  }

  /** Rejects `started`, if nothing was sent yet: the client does not get to know of this failure. */
  #failsStart(why: string): boolean {
    if (this.#start === undefined || this.#response !== undefined || this.#unsent.length > 0 || this.#isDone)
      return false;
    this.#isDone = true;
    clearTimeout(this.#idleTimer);
    this.#start.reject(
      llmError(
        'upstream_invalid',
        'upstream_failed',
        `upstream call failed: ${why}`,
        `${this.#ctx.endpoint}: ${why}`,
      ),
    );
    this.#upstream.discard();
    return true;
  }

  #onIdle(): void {
    if (this.#failsStart('the provider stopped sending data')) return;
    this.#setErrorDetail(`no data received for ${this.#idle / 1000} s`);
    const message = 'the provider stopped sending data';
    this.#abort({ status: 504, type: 'timeout_error', code: 'stream_idle', message }, 'Timeout');
  }

  /** Sets the logged error detail: the provider's address and the cause. */
  #setErrorDetail(why: string): void {
    if (!this.#isDone) this.#ctx.errorDetail ??= `${this.#ctx.endpoint}: ${why}`;
  }

  #push(chunk: Buffer): boolean {
    if (this.#isDone) return true;
    this.#idleTimer?.refresh();
    let frames: Buffer[];
    try {
      frames = this.#frames.push(chunk).flatMap((frame) => this.#withoutKey(frame));
    } catch (error) {
      if (!(error instanceof OversizedFrameError)) throw error;
      this.#abort(upstreamFailed(messageOf(error)));
      return true;
    }
    const forwarded = frames.flatMap((frame) => this.#meter.forwarded(frame) ?? []);
    if (this.#hasOtherShape() || this.#hasErrorAtStart(forwarded)) return true;
    const guard = this.#guard;
    if (guard === undefined) return forwarded.length === 0 || this.#send(forwarded);
    if (!forwarded.every((frame) => this.#hold(frame)) || !guard.isFull) return true;
    // Reading is paused while webhooks run, so that the held frames stay bounded.
    this.#next(async () => {
      if (await this.#release(guard, false)) this.#upstream.resume();
    });
    return false;
  }

  /** Whether the provider reports an error while nothing was sent. */
  #hasErrorAtStart(frames: readonly Buffer[]): boolean {
    if (this.#start === undefined || this.#response !== undefined) return false;
    const error = frames.map((frame) => errorInEvent(dataOf(frame) ?? '')).find((each) => each !== undefined);
    return error !== undefined && this.#failsStart(`the provider reported ${error.name ?? 'an error'}`);
  }

  /** Ends a stream that is not of the format of the call. */
  #hasOtherShape(): boolean {
    const { otherShape } = this.#meter;
    if (otherShape === undefined) return false;
    if (this.#failsStart(otherShape)) return true;
    const error = wrongShape(this.#ctx, this.#call, otherShape);
    this.#ctx.errorDetail ??= error.detail;
    this.#abort(upstreamFailed(error.message));
    return true;
  }

  /** The events to send now, without an echoed key. */
  #withoutKey(frame: Buffer): readonly Buffer[] {
    const cleaned = redactKey(frame, frame.includes('error') ? this.#keyEncodings : this.#rareEncodings);
    return this.#splitKey?.push(cleaned) ?? [cleaned];
  }

  /** Gives an event to guardrails. False if they cannot check it, which ends the stream. */
  #hold(frame: Buffer): boolean {
    try {
      this.#guard?.hold(frame);
      return true;
    } catch (error) {
      this.#block(error);
      return false;
    }
  }

  /** Runs a step after the ones before it. One that throws ends this stream only. */
  #next(step: () => Promise<void>): void {
    this.#pending = this.#pending.then(step).catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    if (this.#isDone) return;
    this.#ctx.internalError ??= error;
    const { status, text: message, reason } = ERRORS.internal;
    this.#ctx.errorDetail ??= messageOf(error);
    this.#abort({ status, type: 'api_error', code: 'internal', message }, reason);
  }

  /**
   * Sends the frames released by guardrails. Returns whether to resume reading; a slow client resumes it later itself.
   */
  async #release(guard: StreamGuard, isEnd: boolean): Promise<boolean> {
    if (this.#isDone) return false;
    this.#idleTimer?.refresh();
    try {
      const released = await guard.release(isEnd);
      this.#call.heldFor = Math.round(guard.longest);
      if (this.#isEnd(released)) await this.#charged();
      return !this.#isDone && (released.length === 0 || this.#write(released));
    } catch (error) {
      this.#block(error);
      return false;
    }
  }

  /** Ends the stream after a guardrail rejected or failed: held frames must not be sent. */
  #block(error: unknown): void {
    if (this.#isDone) return;
    const isRejected = error instanceof AppError && error.code === 'guardrail_rejected';
    const status = error instanceof AppError ? error.status : 500;
    // The client may know what is wrong with the stream, but not what a guardrail's service answered.
    const isUncheckable = error instanceof AppError && status === 502;
    const failure = isUncheckable ? error.message : 'Content blocked by guardrail policy';
    const message = isRejected ? (error.body?.text ?? '') : failure;
    this.#ctx.error = messageOf(error);
    this.#ctx.errorDetail = error instanceof AppError ? error.detail : messageOf(error);
    this.#abort({ status, type: 'guardrail_blocked', code: 'guardrail_intervention', message }, 'Guardrail');
  }

  /** Sends frames; those with the end of the answer when it is charged. Returns false to pause reading. */
  #send(frames: readonly Buffer[]): boolean {
    if (!this.#isEnd(frames)) return this.#write(frames);
    this.#next(async () => {
      await this.#charged();
      if (!this.#isDone && this.#write(frames)) this.#upstream.resume();
    });
    return false;
  }

  /** Resolves when the call is charged; ends the stream with an error if it cannot be. */
  async #charged(): Promise<void> {
    try {
      await chargeBudget(this.#ctx, this.#call);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      this.#ctx.errorDetail ??= error.detail;
      const { status, code, message, reason } = error;
      this.#abort({ status, type: 'api_error', code, message }, reason);
    }
  }

  #isEnd(frames: readonly Buffer[]): boolean {
    return this.#endMarks?.some((mark) => frames.some((frame) => frame.includes(mark))) === true;
  }

  #write(frames: readonly Buffer[]): boolean {
    recordFrames(this.#call, frames);
    const [first] = frames;
    return this.#give(frames.length === 1 && first !== undefined ? first : Buffer.concat(frames));
  }

  #give(bytes: Buffer): boolean {
    if (this.#response !== undefined) return this.#response.push(bytes);
    this.#unsent.push(bytes);
    this.#start?.resolve();
    return false;
  }

  #end(): void {
    if (this.#isDone) return;
    clearTimeout(this.#idleTimer);
    this.#next(async () => {
      const tail = this.#frames.rest();
      const last = [...(tail.length > 0 ? this.#withoutKey(tail) : []), ...(this.#splitKey?.end() ?? [])];
      const forwarded = last.flatMap((frame) => this.#meter.forwarded(frame) ?? []);
      this.#meter.ended();
      if (this.#isDone || this.#hasOtherShape()) return;
      const { isCut } = this.#meter;
      if (isCut && this.#failsStart(`the provider ended the stream early: ${CUT_OFF}`)) return;
      // A final event without an empty line: the standard discards it, but some clients read it.
      const rest = isCut ? [] : forwarded;
      if (!isCut) this.#call.progress = 'complete';
      if (!rest.every((frame) => this.#hold(frame))) return;
      if (this.#guard !== undefined) await this.#release(this.#guard, true);
      else if (rest.length > 0) this.#write(rest);
      // The client has its text, and has to know that there is no more.
      if (isCut) this.#onUpstreamFailure(CUT_OFF);
      // Some formats have no last event: clients wait for the end of the body.
      if (this.#endMarks !== undefined && !this.#isDone) await this.#charged();
      if (!this.#isDone) this.#response?.end();
      this.#isDone = true;
      this.#start?.resolve();
    });
  }

  /** Ends the stream with an error event and without `[DONE]`. */
  #abort(error: ClientError, reason: Reason = 'UpstreamFailure'): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#idleTimer);
    this.#ctx.error ??= error.message;
    this.#ctx.reason = reason;
    const event = formatOf(this.#call.format).errorEvent(error, this.#meter.lastEvent);
    this.#give(Buffer.from(event));
    this.#response?.end();
    this.#upstream.discard();
  }
}

const upstreamFailed = (message: string): ClientError => ({
  status: ERRORS.upstream_invalid.status,
  type: 'api_error',
  code: 'upstream_failed',
  message,
});

/** Records the output sent to the client, if log expressions read the completion. */
export function recordFrames(call: LlmCall, frames: readonly Buffer[]): void {
  if (call.keepsCompletion !== true) return;
  call.streamed ??= new StreamedCompletion((event) => streamedOutputOf(event, call.format));
  for (const frame of frames) {
    const data = dataOf(frame);
    if (data !== undefined) call.streamed.add(data);
  }
}
