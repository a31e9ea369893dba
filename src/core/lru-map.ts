/**
 * A map of at most `max` entries, with weights of at most `maxWeight` together: entries that were used least recently are
 * removed first.
 */
export class LruMap<Key, Value> {
  readonly #max: number;
  readonly #maxWeight: number;
  /** The least recently used first. */
  readonly #entries = new Map<Key, { readonly value: Value; readonly weight: number }>();
  #weight = 0;
  /** The key at the end of the map. To move it there again would make V8 replace the table. */
  #newest: Key | undefined;

  constructor(max: number, maxWeight = Number.POSITIVE_INFINITY) {
    this.#max = max;
    this.#maxWeight = maxWeight;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry !== undefined && key !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, entry);
      this.#newest = key;
    }
    return entry?.value;
  }

  set(key: Key, value: Value, weight = 0): void {
    this.delete(key);
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    this.#newest = key;
    for (const oldest of this.#entries.keys()) {
      if (this.size <= this.#max && this.#weight <= this.#maxWeight) break;
      this.delete(oldest);
    }
  }

  delete(key: Key): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  values(): Value[] {
    return [...this.#entries.values()].map(({ value }) => value);
  }
}
