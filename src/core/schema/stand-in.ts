import type { z } from 'zod';
import { alternatives, definition, isOptional, type Schema } from './walk.ts';

/** Texts that between them fit the forms that schemas ask for. `true` is a name and an expression too. */
const TEXTS = [
  'true',
  '/',
  // Port 0 is no port that anything else could have.
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

/** Mappings in mappings: schemas of configurations are not deeper where something is required. */
const DEPTH = 4;

/** Some value that one of the schemas accepts, as plain as can be; undefined when none is found. */
export function standIn(schemas: readonly Schema[], depth = 0): { readonly value: unknown } | undefined {
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
      const item = element === undefined || depth >= DEPTH ? undefined : standIn([element], depth + 1);
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
      const found = standIn([field], depth + 1);
      return found === undefined ? [] : [[key, found.value]];
    }),
  );
}
