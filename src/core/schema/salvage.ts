import type { z } from 'zod';
import type { Path } from '../diagnostic.ts';
import { YAML_LIMITS } from '../yaml/limits.ts';
import type { YamlSource } from '../yaml/source.ts';
import { withoutEmptyMappings } from './absent.ts';
import { findingsOf, NO_WORDS, pathKey } from './check.ts';
import { MAX_FINDINGS } from './issue.ts';
import { standIn } from './stand-in.ts';
import { type Schema, schemasAt, valueAt } from './walk.ts';

/** What a schema accepts of a file that it refuses as a whole. */
export interface Salvaged<T> {
  readonly value: T;
  /** Places of the text that `value` has nothing of, or has something else for. What is in them counts as damaged too. */
  readonly damaged: readonly Path[];
  /** Where the thing at a path of `value` stands in the text: its lists may have lost entries. */
  written(path: Path): Path;
}

/**
 * Mends the values of `source` until `schema` accepts them, so that checks of a later stage can go on with the rest.
 * A wrong or missing value becomes a plain one that fits; where none does, the key or list entry goes, and at last what
 * holds it. Undefined when nothing is left, or it takes too long. Reports nothing: `checkSchema` does.
 */
export function salvage<T>(schema: z.ZodType<T>, source: YamlSource): Salvaged<T> | undefined {
  if (source.value === null || typeof source.value !== 'object' || Array.isArray(source.value))
    return undefined;
  const remains = new Remains(schema, withoutEmptyMappings(schema, source.value).value);
  for (let round = 0; round < YAML_LIMITS.repairs; round++) {
    const result = schema.safeParse(remains.value, { error: NO_WORDS });
    if (result.success) {
      const damaged = [...source.poisonedPaths(), ...remains.damaged];
      return { value: result.data, damaged, written: (path) => remains.written(path) };
    }
    const findings = findingsOf(schema, source, result.error.issues, remains.value);
    // Nobody reads on after so many, and a hostile file would be mended for long.
    if (findings.length >= MAX_FINDINGS) return undefined;
    const places = new Map(findings.map(({ path }) => [pathKey(path), path]));
    for (const path of places.values()) if (!remains.mend(path)) return undefined;
    remains.close();
  }
  return undefined;
}

/** Stands in a list where an entry went, until the others close up. */
const GAP = Symbol('gap');

class Remains {
  readonly value: unknown;
  readonly damaged: Path[] = [];
  readonly #schema: Schema;
  /** What was done to a place of the text. */
  readonly #done = new Map<string, 'replaced' | 'removed'>();
  /** Of lists that lost entries: where each of the others stands in the text. */
  readonly #origins = new WeakMap<readonly unknown[], readonly number[]>();
  readonly #withGaps = new Set<unknown[]>();

  constructor(schema: Schema, value: unknown) {
    this.#schema = schema;
    this.value = copy(value);
  }

  written(path: Path): Path {
    let at = this.value;
    return path.map((segment) => {
      const origin = Array.isArray(at) ? this.#origins.get(at)?.[Number(segment)] : undefined;
      at = valueAt(at, [segment]);
      return origin ?? segment;
    });
  }

  /** Does something about what is wrong at `path`; false when nothing more can be done. */
  mend(path: Path): boolean {
    for (let at = path; at.length > 0; at = at.slice(0, -1)) {
      const holder = valueAt(this.value, at.slice(0, -1));
      // It went, with all that was in it, for another reason.
      if (holder === null || typeof holder !== 'object') return true;
      if (this.#mendIn(holder as Record<string | number, unknown>, at)) return true;
    }
    return false;
  }

  #mendIn(holder: Record<string | number, unknown>, at: Path): boolean {
    const key = at.at(-1) as string | number;
    const written = this.written(at);
    const place = pathKey(written);
    const done = this.#done.get(place);
    const other = done === undefined ? standIn(schemasAt(this.#schema, at)) : undefined;
    if (other === undefined && (done === 'removed' || !Object.hasOwn(holder, key))) return false;
    this.damaged.push(written);
    this.#done.set(place, other === undefined ? 'removed' : 'replaced');
    if (other !== undefined) holder[key] = other.value;
    else if (Array.isArray(holder)) {
      holder[Number(key)] = GAP;
      this.#withGaps.add(holder);
    } else delete holder[key];
    return true;
  }

  /** Lists close up over their gaps. */
  close(): void {
    for (const list of this.#withGaps) {
      const origins = this.#origins.get(list) ?? list.map((_, index) => index);
      this.#origins.set(
        list,
        origins.filter((_, index) => list[index] !== GAP),
      );
      const kept = list.filter((item) => item !== GAP);
      for (const [index, item] of kept.entries()) list[index] = item;
      list.length = kept.length;
    }
    this.#withGaps.clear();
  }
}

/** Aliases share what they stand for; here each place has its own. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, copy(child)]));
}
