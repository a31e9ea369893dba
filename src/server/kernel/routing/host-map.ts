/**
 * Values by host name, which is in lower case, `*.example.com` for all names below it, or undefined for any host. An exact
 * name comes before wildcards, a longer wildcard before a shorter one, and any host last.
 */
export class HostMap<T> {
  readonly #exact = new Map<string, T>();
  /** By the name without its `*`, such as `.example.com`. */
  readonly #wildcards = new Map<string, T>();
  /** How long the names in `#wildcards` are, longest first. */
  readonly #lengths: readonly number[];
  readonly #any: T | undefined;

  constructor(values: ReadonlyMap<string | undefined, T>) {
    for (const [hostname, value] of values) {
      if (hostname?.startsWith('*.')) this.#wildcards.set(hostname.slice(1), value);
      else if (hostname !== undefined) this.#exact.set(hostname, value);
    }
    this.#lengths = [...new Set([...this.#wildcards.keys()].map(({ length }) => length))].sort(
      (a, b) => b - a,
    );
    this.#any = values.get(undefined);
  }

  /** What `accept` makes of the first value that is for this host and of which it makes anything. */
  find<U>(host: string, accept: (value: T) => U | undefined): U | undefined {
    const named = this.#exact.get(host);
    const found = named === undefined ? undefined : accept(named);
    if (found !== undefined) return found;
    for (const length of this.#lengths) {
      // A wildcard stands for at least one character.
      const above = length < host.length ? this.#wildcards.get(host.slice(-length)) : undefined;
      const below = above === undefined ? undefined : accept(above);
      if (below !== undefined) return below;
    }
    return this.#any === undefined ? undefined : accept(this.#any);
  }
}
