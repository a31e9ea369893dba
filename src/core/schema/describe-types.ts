import { alternatives, definition, layerMeta, type Schema } from './walk.ts';

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: 'a string',
  template_literal: 'a string',
  number: 'a number',
  int: 'a whole number',
  nan: 'a number',
  boolean: '`true` or `false`',
  array: 'a list',
  tuple: 'a list',
  object: 'a mapping',
  record: 'a mapping',
  null: 'nothing',
};

/** Describes a type, given its zod name. */
export function describeType(type: string): string {
  return TYPE_WORDS[type] ?? type;
}

/** Describes the kind of a value, never the value itself, which may be a secret. */
export function describeKind(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return 'a string';
  if (typeof value === 'boolean') return `\`${value}\``;
  if (typeof value !== 'number') return 'a mapping';
  if (!Number.isFinite(value)) return 'a number that is not finite';
  return Number.isInteger(value) ? 'a number' : 'a number with a fraction';
}

/** Whether a zod type name matches the kind of value, so that the failed check concerns a detail. */
export function typeFits(type: string, value: unknown): boolean {
  if (Array.isArray(value)) return type === 'array' || type === 'tuple';
  if (value !== null && typeof value === 'object') return type === 'object' || type === 'record';
  if (type === 'enum' || type === 'literal') return true;
  return type === typeof value || (type === 'template_literal' && typeof value === 'string');
}

/** `a`, `a or b`, `a, b or c`. */
export function joinWords(words: readonly string[], conjunction = 'or'): string {
  const unique = [...new Set(words)];
  const last = unique.at(-1) ?? '';
  return unique.length < 2 ? last : `${unique.slice(0, -1).join(', ')} ${conjunction} ${last}`;
}

/** Describes all types that `schema` accepts. */
export function describeSchema(schema: Schema): string {
  return joinWords(alternatives(schema).map(describeAlternative));
}

function describeAlternative(schema: Schema): string {
  const def = definition(schema);
  const values = def.values ?? (def.entries && Object.values(def.entries));
  if (values !== undefined) return joinWords(values.slice(0, 8).map((value) => `\`${String(value)}\``));
  return isWhole(def) ? 'a whole number' : describeType(def.type);
}

/** Whether a number schema accepts whole numbers only: `z.int()` is a format of its own, `.int()` a check. */
function isWhole(def: ReturnType<typeof definition>): boolean {
  return [def, ...(def.checks ?? []).map((check) => check._zod.def)].some(({ format }) =>
    /int/.test(format ?? ''),
  );
}

/** Placeholder for `schema` in an example line, preferably from `.meta({ examples })`. */
export function exampleText(schema: Schema): string {
  const example = layerMeta(schema).flatMap((meta) => meta.examples ?? [])[0];
  if (typeof example === 'string' || typeof example === 'number') return ` ${example}`;
  const [first] = alternatives(schema);
  const def = first && definition(first);
  const value = def?.values?.[0] ?? (def?.entries && Object.values(def.entries)[0]);
  if (value !== undefined) return ` ${String(value)}`;
  const words: Readonly<Record<string, string>> = {
    string: ' <string>',
    number: ' <number>',
    boolean: ' true',
    array: ' [ … ]',
  };
  return words[def?.type ?? ''] ?? ' …';
}
