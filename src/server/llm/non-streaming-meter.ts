import { LIMITS } from '../../core/limits.ts';
import type { LlmCall } from './call.ts';
import { completionOf } from './conversation.ts';
import { errorOf } from './provider-error.ts';
import { outputTextBytes } from './texts.ts';
import { parseUsage } from './usage.ts';

/**
 * Copies a non-streaming response on its way to the client, up to `LIMITS.responseBodyBytes`, and reads model and usage
 * from it at the end. A class, because closures over the call would keep whole requests alive (docs/benchmarks.md).
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
    // Truncated or too long: all bytes count as model output.
    if (!isRead) call.outputBytes = this.#size;
  }
}

/**
 * Reads model, usage and errors of a complete response into the call. Returns the parsed JSON; undefined if invalid.
 */
export function readNonStreaming(call: LlmCall, bytes: Buffer): unknown {
  let value: { model?: unknown; usage?: unknown; error?: unknown } | null;
  try {
    value = JSON.parse(bytes.toString('utf8')) as typeof value;
  } catch {
    return undefined;
  }
  call.progress = 'complete';
  call.providerError = errorOf(value?.error);
  if (call.keepsCompletion === true) call.completion = completionOf(value);
  if (typeof value?.model === 'string') call.responseModel = value.model;
  const usage = parseUsage(value?.usage);
  if (usage === undefined) call.outputBytes = outputTextBytes(value);
  else call.usage = usage;
  return value;
}
