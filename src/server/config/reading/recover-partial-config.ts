import { z } from 'zod';
import type { Path } from '../../../core/diagnostic.ts';
import {
  alternatives,
  definition,
  isOptional,
  type Schema,
  schemasAt,
  valueAt,
} from '../../../core/schema/walk.ts';
import { YAML_LIMITS } from '../../../core/yaml/limits.ts';
import type { YamlSource } from '../../../core/yaml/source.ts';
import { CHECK_OPTIONS, findingsOf, pathKey, withoutEmptyMappings } from './check.ts';
import { MAX_FINDINGS } from './finding.ts';

/** The valid part of a file that the schema refuses. */
export interface RecoveredConfig<T> {
  readonly value: T;
  /** Paths of the text that `value` lacks or replaces by something else, including everything inside. */
  readonly damaged: readonly Path[];
  /** The path in the text of a path of `value`, whose lists may have lost entries. */
  sourcePath(path: Path): Path;
}

/**
 * Replaces or removes invalid values of `source` until `schema` accepts the rest, so that later checks can still report
 * problems of that rest. A wrong or missing value is replaced by a placeholder; if none is valid, its key or list entry
 * is removed, and finally its parent. Returns undefined when nothing is left or after `YAML_LIMITS.repairs` rounds.
 * Reports no problems itself: `checkSchema` does.
 */
export function recoverPartialConfig<T>(
  schema: z.ZodType<T>,
  source: YamlSource,
): RecoveredConfig<T> | undefined {
  if (source.value === null || typeof source.value !== 'object' || Array.isArray(source.value))
    return undefined;
  const partial = new PartialConfig(schema, withoutEmptyMappings(schema, source.value).value);
  for (let round = 0; round < YAML_LIMITS.repairs; round++) {
    const result = schema.safeParse(partial.value, CHECK_OPTIONS);
    if (result.success) {
      const damaged = [...source.poisonedPaths(), ...partial.damaged];
      return { value: result.data, damaged, sourcePath: (path) => partial.sourcePath(path) };
    }
    const findings = findingsOf(schema, source, result.error.issues, partial.value);
    // Nobody reads that many problems, and a hostile file would take long to repair.
    if (findings.length >= MAX_FINDINGS) return undefined;
    const places = new Map(findings.map(({ path }) => [pathKey(path), path]));
    for (const path of places.values()) if (!partial.repair(path)) return undefined;
    partial.compactLists();
  }
  return undefined;
}

/** Marks a removed list entry until the list is compacted. */
const REMOVED = Symbol('removed');

class PartialConfig {
  readonly value: unknown;
  readonly damaged: Path[] = [];
  readonly #schema: Schema;
  /** What was done at each path of the text. */
  readonly #done = new Map<string, 'replaced' | 'removed'>();
  /** For lists that lost entries: the original index of each remaining entry. */
  readonly #origins = new WeakMap<readonly unknown[], readonly number[]>();
  readonly #listsToCompact = new Set<unknown[]>();

  constructor(schema: Schema, value: unknown) {
    this.#schema = schema;
    this.value = copy(value);
  }

  sourcePath(path: Path): Path {
    let at = this.value;
    return path.map((segment) => {
      const origin = Array.isArray(at) ? this.#origins.get(at)?.[Number(segment)] : undefined;
      at = valueAt(at, [segment]);
      return origin ?? segment;
    });
  }

  /** Repairs the value at `path` or one of its parents; false if nothing is left to try. */
  repair(path: Path): boolean {
    for (let at = path; at.length > 0; at = at.slice(0, -1)) {
      const holder = valueAt(this.value, at.slice(0, -1));
      // Its parent was already removed because of another problem.
      if (holder === null || typeof holder !== 'object') return true;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a copy of its own, whose members may be replaced
      if (this.#repairAt(holder as Record<string | number, unknown>, at)) return true;
    }
    return false;
  }

  #repairAt(holder: Record<string | number, unknown>, at: Path): boolean {
    const key = at.at(-1);
    if (key === undefined) return false;
    const source = this.sourcePath(at);
    const place = pathKey(source);
    const done = this.#done.get(place);
    const substitute = done === undefined ? placeholder(schemasAt(this.#schema, at)) : undefined;
    if (substitute === undefined && (done === 'removed' || !Object.hasOwn(holder, key))) return false;
    this.damaged.push(source);
    this.#done.set(place, substitute === undefined ? 'removed' : 'replaced');
    if (substitute !== undefined) holder[key] = substitute.value;
    else if (Array.isArray(holder)) {
      holder[Number(key)] = REMOVED;
      this.#listsToCompact.add(holder);
    } else delete holder[key];
    return true;
  }

  /** Closes the gaps in lists that lost entries. */
  compactLists(): void {
    for (const list of this.#listsToCompact) {
      const origins = this.#origins.get(list) ?? list.map((_, index) => index);
      this.#origins.set(
        list,
        origins.filter((_, index) => list[index] !== REMOVED),
      );
      const kept = list.filter((item) => item !== REMOVED);
      for (const [index, item] of kept.entries()) list[index] = item;
      list.length = kept.length;
    }
    this.#listsToCompact.clear();
  }
}

/** Copies values that aliases share, so that each place can be changed on its own. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, copy(child)]));
}

/** Texts that together satisfy the formats used in schemas. `true` is also a valid name and expression. */
const TEXTS = [
  'true',
  '/',
  // Port 0 conflicts with no other port.
  ':0',
  '127.0.0.1',
  '127.0.0.1:0',
  'https://localhost',
  'http://localhost',
  '1s',
  'GET',
  'info',
  '0'.repeat(64),
];

/** Maximum nesting of placeholder mappings; required keys of configurations are not nested deeper. */
const DEPTH = 4;

/** The simplest value that one of the schemas accepts; undefined if none is found. */
function placeholder(schemas: readonly Schema[], depth = 0): { readonly value: unknown } | undefined {
  for (const schema of schemas)
    for (const branch of alternatives(schema))
      for (const value of candidates(branch, depth)) if (z.safeParse(schema, value).success) return { value };
  return undefined;
}

function candidates(schema: Schema, depth: number): readonly unknown[] {
  const { type, values, entries, element } = definition(schema);
  if (values !== undefined) return values;
  if (entries !== undefined) return Object.values(entries);
  switch (type) {
    case 'string':
      return TEXTS;
    case 'number':
      return [0, 1, 1024];
    case 'boolean':
      return [false];
    case 'array': {
      const item = element === undefined || depth >= DEPTH ? undefined : placeholder([element], depth + 1);
      return item === undefined ? [[]] : [[], [item.value]];
    }
    case 'object':
      return [{}, ...(depth >= DEPTH ? [] : [withRequired(schema, depth)])];
    case 'record':
      return [{}];
    default:
      return [];
  }
}

function withRequired(schema: Schema, depth: number): Readonly<Record<string, unknown>> {
  const fields = Object.entries(definition(schema).shape ?? {}).filter(([, field]) => !isOptional(field));
  return Object.fromEntries(
    fields.flatMap(([key, field]) => {
      const found = placeholder([field], depth + 1);
      return found === undefined ? [] : [[key, found.value]];
    }),
  );
}
