import { isRecord } from '../../../core/foreign.ts';

/**
 * Whether OpenAI accepts a JSON Schema with `strict`: each object lists all its properties as required and allows no
 * others. https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function isStrictSchema(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every(isStrictSchema);
  if (!isRecord(schema)) return true;
  const { type, properties, required, additionalProperties, ...others } = schema;
  const isObjectType = type === 'object' || properties !== undefined;
  if (!isObjectType) return Object.values(others).every(isStrictSchema);
  const names = Object.keys(properties ?? {});
  const isClosed = additionalProperties === false;
  const areRequired = names.every((name) => Array.isArray(required) && required.includes(name));
  return (
    isClosed && areRequired && Object.values(properties ?? {}).every(isStrictSchema) && isStrictSchema(others)
  );
}
