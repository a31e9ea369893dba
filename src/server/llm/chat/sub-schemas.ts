import { isRecord } from '../../../core/foreign.ts';
import type { Json } from './chat-format.ts';

/** Members of a JSON Schema that are schemas or lists of them; the values of others, such as `default`, are data. */
const SCHEMAS = [
  'items',
  'prefixItems',
  'additionalItems',
  'contains',
  'additionalProperties',
  'propertyNames',
  'anyOf',
  'allOf',
  'oneOf',
  'not',
  'if',
  'then',
  'else',
];
const NAMED_SCHEMAS = ['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** A copy of a JSON Schema in which each schema directly inside it is replaced. */
export function mapSchemas(schema: Json, replaced: (schema: Json) => Json): Json {
  const replacedIn = (value: unknown): unknown => (isRecord(value) ? replaced(value) : value);
  const written: Record<string, unknown> = { ...schema };
  for (const key of SCHEMAS) {
    const value = schema[key];
    if (Array.isArray(value)) written[key] = value.map(replacedIn);
    else if (isRecord(value)) written[key] = replaced(value);
  }
  for (const key of NAMED_SCHEMAS) {
    const value = schema[key];
    if (isRecord(value))
      written[key] = Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, replacedIn(each)]),
      );
  }
  return written;
}
