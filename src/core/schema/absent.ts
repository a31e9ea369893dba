import type { Path } from '../diagnostic.ts';
import { alternatives, childSchemas, definition, isOptional, type Schema } from './walk.ts';

/** A value without the keys that count as absent, and where those stand. */
export interface Present {
  readonly value: unknown;
  readonly absent: readonly Path[];
}

/**
 * Takes the keys out that hold nothing (`policies:`) where the schema has a mapping that may be left out: who empties a
 * section, or comments its lines out, means that there is none. Nothing in place of a text, number or list stays, and is
 * a mistake: a variable that is empty, say.
 */
export function withoutEmptyMappings(schema: Schema, value: unknown): Present {
  const absent: Path[] = [];
  return { value: present([schema], value, [], absent), absent };
}

function present(schemas: readonly Schema[], value: unknown, path: Path, absent: Path[]): unknown {
  if (value === null || typeof value !== 'object') return value;
  if (Array.isArray(value))
    return value.map((item, index) => present(childrenOf(schemas, index), item, [...path, index], absent));
  const entries = Object.entries(value).flatMap(([key, child]): [string, unknown][] => {
    const at = [...path, key];
    const children = childrenOf(schemas, key);
    if (child !== null) return [[key, present(children, child, at, absent)]];
    if (!children.some(isOptionalMapping)) return [[key, child]];
    absent.push(at);
    return [];
  });
  return Object.fromEntries(entries);
}

function childrenOf(schemas: readonly Schema[], segment: string | number): Schema[] {
  return schemas.flatMap((schema) => childSchemas(schema, segment));
}

function isOptionalMapping(schema: Schema): boolean {
  return (
    isOptional(schema) &&
    alternatives(schema).every((each) => ['object', 'record'].includes(definition(each).type))
  );
}
