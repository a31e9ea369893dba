import { isUtf8 } from 'node:buffer';
import { AppError } from '../../../core/errors.ts';
import { isRecord, jsonIn, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { resolverFor } from '../../expressions/variable.ts';
import { writeChanged } from '../../kernel/json/changed-json.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { errorEvent, errorSentence } from '../chat/error-body.ts';
import { excerptOf } from '../chat/excerpt.ts';
import { errorText } from '../chat/provider-error.ts';
import { collectBody } from '../collect-body.ts';
import { rareEncodings, redactKey, removeHeadersWithKey } from '../credentials.ts';
import { errorInBody, llmError } from '../errors.ts';
import { clientFormatOf, formatOf } from '../formats/index.ts';
import { completionOf } from '../formats/output.ts';
import { Echo } from '../guardrails/echo.ts';
import type { GuardedText } from '../guardrails/guarded-text.ts';
import { type ResponseGuard, runGuards } from '../guardrails/guardrails.ts';
import { withoutRepetitions } from '../guardrails/repeated-members.ts';
import { responseTexts } from '../guardrails/response-texts.ts';
import { StreamGuard } from '../guardrails/stream-guard.ts';
import type { LlmCall } from '../llm-call.ts';
import { isEventStream } from './answer-form.ts';
import { hasShape, isStrict, mayBeText, UNASKED_STREAM, wrongAnswer, wrongShape } from './answer-shape.ts';
import { heldAnswer } from './error-in-answer.ts';
import { NonStreamingMeter, readNonStreaming, StreamMeter, usageIn, withoutMark } from './response-meter.ts';
import { KeyFilter } from './split-key.ts';
import { LlmStream, recordFrames } from './stream.ts';

export interface ResponseOptions {
  readonly guardrails: readonly ResponseGuard[];
  /** The request as it was sent, as JSON text. */
  readonly request: () => string;
  readonly stripsUsage: boolean;
  /** Encodings of the provider's key, to be redacted. */
  readonly keyEncodings: readonly string[];
}

/**
 * Turns the provider's reply into the client's: meters it, runs guardrails and redacts an echoed key. Otherwise the
 * bytes are unchanged. Throws an `AppError` if a guardrail rejects (its status) or fails (503), or the reply is invalid
 * (502).
 */
export function processResponse(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  options: ResponseOptions,
): Reply | Promise<Reply> {
  const { body, headers, status } = reply;
  removeHeadersWithKey(headers, options.keyEncodings);
  call.progress = status < 200 || status > 299 ? 'rejected' : 'responding';
  if (call.progress === 'rejected') return rejectedReply(ctx, call, reply, options);
  const isStream = isEventStream(reply);
  if (!(body instanceof UpstreamBody)) {
    // The built-in model: the response is already complete.
    if (typeof body === 'string') return answerInMemory(ctx, call, reply, body, isStream, options);
    return reply;
  }
  if (isStream) {
    if (!call.streaming && isStrict(call.format) && call.isUnmetered !== true) {
      body.discard();
      throw wrongShape(ctx, call, UNASKED_STREAM);
    }
    // Otherwise the head is sent before the first event.
    if (body.isEmpty && hasShape(call.format) && call.isUnmetered !== true)
      throw wrongShape(ctx, call, 'the provider ended the stream without an event');
    headers.delete('content-length');
    // Otherwise nginx in front of the gateway holds tokens back. Providers need not think of it.
    headers.set('x-accel-buffering', 'no');
    const meter = new StreamMeter(ctx, call, options.stripsUsage);
    const guard = guardOf(ctx, call, body, options);
    if (guard !== undefined) asUtf8(headers);
    return {
      ...reply,
      body: new LlmStream(ctx, call, body, meter, { guard, keyEncodings: options.keyEncodings }),
    };
  }
  if (isBinary(headers.get('content-type'))) call.hasNoText = true;
  if (options.guardrails.length === 0) {
    const isJson = /\bjson\b/i.test(headers.get('content-type') ?? 'json');
    const isChecked = hasShape(call.format) && call.isUnmetered !== true;
    if (isChecked && (isJson || !(call.streaming || mayBeText(call.format))))
      return checkedReply(ctx, call, reply, body, options);
    return meteredReply(ctx, call, reply, body, options);
  }
  return collectBody(ctx, body, call).then((bytes) =>
    guarded(ctx, call, reply, withoutKey(bytes, headers, options), options),
  );
}

function meteredReply(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  body: UpstreamBody,
  { keyEncodings }: ResponseOptions,
): Reply {
  const forms = rareEncodings(keyEncodings);
  if (forms.length > 0) body.changeWith(new KeyFilter(forms));
  // Results of a batch are counted line by line.
  if (call.nonStreaming !== undefined) return reply;
  call.nonStreaming = new NonStreamingMeter(ctx.timings.started);
  body.observers.push(call.nonStreaming);
  body.watcher = ctx;
  return reply;
}

/** Checks a chat that is short enough to wait for. Throws an `AppError` (502) if it is of another format. */
async function checkedReply(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  body: UpstreamBody,
  options: ResponseOptions,
): Promise<Reply> {
  const asked = clientFormatOf(call.format)?.answerAsked?.(call.request);
  const limit = asked === undefined ? LIMITS.checkedAnswerBytes : LIMITS.responseBodyBytes;
  const { bytes: sent, isComplete } = await heldAnswer(ctx, body, limit);
  const bytes = isComplete ? withoutKey(sent, reply.headers, options) : sent;
  if (isComplete) {
    body.replaced();
    call.lastTokenAfter = performance.now() - ctx.timings.started;
  }
  if (!isComplete) {
    if (/^\s*[[{]/.test(withoutMark(bytes).toString('latin1', 0, 100)))
      return meteredReply(ctx, call, reply, body, options);
    body.discard();
    throw wrongShape(ctx, call, 'the provider answered with something else than a JSON object');
  }
  const value = readNonStreaming(call, bytes);
  requireShape(ctx, call, value);
  return asAsked(call, { ...reply, body: bytes }, value);
}

/** A complete answer without an echoed key. */
function withoutKey(bytes: Buffer, headers: HeaderList, { keyEncodings }: ResponseOptions): Buffer {
  const cleaned = redactKey(bytes, rareEncodings(keyEncodings));
  if (cleaned !== bytes) headers.delete('content-length');
  return cleaned;
}

/** The answer, changed to what its request asks for if the provider did not heed it. */
function asAsked({ format, request }: LlmCall, reply: Reply, value: unknown): Reply {
  const asked = clientFormatOf(format)?.answerAsked?.(request);
  if (asked === undefined || !isRecord(value)) return reply;
  const changed = asked(value);
  if (changed === value) return reply;
  reply.headers.delete('content-length');
  return { ...reply, body: JSON.stringify(changed) };
}

function requireShape(ctx: RequestContext, call: LlmCall, value: unknown): void {
  const why = wrongAnswer(call, value);
  if (why !== undefined) throw wrongShape(ctx, call, why);
}

/**
 * Throws an `AppError` (400) for a stream whose format guardrails cannot read. Checked before the call, and again if
 * the provider responds with an unrequested stream.
 */
export function requireGuardable({ format }: LlmCall, guardrails: readonly ResponseGuard[]): void {
  if (!guardrails.some(({ checksStreams }) => checksStreams)) return;
  if (clientFormatOf(format)?.eventTexts !== undefined) return;
  throw llmError(
    'llm_invalid',
    'guardrail_unsupported',
    'guardrails cannot check streams of this endpoint: send the request without `stream`',
  );
}

/** Whether a content type is neither text, JSON nor XML: audio, images, files. */
function isBinary(contentType: string | undefined): boolean {
  return contentType !== undefined && !/^(?:text\/|[^;]*\b(?:json|xml)\b)/i.test(contentType.trim());
}

function guardOf(
  ctx: RequestContext,
  call: LlmCall,
  body: UpstreamBody,
  options: ResponseOptions,
): StreamGuard | undefined {
  try {
    return streamGuard(ctx, call, options);
  } catch (error) {
    body.discard();
    throw error;
  }
}

function streamGuard(
  ctx: RequestContext,
  call: LlmCall,
  { guardrails, request }: ResponseOptions,
): StreamGuard | undefined {
  const guards = guardrails.filter(({ checksStreams }) => checksStreams);
  requireGuardable(call, guards);
  const format = clientFormatOf(call.format)?.eventTexts;
  if (guards.length === 0 || format === undefined) return undefined;
  const check = async (texts: readonly GuardedText[]): Promise<string[]> => {
    const checked = await runGuards(guards, 'response', texts, resolverFor(ctx), ctx.signal);
    return checked.map(({ content }) => content);
  };
  return new StreamGuard(format, check, Echo.of(call.format, request));
}

async function answerInMemory(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  text: string,
  isStream: boolean,
  options: ResponseOptions,
): Promise<Reply> {
  const { guardrails, stripsUsage } = options;
  if (!isStream) {
    if (readNonStreaming(call, Buffer.from(text)) === undefined) call.outputBytes = Buffer.byteLength(text);
    return guardrails.length === 0 ? reply : guarded(ctx, call, reply, Buffer.from(text), options);
  }
  const meter = new StreamMeter(ctx, call, stripsUsage);
  const frames = text
    .split(/(?<=\n\n)/)
    .map((frame) => Buffer.from(frame))
    .filter((frame) => meter.read(frame));
  call.progress = 'complete';
  const guard = streamGuard(ctx, call, options);
  for (const frame of frames) guard?.hold(frame);
  const released = guard === undefined ? frames : await guard.release(true);
  recordFrames(call, released);
  return { ...reply, body: Buffer.concat(released) };
}

async function guarded(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  bytes: Buffer,
  { guardrails, request }: ResponseOptions,
): Promise<Reply> {
  // RFC 8259 section 8.1: JSON is UTF-8. A client could make another text of other bytes than the guardrails have read.
  if (!isUtf8(bytes))
    throw wrongShape(ctx, call, 'the response is not valid UTF-8, so guardrails cannot check it');
  const value = readNonStreaming(call, bytes);
  call.lastTokenAfter = performance.now() - ctx.timings.started;
  if (value === undefined)
    throw wrongShape(ctx, call, 'the response is not JSON, so guardrails cannot check it');
  requireShape(ctx, call, value);
  const { texts, replaced } = responseTexts(value, call.format, Echo.of(call.format, request));
  const headers = reply.headers;
  asUtf8(headers);
  const sent = withoutMark(bytes);
  // Of members with the same name, only the last one was read.
  const text = withoutRepetitions(sent.toString('utf8'), value);
  const body = text === undefined ? sent : Buffer.from(text);
  if (body !== bytes) headers.delete('content-length');
  if (texts.length === 0) return asAsked(call, { ...reply, body }, value);
  // Content that guardrails withhold from the client must not be logged either.
  const completion = call.completion;
  call.completion = undefined;
  const checked = await runGuards(guardrails, 'response', texts, resolverFor(ctx), ctx.signal);
  if (checked.every(({ content }, index) => content === texts[index]?.content)) {
    call.completion = completion;
    return { ...reply, body };
  }
  headers.delete('content-length');
  const masked = replaced(checked.map(({ content }) => content));
  if (call.keepsCompletion === true) call.completion = completionOf(masked, call.format);
  return { ...reply, body: writeChanged(body.toString('utf8'), value, masked) };
}

/** A text that guardrails have read must not be decoded in another way than they did. */
function asUtf8(headers: HeaderList): void {
  const type = headers.get('content-type');
  if (type !== undefined && /;\s*charset\s*=/i.test(type))
    headers.set('content-type', type.replace(/;.*$/s, ''));
}

/**
 * Processes an error response. It is read completely (errors are small): for its error name, which the access log
 * contains, and because some providers echo the gateway's key.
 */
async function rejectedReply(
  ctx: RequestContext,
  call: LlmCall,
  reply: Reply,
  { keyEncodings, guardrails }: ResponseOptions,
): Promise<Reply> {
  const { body: received } = reply;
  if (!(received instanceof UpstreamBody) && typeof received !== 'string') {
    explainRejection(ctx, call, reply);
    return reply;
  }
  // A text was translated, or is of the built-in model.
  const isText = typeof received === 'string';
  const bytes = isText ? Buffer.from(received) : await collectBody(ctx, received, undefined);
  const sent = isText ? undefined : errorEvent(bytes);
  if (sent !== undefined) reply.headers.set('content-type', 'application/json');
  const redacted = isText ? bytes : redactKey(sent ?? bytes, keyEncodings);
  const readable = readableError(call, reply, redacted);
  const cleaned = readable === undefined ? redacted : redactKey(readable, keyEncodings);
  call.providerError = errorInBody(redacted);
  // Of a translated call, they were read before.
  if (call.providerUsage === undefined)
    call.usage = usageIn(formatOf(call.format), membersOf(jsonIn(redacted.toString('utf8'))));
  explainRejection(ctx, call, reply);
  const body =
    guardrails.length === 0 || cleaned.length === 0
      ? cleaned
      : await guardedError(ctx, call, reply, cleaned, guardrails);
  if (body !== bytes) reply.headers.delete('content-length');
  return { ...reply, body };
}

/**
 * The body of an error as guardrails leave it. One that they reject or cannot check is replaced, with the same status: failover
 * and retries of clients depend on it.
 */
async function guardedError(
  ctx: RequestContext,
  call: LlmCall,
  { headers, status }: Reply,
  bytes: Buffer,
  guardrails: readonly ResponseGuard[],
): Promise<Buffer | string> {
  const text = bytes.toString('utf8');
  const value = jsonIn(text);
  // Whatever type the provider gave it: an error in place of a stream is often called a stream.
  const asJson = (changed: string): string => {
    headers.set('content-type', 'application/json');
    return changed;
  };
  try {
    const { texts, replaced } = responseTexts(value, undefined, undefined);
    asUtf8(headers);
    const unique = withoutRepetitions(text, value);
    const asSent = unique === undefined ? bytes : asJson(unique);
    if (texts.length === 0) return asSent;
    const checked = await runGuards(guardrails, 'response', texts, resolverFor(ctx), ctx.signal);
    if (checked.every(({ content }, index) => content === texts[index]?.content)) return asSent;
    const masked = replaced(checked.map(({ content }) => content));
    return asJson(writeChanged(unique ?? text, value, masked));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    ctx.errorDetail = error.detail ?? error.message;
    const message = 'the error of the provider was blocked by a guardrail';
    const code = 'guardrail_intervention';
    return asJson(
      JSON.stringify(formatOf(call.format).errorBody({ status, type: 'guardrail_blocked', code, message })),
    );
  }
}

/**
 * An error in the format of the client's call for one of the provider in another form: no JSON, such as the HTML page of a load
 * balancer, or JSON of a proxy. Undefined if the client can read the provider's own.
 */
function readableError(call: LlmCall, { status, headers }: Reply, bytes: Buffer): Buffer | undefined {
  const isText = isUtf8(bytes);
  const value = isText ? jsonIn(bytes.toString('utf8')) : undefined;
  if (value !== undefined && clientFormatOf(call.format)?.isError?.(value) !== false) return undefined;
  headers.set('content-type', 'application/json');
  const text = value === undefined ? undefined : errorText(value);
  const message = text ?? errorSentence(status, isText ? excerptOf(bytes) : '');
  const type = status < 500 ? 'invalid_request_error' : 'api_error';
  const error = formatOf(call.format).errorBody({ status, type, code: 'upstream_failed', message });
  return Buffer.from(JSON.stringify(error));
}

/** Without a name of the error, the access log would not say that it is the provider's. */
function explainRejection(ctx: RequestContext, { providerError }: LlmCall, { status }: Reply): void {
  if (providerError?.name === undefined)
    ctx.errorDetail ??= `${ctx.endpoint}: the provider responded with HTTP ${status}`;
}
