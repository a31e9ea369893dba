import { LIMITS } from '../core/limits.ts';
import type { Field } from '../server/observe/request-fields.ts';

/** One request that has ended, with its access-log fields. */
export interface RecentRequest {
  /** Counts from 1; grows by one with each request. */
  readonly id: number;
  /** When it ended, RFC 3339. */
  readonly time: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Kept {
  readonly id: number;
  readonly endedAt: number;
  readonly fields: readonly Field[];
  readonly size: number;
}

/**
 * The last requests, bounded by count and by size. Adding one keeps its fields as they are: they become text only
 * when somebody looks.
 */
export class RecentRequests {
  readonly #kept: (Kept | undefined)[] = [];
  /** Index of the oldest; entries before it are gone. */
  #first = 0;
  #size = 0;
  #count = 0;
  readonly #watchers = new Set<(request: RecentRequest) => void>();

  /** Requests kept, and their size in characters. */
  get length(): number {
    return this.#kept.length - this.#first;
  }

  get size(): number {
    return this.#size;
  }

  add(fields: readonly Field[]): void {
    this.#count += 1;
    const entry: Kept = { id: this.#count, endedAt: Date.now(), fields, size: sizeOf(fields) };
    this.#kept.push(entry);
    this.#size += entry.size;
    while (this.length > LIMITS.recentRequests || (this.#size > LIMITS.recentRequestBytes && this.length > 0))
      this.#dropOldest();
    if (this.#watchers.size === 0) return;
    const shown = show(entry);
    for (const watcher of this.#watchers) watcher(shown);
  }

  /** The newest `limit` requests after `afterId`, oldest first. */
  list(limit: number = LIMITS.recentRequests, afterId = 0): RecentRequest[] {
    return this.#kept
      .slice(this.#first)
      .filter((entry) => entry !== undefined)
      .filter(({ id }) => id > afterId)
      .slice(-limit)
      .map(show);
  }

  /** Tells of every request from now on, until the returned function is called. `watcher` must not throw. */
  watch(watcher: (request: RecentRequest) => void): () => void {
    this.#watchers.add(watcher);
    return () => void this.#watchers.delete(watcher);
  }

  #dropOldest(): void {
    const oldest = this.#kept[this.#first];
    if (oldest === undefined) return;
    this.#size -= oldest.size;
    this.#kept[this.#first] = undefined;
    this.#first += 1;
    // Moving everything up for each request would cost more than a few empty places.
    if (this.#first < 256) return;
    this.#kept.splice(0, this.#first);
    this.#first = 0;
  }
}

function show({ id, endedAt, fields }: Kept): RecentRequest {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    if (value instanceof Uint8Array) shown[name] = Buffer.from(value).toString('base64');
    else if (value !== undefined)
      shown[name] =
        typeof value === 'string' && value.length > LIMITS.logFieldLength
          ? `${value.slice(0, LIMITS.logFieldLength)}…`
          : value;
  }
  return { id, time: new Date(endedAt).toISOString(), fields: shown };
}

/** About how much memory the fields hold: what expressions added may be objects. */
function sizeOf(fields: readonly Field[]): number {
  let size = 0;
  for (const [name, value] of fields) {
    if (value === undefined) continue;
    size += name.length + 8;
    if (typeof value === 'string') size += value.length;
    else if (value instanceof Uint8Array) size += value.byteLength;
    else if (typeof value === 'object' && value !== null) size += JSON.stringify(value).length;
  }
  return size;
}
