import type { Limits } from '../../../core/limits.ts';

type Bounds = Pick<Limits, 'subscriptions' | 'subscriptionCharacters'>;

/** URIs of the resources that one client subscribed to at one target, bounded in number and length. */
export class SubscribedResources {
  readonly #bounds: Bounds;
  readonly #uris = new Set<string>();
  #characters = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#uris.size;
  }

  has(uri: string): boolean {
    return this.#uris.has(uri);
  }

  /** Adds a resource, or returns an error message if that would exceed a limit. */
  add(uri: string): string | undefined {
    if (this.#uris.has(uri)) return undefined;
    const problem = subscriptionProblem(this.#uris.size + 1, this.#characters + uri.length, this.#bounds);
    if (problem !== undefined) return problem;
    this.#uris.add(uri);
    this.#characters += uri.length;
    return undefined;
  }

  /** Adds a resource as the newest, and removes the oldest ones until there is room. One that is too long is not added. */
  addNewest(uri: string): void {
    this.delete(uri);
    if (subscriptionProblem(1, uri.length, this.#bounds) !== undefined) return;
    while (this.add(uri) !== undefined) {
      const [oldest] = this.#uris;
      if (oldest === undefined) return;
      this.delete(oldest);
    }
  }

  delete(uri: string): void {
    if (this.#uris.delete(uri)) this.#characters -= uri.length;
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.#uris.values();
  }
}

/** Text of the error for so many subscriptions, whose URIs have so many characters; undefined within the bounds. */
export function subscriptionProblem(
  count: number,
  characters: number,
  { subscriptions, subscriptionCharacters }: Bounds,
): string | undefined {
  if (count > subscriptions) return `more than ${subscriptions} subscriptions`;
  if (characters > subscriptionCharacters)
    return `subscriptions to URIs of more than ${subscriptionCharacters} characters altogether`;
  return undefined;
}
