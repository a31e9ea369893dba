import { jsonIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { errorInChoices } from '../chat/provider-error.ts';
import { errorInEvent, errorOf } from '../errors.ts';
import type { WireFormat } from '../formats/format.ts';
import { formatOf } from '../formats/index.ts';
import { completionOf } from '../formats/output.ts';
import { dataOf } from '../frames.ts';
import { type Members, membersOf } from '../json-members.ts';
import type { LlmCall } from '../llm-call.ts';
import { textBytes } from '../texts.ts';
import { isZero, mergedReport, type Usage } from '../usage.ts';
import { endsStream, hasLastEvent, hasShape, otherShape, saysAnything } from './answer-shape.ts';

/**
 * Keeps a copy of a non-streaming response while it is sent to the client, up to `LIMITS.responseBodyBytes`, and reads
 * model and usage from it at the end. A class, because closures over the call would keep whole requests alive (docs/benchmarks.md).
 */
export class NonStreamingMeter {
  readonly #startedClock: number;
  #chunks: Buffer[] | undefined = [];
  #size = 0;
  #lastAfter = 0;

  constructor(startedClock: number) {
    this.#startedClock = startedClock;
  }

  see(chunk: Buffer): void {
    this.#size += chunk.length;
    this.#lastAfter = performance.now() - this.#startedClock;
    if (this.#size > LIMITS.responseBodyBytes) this.#chunks = undefined;
    this.#chunks?.push(chunk);
  }

  /** Reads the copied response into the call. */
  finalize(call: LlmCall): void {
    const chunks = this.#chunks;
    this.#chunks = undefined;
    call.lastTokenAfter = this.#lastAfter;
    const isRead = chunks !== undefined && readNonStreaming(call, Buffer.concat(chunks)) !== undefined;
    if (isRead) return;
    // Truncated or too long: all bytes count as model output, as far as a model may write so much.
    call.outputBytes = this.#size;
    call.isUnread = true;
  }
}

/** A body without the byte order mark that some servers write and JSON must not have (RFC 8259 section 8.1). */
export const withoutMark = (bytes: Buffer): Buffer =>
  bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    ? bytes.subarray(BYTE_ORDER_MARK.length)
    : bytes;

const BYTE_ORDER_MARK = Buffer.from('\uFEFF');

/**
 * Reads model, usage and errors of a complete response into the call. Returns the parsed JSON; undefined if invalid.
 */
export function readNonStreaming(call: LlmCall, bytes: Buffer): unknown {
  const value = jsonIn(withoutMark(bytes).toString('utf8'));
  if (value === undefined) return undefined;
  const body = membersOf(value) ?? {};
  call.progress = 'complete';
  call.providerError = errorOf(body['error']) ?? errorOf(errorInChoices(body));
  if (call.keepsCompletion === true) call.completion = completionOf(value, call.format);
  const format = formatOf(call.format);
  const { model, background } = format.report(body);
  if (typeof model === 'string') call.responseModel = model;
  if (background === true) call.ranInBackground = true;
  const usage = usageIn(format, body);
  if (usage === undefined || isZero(usage) || call.providerUsage === null)
    call.outputBytes = textBytes(format.output(body));
  if (usage !== undefined && call.providerUsage !== null) call.usage = usage;
  return value;
}

/** The token counts that a response body reports. */
export function usageIn(format: WireFormat, body: Members): Usage | undefined {
  const report = membersOf(format.report(body).usage);
  return report && format.usage(report);
}

/**
 * Reads model, usage and the times of the first and last token from the events of a stream. Parses only events that may
 * contain new information; most events cost a search for a few bytes.
 */
export class StreamMeter {
  readonly #ctx: RequestContext;
  readonly #call: LlmCall;
  readonly #stripsUsage: boolean;
  readonly #format: WireFormat;
  /** The members of all usage reports. */
  #reported: Members = {};
  #count = 0;
  /** Bytes of the last parsed event besides its text. */
  #overhead = 0;
  /** The last events: an error ends a stream, but some providers send `[DONE]`, usage or empty deltas after it. */
  readonly #latest: Buffer[] = [];
  /** What is wrong with the stream, if it is one of another format, or none. */
  otherShape: string | undefined;
  /** Whether an event has said anything in the format of the stream; true if that is not checked. */
  #isOfFormat: boolean;
  /** Whether the stream has told its end; true if it has no event that does. */
  #isOver: boolean;

  constructor(ctx: RequestContext, call: LlmCall, stripsUsage: boolean) {
    this.#ctx = ctx;
    this.#call = call;
    this.#stripsUsage = stripsUsage;
    this.#format = formatOf(call.format);
    this.#isOfFormat = !hasShape(call.format) || call.isUnmetered === true;
    this.#isOver = !hasLastEvent(call.format) || call.isUnmetered === true;
  }

  /** Reads an event. False if it must not be sent to the client: a usage report that only the gateway requested. */
  read(frame: Buffer): boolean {
    const call = this.#call;
    // A comment, such as a ping, is not an event.
    if (frame[0] === COLON && dataOf(frame) === undefined) return true;
    this.#latest.push(frame);
    if (this.#latest.length > LATEST) this.#latest.shift();
    const elapsed = performance.now() - this.#ctx.timings.started;
    const { usageMark } = this.#format;
    const mayReport = usageMark === undefined ? hasReport(frame) : frame.indexOf(usageMark) !== -1;
    const isSample =
      !this.#isOfFormat ||
      this.#count % SAMPLE_INTERVAL === 0 ||
      (this.#overhead === 0 && this.#count < SAMPLE_INTERVAL);
    this.#count += 1;
    if (!mayReport && !isSample) {
      call.lastTokenAfter = elapsed;
      if (this.#overhead > 0 && this.#hasOutput(frame))
        call.outputBytes = (call.outputBytes ?? 0) + Math.max(0, frame.length - this.#overhead);
      return true;
    }
    const data = dataOf(frame);
    if (data === '[DONE]') {
      this.#isOver = true;
      this.#requireEvents();
    }
    if (data === undefined || data === '[DONE]') return true;
    call.lastTokenAfter = elapsed;
    const value = membersOf(jsonIn(data));
    if (value === undefined) return true;
    if (this.otherShape === undefined && hasShape(call.format))
      this.otherShape = otherShape(call.format, value);
    if (!this.#isOfFormat && hasShape(call.format)) this.#isOfFormat = saysAnything(call.format, value);
    this.#isOver ||= endsStream(call.format, value);
    const hasOutput = this.#measure(frame, value);
    if (hasOutput || call.hasNoText) call.firstTokenAfter ??= elapsed;
    const { model, usage: reported, background } = this.#format.report(value);
    if (typeof model === 'string') call.responseModel ??= model;
    if (background === true) call.ranInBackground = true;
    const usage = this.#usage(reported, value);
    if (usage === undefined) return true;
    call.usage = usage;
    return !(this.#stripsUsage && this.#format.isUsageOnly?.(value) === true);
  }

  /** Reads an event. Returns it as the client gets it, if it gets it: without what only the gateway requested. */
  forwarded(frame: Buffer): Buffer | undefined {
    if (!this.read(frame)) return undefined;
    return (this.#stripsUsage ? this.#format.withoutUsage?.(frame) : undefined) ?? frame;
  }

  #hasOutput(frame: Buffer): boolean {
    const { deltaMark } = this.#format;
    return deltaMark === undefined || frame.indexOf(deltaMark) !== -1;
  }

  /** The data of the last event. */
  get lastEvent(): Members | undefined {
    return membersIn(this.#latest.at(-1));
  }

  /** The token counts of all reports so far, which never fall; undefined if this event has none. */
  #usage(reported: unknown, event: Members): Usage | undefined {
    const report = membersOf(reported);
    if (report === undefined) return undefined;
    const before = this.#reported;
    this.#reported = this.#format.addReport?.(before, report, event) ?? mergedReport(before, report);
    return this.#format.usage(this.#reported);
  }

  /** A client that gets no event reads an empty answer from the stream. */
  #requireEvents(): void {
    if (!this.#isOfFormat)
      this.otherShape ??= `the provider ended the stream without an event of ${this.#format.shape?.api}`;
  }

  /** Whether the stream ended without an event that says so. */
  get isCut(): boolean {
    return !this.#isOver;
  }

  /** Reads an error at the end of the stream. Sets `otherShape` if it had no event that says anything. */
  ended(): void {
    this.#requireEvents();
    for (const frame of this.#latest) {
      const data = dataOf(frame);
      const error = data === undefined ? undefined : errorInEvent(data);
      if (error !== undefined) this.#call.providerError = error;
      // Most events are not parsed when they come.
      this.#isOver ||= data === '[DONE]' || endsStream(this.#call.format, membersIn(frame) ?? {});
    }
  }

  /**
   * Counts the text of a parsed event exactly, and returns whether it has any. Between samples it is estimated from the
   * event length.
   */
  #measure(frame: Buffer, value: Members): boolean {
    const bytes = textBytes(this.#format.output(value));
    this.#call.outputBytes = (this.#call.outputBytes ?? 0) + bytes;
    if (bytes > 0) this.#overhead = frame.length - bytes;
    return bytes > 0;
  }
}

/** The object in the data of an event. */
const membersIn = (frame: Buffer | undefined): Members | undefined => {
  const data = frame === undefined ? undefined : dataOf(frame);
  return data === undefined ? undefined : membersOf(jsonIn(data));
};

/** After the last event with output there are one with usage, annotations (Azure), empty deltas and `[DONE]`. */
const LATEST = 4;

/** Every 32nd event is parsed to measure how much of it is text; also all of the first 32 until one has text. */
const SAMPLE_INTERVAL = 32;

const USAGE = Buffer.from('"usage"');
const COLON = 0x3a;

// Most providers send this in every event but the last.
const NO_USAGE = Buffer.from('"usage":null');

/** Whether an event may report usage. An event of `/v1/responses` repeats the request, which may contain the word too. */
function hasReport(frame: Buffer): boolean {
  const at = frame.indexOf(USAGE);
  if (at === -1) return false;
  return frame.indexOf(NO_USAGE) !== at || frame.indexOf(USAGE, at + USAGE.length) !== -1;
}
