import type { RequestContext } from '../kernel/request-context.ts';
import type { LlmCall } from './call.ts';
import { dataOf } from './frames.ts';
import { membersOf, parseOrNothing } from './json-members.ts';
import { errorInEvent } from './provider-error.ts';
import { saidBytes } from './texts.ts';
import { parseUsage } from './usage.ts';

/**
 * Reads what the log wants off the events of a stream: model, usage, time of the first and last token. Looks into
 * an event's JSON only where it may hold something new, so that most cost a search for a few bytes.
 */
export class StreamMeter {
  readonly #ctx: RequestContext;
  readonly #call: LlmCall;
  readonly #stripsUsage: boolean;
  #count = 0;
  /** Bytes of an event besides what it says, by the last event that was parsed. */
  #overhead = 0;
  /** The last event, and the one before: an error ends a stream, and some providers send `[DONE]` behind it. */
  #last: Buffer | undefined;
  #before: Buffer | undefined;

  constructor(ctx: RequestContext, call: LlmCall, stripsUsage: boolean) {
    this.#ctx = ctx;
    this.#call = call;
    this.#stripsUsage = stripsUsage;
  }

  /** Whether the event goes on to the client: one that is there only because we asked for usage does not. */
  read(frame: Buffer): boolean {
    const call = this.#call;
    this.#before = this.#last;
    this.#last = frame;
    const elapsed = performance.now() - this.#ctx.timings.started;
    const mayReport = frame.indexOf(USAGE) !== -1 && frame.indexOf(NO_USAGE) === -1;
    const isSample = this.#count % SAMPLE === 0 || (this.#overhead === 0 && this.#count < SAMPLE);
    this.#count += 1;
    if (!mayReport && !isSample) {
      call.lastTokenAfter = elapsed;
      if (this.#overhead > 0)
        call.saidBytes = (call.saidBytes ?? 0) + Math.max(0, frame.length - this.#overhead);
      return true;
    }
    const data = dataOf(frame);
    if (data === undefined || data === '[DONE]') return true;
    call.firstTokenAfter ??= elapsed;
    call.lastTokenAfter = elapsed;
    const value = membersOf(parseOrNothing(data));
    this.#measure(frame, value);
    // Events of `/v1/responses` carry the response, with its model and usage, inside.
    const source = (typeof value?.['response'] === 'object' ? value['response'] : value) as
      | Record<string, unknown>
      | undefined
      | null;
    if (typeof source?.['model'] === 'string') call.responseModel ??= source['model'];
    const usage = parseUsage(source?.['usage']);
    if (usage === undefined) return true;
    call.usage = usage;
    return !(this.#stripsUsage && Array.isArray(value?.['choices']) && value['choices'].length === 0);
  }

  /** Looks whether the stream ended with an error. */
  ended(): void {
    for (const frame of [this.#before, this.#last]) {
      const data = frame === undefined ? undefined : dataOf(frame);
      const error = data === undefined ? undefined : errorInEvent(data);
      if (error !== undefined) this.#call.providerError = error;
    }
  }

  /** What is said is counted exactly here, and by the length of the event between two samples. */
  #measure(frame: Buffer, value: unknown): void {
    const said = saidBytes(value);
    this.#call.saidBytes = (this.#call.saidBytes ?? 0) + said;
    if (said > 0) this.#overhead = frame.length - said;
  }
}

/** One event of so many is parsed only to see how much of it is text; the first ones until there is some. */
const SAMPLE = 32;

const USAGE = Buffer.from('"usage"');
// What most providers write into every event but the last.
const NO_USAGE = Buffer.from('"usage":null');
