import { LIMITS } from '../../core/limits.ts';
import type { LlmCall } from './call.ts';
import { completionOf } from './conversation.ts';
import { errorOf } from './provider-error.ts';
import { saidBytes } from './texts.ts';
import { parseUsage } from './usage.ts';

/**
 * Keeps a copy of an answer on its way to the client, up to a bound, and reads model and usage off it at the end. An
 * object with methods: functions over the call would keep whole requests alive (docs/benchmarks.md).
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

  /** Fills in what the answer says of itself. */
  settle(call: LlmCall): void {
    const chunks = this.#chunks;
    this.#chunks = undefined;
    call.lastTokenAfter = this.#lastAfter;
    const isRead = chunks !== undefined && readNonStreaming(call, Buffer.concat(chunks)) !== undefined;
    // Cut off or too long: all of it is taken for text.
    if (!isRead) call.saidBytes = this.#size;
  }
}

/** Reads model and usage off a whole answer. Returns its JSON; undefined when it is none. */
export function readNonStreaming(call: LlmCall, bytes: Buffer): unknown {
  let value: { model?: unknown; usage?: unknown; error?: unknown } | null;
  try {
    value = JSON.parse(bytes.toString('utf8')) as typeof value;
  } catch {
    return undefined;
  }
  call.progress = 'whole';
  call.providerError = errorOf(value?.error);
  if (call.keepsCompletion === true) call.completion = completionOf(value);
  if (typeof value?.model === 'string') call.responseModel = value.model;
  const usage = parseUsage(value?.usage);
  if (usage === undefined) call.saidBytes = saidBytes(value);
  else call.usage = usage;
  return value;
}
