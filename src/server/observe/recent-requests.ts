import { elementsOf, parseJson, textIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { FieldValue } from '../kernel/fact.ts';
import type { Field } from './request-fields.ts';

/** One finished request, with its access-log fields. */
export interface RecentRequest {
  /** Counts from 1 and increases by one with each request. */
  readonly id: number;
  /** When it finished, RFC 3339. */
  readonly time: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/**
 * The last requests: at most `LIMITS.recentRequests` of them, with at most `LIMITS.recentRequestBytes` of text.
 *
 * Their texts are in a ring buffer outside of the JavaScript heap. As objects, they survived every collection of the
 * young generation, which made a collection six times as long and a plain GET up to twice as expensive.
 */
export class RecentRequests {
  readonly #text = Buffer.allocUnsafeSlow(LIMITS.recentRequestBytes);
  /** Start of request `id`, at index `id % LIMITS.recentRequests`. */
  readonly #starts = new Uint32Array(LIMITS.recentRequests);
  readonly #ends = new Uint32Array(LIMITS.recentRequests);
  readonly #endedAt = new Float64Array(LIMITS.recentRequests);
  /** Id of the oldest request that is kept, and of the newest one; `#newest + 1` if none is kept. */
  #oldest = 1;
  #newest = 0;
  /** Where the next text is written. */
  #next = 0;
  readonly #watchers = new Set<(request: RecentRequest) => void>();

  /** Number of requests that are kept. */
  get length(): number {
    return this.#newest - this.#oldest + 1;
  }

  /** Bytes of their text. */
  get size(): number {
    let size = 0;
    for (let id = this.#oldest; id <= this.#newest; id += 1) {
      const slot = id % LIMITS.recentRequests;
      size += (this.#ends[slot] ?? 0) - (this.#starts[slot] ?? 0);
    }
    return size;
  }

  /** Adds the fields of a request that has just finished. */
  add(fields: readonly Field[]): void {
    this.addFinished(fields, Date.now());
  }

  /** The same for one that finished at `endedAt`, in ms since 1970. */
  addFinished(fields: readonly Field[], endedAt: number): void {
    const text = JSON.stringify(shortened(fields));
    const start = this.#makeRoom(text.length * UTF8_BYTES);
    this.#next = start + this.#text.write(text, start);
    this.#newest += 1;
    const slot = this.#newest % LIMITS.recentRequests;
    this.#starts[slot] = start;
    this.#ends[slot] = this.#next;
    this.#endedAt[slot] = endedAt;
    if (this.#watchers.size === 0) return;
    const shown = this.#read(this.#newest);
    for (const watcher of this.#watchers) watcher(shown);
  }

  /** The newest `limit` requests after `afterId`, oldest first. */
  list(limit: number = LIMITS.recentRequests, afterId = 0): RecentRequest[] {
    const first = Math.max(this.#oldest, afterId + 1, this.#newest - limit + 1);
    return Array.from({ length: Math.max(0, this.#newest - first + 1) }, (_, index) =>
      this.#read(first + index),
    );
  }

  /** Calls `watcher` for every further request, until the returned function is called. `watcher` must not throw. */
  watch(watcher: (request: RecentRequest) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  /**
   * Drops the oldest requests until there is a free slot and `bytes` consecutive free bytes; returns where those start.
   */
  #makeRoom(bytes: number): number {
    if (this.length === LIMITS.recentRequests) this.#oldest += 1;
    let start = this.#next;
    if (start + bytes > this.#text.length) {
      this.#forgetWithin(start, this.#text.length);
      start = 0;
    }
    this.#forgetWithin(start, start + bytes);
    return start;
  }

  /** Texts are stored in the order of their ids, so the texts in the way of the next one are the oldest. */
  #forgetWithin(from: number, to: number): void {
    while (this.#oldest <= this.#newest) {
      const start = this.#starts[this.#oldest % LIMITS.recentRequests] ?? 0;
      if (start < from || start >= to) return;
      this.#oldest += 1;
    }
  }

  #read(id: number): RecentRequest {
    const slot = id % LIMITS.recentRequests;
    const text = this.#text.toString('utf8', this.#starts[slot], this.#ends[slot]);
    const flat = elementsOf(parseJson(text));
    const fields: Record<string, unknown> = {};
    for (let at = 0; at < flat.length; at += 2) fields[textIn(flat[at])] = flat[at + 1];
    return { id, time: new Date(this.#endedAt[slot] ?? 0).toISOString(), fields };
  }
}

/** Maximum UTF-8 bytes of a UTF-16 code unit. */
const UTF8_BYTES = 3;

/**
 * Alternating names and values, without undefined ones: a flat list is the cheapest to serialize. A value longer than
 * `LIMITS.logFieldLength` is cut, and fields beyond `LIMITS.recentRequestLength` in total are left out.
 */
function shortened(fields: readonly Field[]): unknown[] {
  const flat: unknown[] = [];
  let left: number = LIMITS.recentRequestLength;
  // By index, because destructuring each field in the loop's head costs as much as the rest of it.
  for (let index = 0; index < fields.length; index += 1) {
    const field = fields[index];
    const value = field?.[1];
    if (field === undefined || value === undefined) continue;
    const text = typeof value === 'string' ? value : textOf(value);
    const isLong = text.length > LIMITS.logFieldLength;
    left -= field[0].length + (isLong ? LIMITS.logFieldLength : text.length);
    if (left < 0) break;
    // A short number, list or object is kept unchanged.
    if (isLong) flat.push(field[0], `${text.slice(0, LIMITS.logFieldLength)}…`);
    else flat.push(field[0], value instanceof Uint8Array ? text : value);
  }
  return flat;
}

function textOf(value: Exclude<FieldValue, string | undefined>): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
