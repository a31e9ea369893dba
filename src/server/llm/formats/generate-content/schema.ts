import { elementsOf } from '../../../../core/foreign.ts';
import type { Json } from '../../chat/chat-format.ts';

/** Keywords of Google's `Schema` that JSON Schema does not have and that constrain nothing. */
const HINTS = new Set(['propertyOrdering', 'example']);

/** Integers of the type int64, which proto3 JSON writes as strings. */
const INTEGERS = new Set([
  'minItems',
  'maxItems',
  'minLength',
  'maxLength',
  'minProperties',
  'maxProperties',
]);

/**
 * JSON Schema of a `Schema` of the Gemini API, a subset of OpenAPI 3.0: names of types are in upper case, and null is
 * allowed by `nullable`.
 */
export function jsonSchemaOf(schema: Json): Json {
  const { type, nullable, ...rest } = schema;
  const members = Object.entries(rest)
    .filter(([key]) => !HINTS.has(key))
    .map(([key, value]) => [key, keywordOf(key, value)] as const);
  const name = typeof type === 'string' && type !== 'TYPE_UNSPECIFIED' ? type.toLowerCase() : undefined;
  return {
    ...(name === undefined ? {} : { type: nullable === true ? [name, 'null'] : name }),
    ...Object.fromEntries(members),
  };
}

function keywordOf(key: string, value: unknown): unknown {
  if (INTEGERS.has(key) && typeof value === 'string') return Number(value);
  if (key === 'items' && isObject(value)) return jsonSchemaOf(value);
  if (key === 'anyOf' && Array.isArray(value))
    return elementsOf(value).map((item) => (isObject(item) ? jsonSchemaOf(item) : item));
  if (key === 'properties' && isObject(value))
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [name, isObject(item) ? jsonSchemaOf(item) : item]),
    );
  return value;
}

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
