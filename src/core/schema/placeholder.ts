import type { z } from 'zod';
import { alternatives, definition, isOptional, type Schema } from './walk.ts';

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
export function placeholder(schemas: readonly Schema[], depth = 0): { readonly value: unknown } | undefined {
  for (const schema of schemas)
    for (const branch of alternatives(schema))
      for (const value of candidates(branch, depth))
        if ((schema as z.ZodType).safeParse(value).success) return { value };
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
