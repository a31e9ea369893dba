import type { ServerResponse } from 'node:http';
import { AppError, ERRORS, messageOf, type Reason } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { backendTimeouts } from '../kernel/backend.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { type BodySink, responseSink, type UpstreamBody } from '../transport/upstream-body.ts';
import type { LlmCall } from './call.ts';
import { StreamedCompletion } from './conversation.ts';
import { errorEvent } from './errors.ts';
import { dataOf, FrameSplitter, OversizedFrame } from './frames.ts';
import type { StreamGuard } from './guardrails/stream-guard.ts';
import type { StreamMeter } from './stream-meter.ts';

/**
 * A streamed completion on its way to the client: counted, looked at by guardrails when there are any, and ended with
 * an error event when something goes wrong after it began.
 */
export class LlmStream {
  readonly #ctx: RequestContext;
  readonly #call: LlmCall;
  readonly #upstream: UpstreamBody;
  readonly #meter: StreamMeter;
  readonly #guard: StreamGuard | undefined;
  readonly #frames = new FrameSplitter();
  #response: BodySink | undefined;
  #stall: NodeJS.Timeout | undefined;
  #work: Promise<void> = Promise.resolve();
  #isDone = false;

  constructor(
    ctx: RequestContext,
    call: LlmCall,
    upstream: UpstreamBody,
    meter: StreamMeter,
    guard: StreamGuard | undefined,
  ) {
    this.#ctx = ctx;
    this.#call = call;
    this.#upstream = upstream;
    this.#meter = meter;
    this.#guard = guard;
  }

  /** Called by the listener after `writeHead`. */
  attach(response: ServerResponse): void {
    response.flushHeaders();
    response.once('close', () => {
      clearTimeout(this.#stall);
      this.#isDone = true;
      this.#upstream.discard();
    });
    this.#response = responseSink(response, this.#upstream);
    if (this.#idle > 0) this.#stall = setTimeout(() => this.#silent(), this.#idle);
    this.#upstream.consume({
      push: (chunk) => this.#push(chunk),
      end: () => this.#end(),
      fail: (why) => this.#broken(why),
    });
  }

  /** How long the provider may be silent, in ms; 0 for no limit. */
  get #idle(): number {
    return backendTimeouts.get(this.#ctx)?.idle ?? LIMITS.streamIdle;
  }

  discard(): void {
    this.#upstream.discard();
  }

  expired(): boolean {
    if (this.#isDone || this.#response === undefined) return false;
    const { text, reason } = ERRORS.gateway_closing;
    this.#abort(text, 'api_error', 'gateway_closing', reason);
    return true;
  }

  /** A client that leaves makes us leave the provider, which then looks as if it had broken off. */
  #broken(why: string): void {
    const isOurs = this.#ctx.isAbandoned;
    if (!isOurs) this.#locate(why);
    const message = isOurs
      ? 'the client left before the end of the response'
      : 'the provider broke the stream off';
    this.#abort(message, 'api_error', 'upstream_failed');
  }

  #silent(): void {
    this.#locate(`nothing more came for ${this.#idle / 1000} s`);
    this.#abort('the provider sent nothing for too long', 'timeout_error', 'stream_idle', 'Timeout');
  }

  /** Tells the log which provider it was, and why. */
  #locate(why: string): void {
    if (!this.#isDone) this.#ctx.errorDetail ??= `${this.#ctx.endpoint}: ${why}`;
  }

  #push(chunk: Buffer): boolean {
    if (this.#isDone) return true;
    this.#stall?.refresh();
    let frames: Buffer[];
    try {
      frames = this.#frames.push(chunk);
    } catch (error) {
      if (!(error instanceof OversizedFrame)) throw error;
      this.#abort(messageOf(error), 'api_error', 'upstream_failed');
      return true;
    }
    const wanted = frames.filter((frame) => this.#meter.read(frame));
    const guard = this.#guard;
    if (guard === undefined) return wanted.length === 0 || this.#write(wanted);
    try {
      for (const frame of wanted) guard.hold(frame);
    } catch (error) {
      this.#block(error);
      return true;
    }
    if (!guard.isFull) return true;
    // Nothing more is taken in while webhooks think: what is held stays bounded.
    this.#work = this.#work.then(async () => {
      if (await this.#release(guard, false)) this.#upstream.resume();
    });
    return false;
  }

  /** Sends what guardrails let out. Whether more may come in now: a slow client asks for it later, by itself. */
  async #release(guard: StreamGuard, isEnd: boolean): Promise<boolean> {
    if (this.#isDone) return false;
    this.#stall?.refresh();
    try {
      const released = await guard.release(isEnd);
      this.#call.heldFor = Math.round(guard.longest);
      return !this.#isDone && (released.length === 0 || this.#write(released));
    } catch (error) {
      this.#block(error);
      return false;
    }
  }

  /** Nothing that guardrails did not let out may follow, whatever went wrong. */
  #block(error: unknown): void {
    if (this.#isDone) return;
    const isRejected = error instanceof AppError && error.code === 'guardrail_rejected';
    const message = isRejected ? (error.body?.text ?? '') : 'Content blocked by guardrail policy';
    this.#ctx.error = messageOf(error);
    this.#ctx.errorDetail = error instanceof AppError ? error.detail : messageOf(error);
    this.#abort(message, 'guardrail_blocked', 'guardrail_intervention', 'Guardrail');
  }

  #write(frames: readonly Buffer[]): boolean {
    noteFrames(this.#call, frames);
    return this.#response?.push(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames)) ?? true;
  }

  #end(): void {
    clearTimeout(this.#stall);
    this.#call.progress = 'whole';
    this.#work = this.#work.then(async () => {
      const tail = this.#frames.rest();
      // An event without its empty line: readers of the standard drop it, others take it as any event.
      const rest = tail.length > 0 && this.#meter.read(tail) ? tail : Buffer.alloc(0);
      this.#meter.ended();
      if (rest.length > 0 && this.#guard !== undefined) this.#guard.hold(rest);
      if (this.#guard !== undefined) await this.#release(this.#guard, true);
      else if (rest.length > 0) this.#write([rest]);
      if (!this.#isDone) this.#response?.end();
      this.#isDone = true;
    });
  }

  /** What was sent is sent: an event says what happened, and no `[DONE]` follows. */
  #abort(message: string, type: string, code: string, reason: Reason = 'UpstreamFailure'): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#stall);
    this.#ctx.error ??= message;
    this.#ctx.reason = reason;
    this.#response?.push(Buffer.from(errorEvent(message, type, code)));
    this.#response?.end();
    this.#upstream.discard();
  }
}

/** Reads what events say that go to the client, where an expression of the log wants it. */
export function noteFrames(call: LlmCall, frames: readonly Buffer[]): void {
  if (call.keepsCompletion !== true) return;
  call.streamed ??= new StreamedCompletion();
  for (const frame of frames) {
    const data = dataOf(frame);
    if (data !== undefined) call.streamed.add(data);
  }
}
