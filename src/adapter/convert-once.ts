import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import type { z } from 'zod';

type Direction = 'input' | 'output';

/**
 * The same schema, whose JSON Schema is made once. The SDK asks for it with every server, which is with every request
 * here; making it anew was most of the time of `tools/list`.
 */
export function convertOnce(schema: z.ZodObject): StandardSchemaWithJSON {
  const standard = schema['~standard'] as StandardSchemaWithJSON['~standard'];
  const made = new Map<Direction, Record<string, unknown>>();
  const make =
    (direction: Direction) =>
    (options: { readonly target: never }): Record<string, unknown> => {
      const known = made.get(direction);
      if (known !== undefined) return known;
      const converted = standard.jsonSchema[direction](options);
      made.set(direction, converted);
      return converted;
    };
  return {
    '~standard': { ...standard, jsonSchema: { input: make('input'), output: make('output') } },
  } as never;
}
