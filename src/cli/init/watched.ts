import { isRecord } from '../../core/foreign.ts';

/** A member of a file that nothing has asked for. */
export interface Unread {
  readonly path: readonly (string | number)[];
  readonly value: unknown;
  /** It was asked for and has another type than what has asked expects, so that nothing was read from it. */
  readonly isMistyped: boolean;
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

  /**
   * Members that were never asked for, without what is inside of them. `skip`: parts that are left out as a whole. `nested`: names of
   * members that are lists or objects.
   */
  unread(value: unknown, skip: (path: Unread['path']) => boolean, nested: ReadonlySet<string>): Unread[] {
    return [...this.#unreadIn(value, [], { skip, nested, visited: new Set() })];
  }

  *#unreadIn(value: unknown, path: Unread['path'], at: Walk): Generator<Unread> {
    const { skip, nested, visited } = at;
    // Aliases of YAML are one object, which may be inside of itself.
    if (typeof value !== 'object' || value === null || visited.has(value) || skip(path)) return;
    visited.add(value);
    if (Array.isArray(value))
      for (const [index, each] of value.entries()) yield* this.#unreadIn(each, [...path, index], at);
    if (!isRecord(value)) return;
    const read = this.#read.get(value);
    for (const [key, each] of Object.entries(value)) {
      const inner = [...path, key];
      const isRead = read?.has(key) === true;
      const isMistyped = isRead && this.#isMistyped(each, nested.has(key));
      if (isRead && !isMistyped) yield* this.#unreadIn(each, inner, at);
      else if (!skip(inner)) yield { path: inner, value: each, isMistyped };
    }
  }

  /** A list of which an object was expected, or the other way round, is asked for nothing inside of it. */
  #isMistyped(value: unknown, isNested: boolean): boolean {
    if (typeof value !== 'object' || value === null) return isNested && value !== null;
    return Object.keys(value).length > 0 && this.#read.get(value)?.size === 0;
  }
}

interface Walk {
  readonly skip: (path: Unread['path']) => boolean;
  readonly nested: ReadonlySet<string>;
  readonly visited: Set<object>;
}
