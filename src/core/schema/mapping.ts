import { exampleText } from './describe-types.ts';
import {
  alternatives,
  definition,
  isOptional,
  keysOf,
  layerMeta,
  objectSchemas,
  type Schema,
} from './walk.ts';

/** How to write the mapping that is expected instead of another value. */
interface MappingAdvice {
  readonly help: string;
  readonly notes: readonly string[];
}

/**
 * Advice for a value where one of `schemas` expects a mapping; undefined if none of them has named keys.
 *
 * @param value The value, if it may be displayed: the example puts it under the key that accepts it.
 */
export function mappingAdvice(schemas: readonly Schema[], value: unknown): MappingAdvice | undefined {
  const objects = objectSchemas(schemas);
  const keys = keysOf(objects);
  if (keys.length === 0) return undefined;
  const field = (key: string): Schema | undefined =>
    objects.map((each) => definition(each).shape?.[key]).find((schema) => schema !== undefined);
  // The default of the mapping shows its usual key; required keys come next.
  const usual = Object.keys(defaultOf(schemas) ?? {});
  const needed = keys.filter((key) => !isOptional(field(key) as Schema));
  const ranked = [...new Set([...usual, ...needed, ...keys])];
  const takers = isPlainWord(value) ? ranked.filter((key) => accepts(field(key), value)) : [];
  // A value that could be a misplaced secret is not repeated.
  const taking = takers.some((key) => isSecret(field(key))) ? undefined : takers[0];
  const example =
    taking === undefined
      ? `${ranked[0]}:${exampleText(field(ranked[0] as string) as Schema)}`
      : `${taking}: ${String(value)}`;
  return {
    help: `write a mapping, such as \`{ ${example} }\``,
    notes: [`fields allowed here: ${keys.join(', ')}`],
  };
}

function accepts(schema: Schema | undefined, value: unknown): boolean {
  const { safeParse } = (schema ?? {}) as { safeParse?: (value: unknown) => { success: boolean } };
  return safeParse?.(value).success === true;
}

function isSecret(schema: Schema | undefined): boolean {
  return schema !== undefined && layerMeta(schema).some(({ secret }) => secret === true);
}

/** Text with a space is often more than one value: a command with its arguments. */
function isPlainWord(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value) && /^[\w./:-]{1,60}$/.test(String(value));
}

function defaultOf(schemas: readonly Schema[]): object | undefined {
  const layers: Schema[] = [];
  for (const schema of schemas) alternatives(schema, layers);
  return layers
    .map((layer) => (layer._zod.def as { defaultValue?: unknown }).defaultValue)
    .find((value): value is object => typeof value === 'object' && value !== null);
}
