import type { Exchange } from '../http/exchange.ts';
import { dataOf } from './frames.ts';
import type { LlmCall } from './log-fields.ts';
import { parseUsage } from './usage.ts';

/**
 * Reads what the log wants off the events of a stream: model, usage, time of the first and last token. Looks into
 * an event's JSON only where it may hold something new, so that most cost a search for a few bytes.
 */
export class StreamMeter {
  readonly #x: Exchange;
  readonly #call: LlmCall;
  readonly #stripsUsage: boolean;

  constructor(x: Exchange, call: LlmCall, stripsUsage: boolean) {
    this.#x = x;
    this.#call = call;
    this.#stripsUsage = stripsUsage;
  }

  /** Whether the event goes on to the client: one that is there only because we asked for usage does not. */
  read(frame: Buffer): boolean {
    const call = this.#call;
    const elapsed = performance.now() - this.#x.startedClock;
    const isFirst = call.responseModel === undefined;
    if (!isFirst && (frame.indexOf(USAGE) === -1 || frame.indexOf(NO_USAGE) !== -1)) {
      call.lastTokenAfter = elapsed;
      return true;
    }
    const data = dataOf(frame);
    if (data === undefined || data === '[DONE]') return true;
    call.firstTokenAfter ??= elapsed;
    call.lastTokenAfter = elapsed;
    const value = parse(data);
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
}

const USAGE = Buffer.from('"usage"');
// What most providers write into every event but the last.
const NO_USAGE = Buffer.from('"usage":null');

function parse(data: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(data) as unknown;
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
