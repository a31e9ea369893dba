import { createHmac, randomBytes } from 'node:crypto';
import type { Limits } from '../../../core/limits.ts';
import { partEnds } from './parts.ts';
import { readResultUri, resultUri } from './result-uri.ts';

/** The rest of a result. Its parts count from 2: the first was the answer to the call. */
interface KeptResult {
  readonly id: string;
  readonly bytes: Buffer;
  /** Ends of its parts. */
  readonly ends: readonly number[];
  readonly owner: KeptResults;
}

/** A part of a result that a client reads. */
export interface ResultPart {
  readonly text: string;
  readonly number: number;
  /** Number of parts, with the first. */
  readonly count: number;
  /** URI of the next part, if there is one. */
  readonly next: string | undefined;
}

/** What all sessions of the process keep; over its limit, the oldest result is dropped. */
export class ResultPool {
  readonly maxBytes: number;
  readonly #key: () => Buffer;
  readonly #results = new Set<KeptResult>();
  #bytes = 0;
  #mark: string | undefined;

  /** `key`: of the gateway, for its mark in URIs. Read on first use. */
  constructor(maxBytes: number, key: () => Buffer) {
    this.maxBytes = maxBytes;
    this.#key = key;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The same in all processes with the key, so that each recognizes a result that another one kept. */
  get mark(): string {
    this.#mark ??= createHmac('sha256', this.#key()).update('results').digest('base64url').slice(0, 8);
    return this.#mark;
  }

  add(result: KeptResult): void {
    this.#results.add(result);
    this.#bytes += result.bytes.length;
    for (const oldest of this.#results) {
      if (this.#bytes <= this.maxBytes) return;
      oldest.owner.drop(oldest);
    }
  }

  delete(result: KeptResult): void {
    if (this.#results.delete(result)) this.#bytes -= result.bytes.length;
  }
}

/** The rests of cut results that one session keeps for its client; no other session finds them. */
export class KeptResults {
  readonly #pool: ResultPool;
  readonly #limits: Limits;
  /** Oldest first. */
  readonly #results = new Map<string, KeptResult>();
  #bytes = 0;
  #users = 1;

  constructor(pool: ResultPool, limits: Limits) {
    this.#pool = pool;
    this.#limits = limits;
  }

  get count(): number {
    return this.#results.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Another session of the same caller uses them too. */
  shared(): this {
    this.#users += 1;
    return this;
  }

  /** A session that used them has ended. */
  release(): void {
    this.#users -= 1;
    if (this.#users === 0) for (const result of [...this.#results.values()]) this.drop(result);
  }

  /** Keeps the rest of a result in parts of so many bytes. Undefined if it is too large to be kept. */
  keep(
    bytes: Buffer,
    partBytes: number,
  ): (Pick<ResultPart, 'count'> & { readonly next: string }) | undefined {
    const { keptResults, keptResultBytes } = this.#limits;
    if (bytes.length > Math.min(keptResultBytes, this.#pool.maxBytes) || this.#users === 0) return undefined;
    const id = randomBytes(16).toString('base64url');
    const result: KeptResult = { id, bytes, ends: partEnds(bytes, partBytes), owner: this };
    this.#results.set(id, result);
    this.#bytes += bytes.length;
    for (const oldest of this.#results.values()) {
      if (this.#results.size <= keptResults && this.#bytes <= keptResultBytes) break;
      this.drop(oldest);
    }
    this.#pool.add(result);
    return { count: result.ends.length + 1, next: resultUri(this.#pool.mark, id, 2) };
  }

  drop(result: KeptResult): void {
    if (this.#results.delete(result.id)) this.#bytes -= result.bytes.length;
    this.#pool.delete(result);
  }

  /** Whether the gateway created a URI, for this session or another one. */
  isOwn(uri: string): boolean {
    return readResultUri(uri, this.#pool.mark) !== undefined;
  }

  /** A part by its URI; the number of parts if it has no such part, and undefined if this session does not keep the result. */
  read(uri: string): ResultPart | number | undefined {
    const { id = '', part = 0 } = readResultUri(uri, this.#pool.mark) ?? {};
    const result = this.#results.get(id);
    if (result === undefined) return undefined;
    const { bytes, ends } = result;
    const count = ends.length + 1;
    const end = ends[part - 2];
    if (end === undefined) return count;
    return {
      text: bytes.toString('utf8', ends[part - 3] ?? 0, end),
      number: part,
      count,
      next: part < count ? resultUri(this.#pool.mark, id, part + 1) : undefined,
    };
  }
}
