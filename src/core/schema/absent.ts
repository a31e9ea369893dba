import type { Path } from '../diagnostic.ts';
import { alternatives, childSchemas, definition, isOptional, type Schema } from './walk.ts';

/** A value without the keys that count as absent, and the paths of those keys. */
export interface WithoutEmpty {
  readonly value: unknown;
  readonly absent: readonly Path[];
}

/**
 * Removes keys without a value (`policies:`) where the schema has an optional mapping: a user who empties a section, or
 * comments out its lines, means that there is none. A missing text, number or list is kept, because it is a mistake,
 * for example an empty variable.
 */
export function withoutEmptyMappings(schema: Schema, value: unknown): WithoutEmpty {
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
