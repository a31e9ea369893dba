import { isRecord } from '../../../../core/foreign.ts';
import type { Json } from '../../chat/chat-format.ts';

const SCHEMAS = ['items', 'prefixItems', 'anyOf', 'allOf', 'oneOf'];
const NAMED_SCHEMAS = ['properties', '$defs', 'definitions'];

/**
 * The schema of an answer with `additionalProperties: false` in every object: Claude requires it to be said, also on Bedrock,
 * and refuses any other value ("Structured outputs", JSON Schema limitations).
 */
export function closed(schema: Json): Json {
  const written: Record<string, unknown> = { ...schema };
  for (const key of SCHEMAS) {
    const value = schema[key];
    if (Array.isArray(value)) written[key] = value.map(closedIfSchema);
    else if (value !== undefined) written[key] = closedIfSchema(value);
  }
  for (const key of NAMED_SCHEMAS) {
    const value = schema[key];
    if (isRecord(value))
      written[key] = Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, closedIfSchema(each)]),
      );
  }
  const { type } = schema;
  const isObject = type === 'object' || (Array.isArray(type) && type.includes('object'));
  if (isObject) written['additionalProperties'] ??= false;
  return written;
}

function closedIfSchema(value: unknown): unknown {
  return isRecord(value) ? closed(value) : value;
}
