import type { Json } from '../../chat/chat-format.ts';
import { mapSchemas } from '../../chat/sub-schemas.ts';

/**
 * The schema of an answer with `additionalProperties: false` in every object: Claude requires it to be said, also on Bedrock,
 * and refuses any other value ("Structured outputs", JSON Schema limitations).
 */
export function closed(schema: Json): Json {
  const written = mapSchemas(schema, closed);
  const { type } = schema;
  const isObject = type === 'object' || (Array.isArray(type) && type.includes('object'));
  return isObject ? { ...written, additionalProperties: written['additionalProperties'] ?? false } : written;
}
