import { z } from 'zod';
import { configSchema } from './schema.ts';

/** Numbers and booleans may also come from the environment, as in `${PORT:-3000}`, which an editor sees as a text. */
function allowVariables({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  // For our own messages only.
  delete jsonSchema['elsewhere'];
  const { type, description, default: fallback, ...rest } = jsonSchema;
  if (type !== 'integer' && type !== 'number' && type !== 'boolean') return;
  for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
  Object.assign(jsonSchema, {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [
      { type, ...rest },
      { type: 'string', pattern: '\\$' },
    ],
  });
}

/** JSON Schema (draft 7, which editors' YAML support knows) of a configuration file, as an object. */
export function configJsonSchema(): object {
  // 'input': what a person writes, where everything with a default may be left out.
  return z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override: allowVariables,
  });
}
