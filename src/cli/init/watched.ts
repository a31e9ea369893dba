import { isRecord } from '../../core/foreign.ts';

/** A member of a file that nothing has asked for. */
export interface Unread {
  readonly path: readonly (string | number)[];
  readonly value: unknown;
}

/**
 * Remembers which members of a foreign file were asked for, so that what an import does not know cannot be lost silently: a list of
 * known names has to be kept beside the code that reads them, and is forgotten for some object. A copy (`{ ...entry }`, `Object.entries`)
 * asks for all members.
 */
export class Watched {
  readonly #read = new Map<object, Set<string>>();
  readonly #views = new Map<object, object>();

  /** A view of a value, with the same members. What is asked of it is remembered. */
  view(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const known = this.#views.get(value);
    if (known !== undefined) return known;
    const read = new Set<string>();
    this.#read.set(value, read);
    const view = new Proxy(value, {
      get: (target, key) => {
        if (typeof key === 'string') read.add(key);
        return this.view(Reflect.get(target, key));
      },
    });
    this.#views.set(value, view);
    return view;
  }

  /** Members that were never asked for, without what is inside of them. `skip`: parts that are left out as a whole. */
  unread(value: unknown, skip: (path: Unread['path']) => boolean): Unread[] {
    return [...this.#unreadIn(value, [], skip, new Set())];
  }

  *#unreadIn(
    value: unknown,
    path: Unread['path'],
    skip: (path: Unread['path']) => boolean,
    visited: Set<object>,
  ): Generator<Unread> {
    // Aliases of YAML are one object, which may be inside of itself.
    if (typeof value !== 'object' || value === null || visited.has(value) || skip(path)) return;
    visited.add(value);
    if (Array.isArray(value))
      for (const [index, each] of value.entries())
        yield* this.#unreadIn(each, [...path, index], skip, visited);
    if (!isRecord(value)) return;
    const read = this.#read.get(value);
    for (const [key, each] of Object.entries(value)) {
      const at = [...path, key];
      if (read?.has(key) === true) yield* this.#unreadIn(each, at, skip, visited);
      else if (!skip(at)) yield { path: at, value: each };
    }
  }
}
