import { z } from 'zod';
import { configSchema } from './schema.ts';

/** Formats of JSON Schema (draft 7, section 7.3). Zod has names of its own beside them. */
const STANDARD_FORMATS: ReadonlySet<unknown> = new Set([
  ...['date-time', 'date', 'time', 'email', 'hostname', 'ipv4', 'ipv6'],
  ...['uri', 'uri-reference', 'uri-template', 'json-pointer', 'regex'],
]);

/** Checkers of JSON Schema warn of a format that they do not know, or refuse the schema; its `pattern` says it too. */
function dropOwnFormats({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (typeof jsonSchema.format === 'string' && !STANDARD_FORMATS.has(jsonSchema.format))
    delete jsonSchema.format;
}

/** Numbers and booleans may also come from the environment, as in `${PORT:-3000}`, which an editor sees as a text. */
function allowVariables({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  // For our own messages only.
  delete jsonSchema['elsewhere'];
  delete jsonSchema['foreignNames'];
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

/** Nothing in place of a mapping that may be left out means that it is (`core/schema/absent.ts`). */
function allowEmptyMappings({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  for (const [key, member] of Object.entries(jsonSchema.properties ?? {}))
    if (typeof member === 'object' && member.type === 'object' && !jsonSchema.required?.includes(key))
      (member as { type: unknown }).type = ['object', 'null'];
}

/** JSON Schema (draft 7, which editors' YAML support knows) of a configuration file, as an object. */
export function configJsonSchema(): object {
  // 'input': what a person writes, where everything with a default may be left out.
  return z.toJSONSchema(configSchema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override(context) {
      dropOwnFormats(context);
      allowVariables(context);
      allowEmptyMappings(context);
    },
  });
}
