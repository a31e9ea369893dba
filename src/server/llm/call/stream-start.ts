import type { Dispatcher } from 'undici';
import { jsonIn } from '../../../core/foreign.ts';
import { backendTimeouts } from '../../kernel/backend.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { type BodySink, UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { statusOfError } from '../chat/provider-error.ts';
import { redactKey } from '../credentials.ts';
import { errorBodyOf, llmError } from '../errors.ts';
import type { WireFormat } from '../formats/format.ts';
import { type FormatKey, formatOf } from '../formats/index.ts';
import { eventOf, FrameSplitter, OversizedFrameError } from '../frames.ts';
import { membersOf } from '../json-members.ts';
import type { LlmCall } from '../llm-call.ts';
import { textBytes } from '../texts.ts';
import { CUT_OFF } from '../translation/translated-body.ts';
import { isEventStream } from './answer-form.ts';
import { endsStream, hasLastEvent, saysAnything } from './answer-shape.ts';

/**
 * Waits for the first output of a stream. Throws an `AppError` (502) if it fails before. A stream that reports an error instead becomes
 * the response that the provider would have sent without a stream: with the status of the error, which says whether another target may
 * do better. `keyEncodings`: of the provider's key, to be redacted.
 */
export async function startedReply(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  keyEncodings: readonly string[],
): Promise<Reply> {
  const { status, headers, body } = reply;
  if (!isEventStream(reply) || status > 299 || !(body instanceof UpstreamBody)) return reply;
  const idle = backendTimeouts.get(ctx)?.idle ?? call.limits.streamIdle;
  const start = new StreamStart(body, call.format, {
    idle,
    frameBytes: call.limits.streamFrameBytes,
    hasLast: hasLastEvent(call.format) && call.isUnmetered !== true,
  });
  const failed = await start.failed;
  if (failed === undefined) return { status, headers, body: start.body };
  start.body.discard();
  if (typeof failed === 'object') {
    headers.set('content-type', 'application/json');
    headers.delete('content-length');
    const text = redactKey(Buffer.from(JSON.stringify(failed.error)), keyEncodings).toString('utf8');
    return { status: statusOfError(failed.error) ?? 502, headers, body: text };
  }
  throw llmError(
    'upstream_invalid',
    'upstream_failed',
    `upstream call failed: ${failed}`,
    `${ctx.endpoint}: ${failed}`,
  );
}

/** Why a stream has no output; `error` is the body of an error response. */
type Failed = string | { readonly error: unknown };

/**
 * Waits for the first output of a stream, before anything is sent to the client: a stream that fails before it can still
 * be requested elsewhere. The bytes stay unchanged, in `body`.
 */
class StreamStart implements BodySink {
  readonly body: UpstreamBody;
  /** Resolves at the first output to undefined, or to why there will be none. */
  readonly failed: Promise<Failed | undefined>;
  readonly #format: WireFormat;
  readonly #key: FormatKey | undefined;
  readonly #frames: FrameSplitter;
  readonly #timer: NodeJS.Timeout;
  #decide: ((failed: Failed | undefined) => void) | undefined;
  #isPaused = false;
  #hasEvents = false;
  #isOver: boolean;

  /** `idle`: how long the provider may send nothing, in ms; 0 for no limit. `frameBytes` bounds one event. */
  constructor(
    source: UpstreamBody,
    format: FormatKey | undefined,
    { idle, frameBytes, hasLast }: { idle: number; frameBytes: number; hasLast: boolean },
  ) {
    this.#format = formatOf(format);
    this.#key = format;
    this.#isOver = !hasLast;
    this.#frames = new FrameSplitter(frameBytes);
    const { promise, resolve } = Promise.withResolvers<Failed | undefined>();
    this.failed = promise;
    this.#decide = resolve;
    this.#timer = setTimeout(() => this.#end('the provider sent no output'), idle === 0 ? NEVER : idle);
    const controller = {
      pause: () => {
        this.#isPaused = true;
      },
      resume: () => {
        this.#isPaused = false;
        source.resume();
      },
      abort: () => source.discard(),
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- bodies call only these three methods
    this.body = new UpstreamBody(controller as unknown as Dispatcher.DispatchController);
    source.consume(this);
  }

  push(chunk: Buffer): boolean {
    this.#timer.refresh();
    this.body.push(chunk);
    if (this.#decide !== undefined) this.#look(chunk);
    // The body is full before there was any output: whatever it is, it cannot be held any longer.
    if (this.#isPaused) this.#end(undefined);
    return !this.#isPaused;
  }

  end(): void {
    // The last event may lack its empty line.
    if (this.#decide !== undefined) this.#read(this.#frames.rest());
    // An answer without output has events, too.
    if (!this.#hasEvents) this.#end('the provider ended the stream without an event');
    this.#end(this.#isOver ? undefined : `the provider ended the stream early: ${CUT_OFF}`);
    this.body.end();
  }

  fail(why: string, isTimeout: boolean): void {
    this.#end(why);
    this.body.fail(why, isTimeout);
  }

  #look(chunk: Buffer): void {
    try {
      for (const frame of this.#frames.push(chunk)) this.#read(frame);
    } catch (error) {
      if (!(error instanceof OversizedFrameError)) throw error;
      this.#end(undefined);
    }
  }

  #read(frame: Buffer): void {
    const { data, type } = eventOf(frame) ?? {};
    if (data === '[DONE]') this.#isOver = true;
    if (data === undefined || data === '[DONE]') return;
    const value = membersOf(jsonIn(data));
    // Some servers send the error as plain text, not as JSON.
    const error = value === undefined && type === 'error' ? data : errorBodyOf(value);
    if (error !== undefined) this.#end({ error });
    this.#hasEvents ||= value === undefined || this.#key === undefined || saysAnything(this.#key, value);
    this.#isOver ||= value !== undefined && endsStream(this.#key, value);
    if (value === undefined || textBytes(this.#format.output(value)) > 0) this.#end(undefined);
  }

  /** The first decision counts. */
  #end(failed: Failed | undefined): void {
    if (this.#decide === undefined) return;
    clearTimeout(this.#timer);
    this.#decide(failed);
    this.#decide = undefined;
  }
}

/** The longest time of a timer. */
const NEVER = 2 ** 31 - 1;
