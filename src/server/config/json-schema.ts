import { z } from 'zod';
import { configSchema } from './schema.ts';

/** Formats of JSON Schema (draft 7, section 7.3). Zod also uses formats that are not in the standard. */
const STANDARD_FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'date', 'time', 'email', 'hostname', 'ipv4', 'ipv6'],
  ...['uri', 'uri-reference', 'uri-template', 'json-pointer', 'regex'],
]);

/** Validators warn about unknown formats or reject the schema. The `pattern` has the same information. */
function dropOwnFormats({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (typeof jsonSchema.format === 'string' && !STANDARD_FORMATS.has(jsonSchema.format))
    delete jsonSchema.format;
}

/** Numbers and booleans can also be set from the environment, as in `${PORT:-3000}`, which is a string to an editor. */
function allowVariables({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  // Only used for error messages of agctl.
  delete jsonSchema['elsewhere'];
  delete jsonSchema['foreignNames'];
  delete jsonSchema['isSwitch'];
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

/** An optional mapping may be null, which means that it is absent (`server/config/reading/check.ts`). */
function allowEmptyMappings({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  for (const [key, member] of Object.entries(jsonSchema.properties ?? {}))
    if (typeof member === 'object' && member.type === 'object' && !jsonSchema.required?.includes(key))
      Object.assign(member, { type: ['object', 'null'] });
}

/** Zod leaves out the examples of types that are converted, because they might be converted ones; ours are as written. */
function keepExamples({ zodSchema, jsonSchema }: Overridden): void {
  const examples = z.globalRegistry.get(zodSchema)?.['examples'];
  if (Array.isArray(examples)) jsonSchema['examples'] = examples;
}

/** A type, and the JSON Schema that was made of it. */
interface Overridden {
  readonly zodSchema: z.core.$ZodTypes;
  readonly jsonSchema: z.core.JSONSchema.BaseSchema;
}

/** JSON Schema of a configuration file (draft 7, which YAML extensions of editors support). */
export function configJsonSchema(): object {
  // 'input': the type before defaults are applied, where keys with a default are optional.
  return z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override(context) {
      keepExamples(context);
      dropOwnFormats(context);
      allowVariables(context);
      allowEmptyMappings(context);
    },
  });
}
