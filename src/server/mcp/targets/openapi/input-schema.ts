import { membersOf } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import {
  DocumentError,
  isObject,
  type Json,
  member,
  type OpenApiDocument,
  REFERENCE_HOPS,
  referenced,
  shown,
} from './document.ts';

/** JSON Schema 2020-12, as clients and models read it. */
export type JsonSchema = Json | boolean;

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => typeof value === 'number' && value >= 0;
const isNumber = (value: unknown): boolean => typeof value === 'number';
const isFlag = (value: unknown): boolean => typeof value === 'boolean';
const isAnything = (): boolean => true;
const isNames = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);

/** JSON Schema 2020-12 §6.3.3: readers compile patterns with the flag `u`, which is stricter. */
const isPattern = (value: unknown): boolean => {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') !== undefined;
  } catch {
    return false;
  }
};

const TYPES: ReadonlySet<unknown> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
  'object',
  'array',
  'null',
]);
const isType = (value: unknown): boolean =>
  Array.isArray(value) ? value.length > 0 && value.every(isType) : TYPES.has(value);

/**
 * Keywords that are copied, with a check of their value: providers of models reject a tool with an invalid schema, and with
 * it the whole request. Keywords of OpenAPI (`xml`, `discriminator`, `x-…`) and those that change what a `$ref` means
 * (`$id`, `$anchor`) are left out.
 */
const COPIED: ReadonlyMap<string, (value: unknown) => boolean> = new Map([
  ['type', isType],
  ['enum', Array.isArray],
  ['const', isAnything],
  ['default', isAnything],
  ['title', isText],
  ['description', isText],
  ['format', isText],
  ['pattern', isPattern],
  ['contentEncoding', isText],
  ['contentMediaType', isText],
  ['multipleOf', isNumber],
  ['minimum', isNumber],
  ['maximum', isNumber],
  ['exclusiveMinimum', isNumber],
  ['exclusiveMaximum', isNumber],
  ['minLength', isCount],
  ['maxLength', isCount],
  ['minItems', isCount],
  ['maxItems', isCount],
  ['minProperties', isCount],
  ['maxProperties', isCount],
  ['minContains', isCount],
  ['maxContains', isCount],
  ['uniqueItems', isFlag],
  ['deprecated', isFlag],
  ['required', isNames],
]);

/** Keywords whose value is a schema, a list of schemas, or an object of schemas. */
const SCHEMA = new Set([
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
  'unevaluatedItems',
  'unevaluatedProperties',
]);
const SCHEMA_LISTS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const SCHEMA_MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas']);

/** Replaces a schema that is too large to be shown. */
const ANY_VALUE: JsonSchema = { description: 'Any value; its schema is too large to be shown.' };

/** A converted schema. */
export interface Converted {
  readonly schema: JsonSchema;
  /** Characters of the schema as JSON text. */
  readonly length: number;
  /** References to schemas that it needs in `$defs`. */
  readonly references: readonly string[];
}

/**
 * Converts schemas of an OpenAPI document. Referenced ones become `$defs`, so that recursive schemas stay finite. Each schema
 * is converted once, however many operations refer to it.
 */
export class SchemaConverter {
  readonly #document: OpenApiDocument;
  readonly #definitions = new Map<string, Converted>();
  /** Names in `$defs` by reference. */
  readonly #names = new Map<string, string>();
  readonly #used = new Set<string>();

  constructor(document: OpenApiDocument) {
    this.#document = document;
  }

  /** Converts a schema, or replaces it if it is longer than `longest` characters. Throws `DocumentError`. */
  convert(schema: unknown, at: string, longest: number): Converted {
    const references = new Set<string>();
    const converted = this.#convert(schema, at, references);
    const { length } = JSON.stringify(converted);
    return length > longest
      ? { schema: ANY_VALUE, length: 0, references: [] }
      : { schema: converted, length, references: [...references] };
  }

  /**
   * `$defs` for these references and those that they need in turn, nearest first; undefined without any. Once `longest`
   * characters are reached, the remaining ones accept any value. Throws `DocumentError`.
   */
  definitions(references: Iterable<string>, longest: number): Json | undefined {
    const needed = new Set(references);
    const all: [string, JsonSchema][] = [];
    let left = longest;
    for (const reference of needed) {
      const name = this.#nameOf(reference);
      const definition = this.#definition(reference);
      const fits = definition.length <= left;
      all.push([name, fits ? definition.schema : {}]);
      left -= (fits ? definition.length : 0) + name.length;
      if (fits) for (const next of definition.references) needed.add(next);
    }
    return all.length === 0 ? undefined : Object.fromEntries(all);
  }

  #definition(reference: string): Converted {
    let definition = this.#definitions.get(reference);
    if (definition === undefined) {
      const at = `schema ${shown(reference)}`;
      const schema = referenced(this.#document.root, reference, at);
      definition = this.convert(schema, at, LIMITS.openApiToolLength);
      this.#definitions.set(reference, definition);
    }
    return definition;
  }

  #convert(schema: unknown, at: string, references: Set<string>): JsonSchema {
    if (typeof schema === 'boolean') return schema;
    if (!isObject(schema)) return {};
    const { is30 } = this.#document;
    const own: [string, unknown][] = [];
    const reference = member(schema, '$ref');
    if (typeof reference === 'string') {
      const target = this.#targetOf(reference, at);
      references.add(target);
      own.push(['$ref', `#/$defs/${this.#nameOf(target)}`]);
      // In OpenAPI 3.0, members beside `$ref` have no meaning.
      if (is30) return Object.fromEntries(own);
    }
    for (const [key, value] of Object.entries(schema)) {
      const converted = this.#keyword(key, value, at, references);
      if (converted !== undefined) own.push([key, converted]);
    }
    const result = withoutReadOnly(schema, Object.fromEntries(own));
    return is30 ? withMeaningOf30(schema, result) : result;
  }

  #keyword(key: string, value: unknown, at: string, references: Set<string>): unknown {
    if (COPIED.get(key)?.(value) === true) return value;
    const next = (inner: unknown): JsonSchema => this.#convert(inner, at, references);
    if (SCHEMA.has(key)) return next(value);
    if (SCHEMA_LISTS.has(key) && Array.isArray(value) && value.length > 0) return value.map(next);
    if (SCHEMA_MAPS.has(key) && isObject(value))
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, next(inner)]));
    return undefined;
  }

  /** Name in `$defs`: the last part of the reference, with a number if another one has the same. */
  #nameOf(reference: string): string {
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    const wanted = (reference.split('/').at(-1) ?? '').replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 64);
    let name = wanted;
    for (let count = 2; this.#used.has(name); count += 1) name = `${wanted}_${count}`;
    this.#used.add(name);
    this.#names.set(reference, name);
    return name;
  }

  /** Follows schemas that consist of a reference alone. Throws `DocumentError` for a cycle of them. */
  #targetOf(reference: string, at: string): string {
    let target = reference;
    for (let hops = 0; hops < REFERENCE_HOPS; hops += 1) {
      const schema = referenced(this.#document.root, target, at);
      const next = isObject(schema) ? member(schema, '$ref') : undefined;
      const isAlias = isObject(schema) && (this.#document.is30 || Object.keys(schema).length === 1);
      if (typeof next !== 'string' || !isAlias) return target;
      target = next;
    }
    throw new DocumentError(`${at}: its references form a cycle`);
  }
}

/**
 * Leaves out properties that only responses have: a request "SHOULD NOT" contain them, and `required` concerns the response
 * alone (OpenAPI 3.0, "Schema Object", `readOnly`).
 */
function withoutReadOnly(schema: Json, converted: Json): Json {
  const properties = member(schema, 'properties');
  if (!isObject(properties)) return converted;
  const hidden = new Set(
    Object.entries(properties).flatMap(([name, value]) =>
      isObject(value) && value['readOnly'] === true ? [name] : [],
    ),
  );
  if (hidden.size === 0) return converted;
  const keep = ([name]: [string, unknown]): boolean => !hidden.has(name);
  const { required } = converted;
  return {
    ...converted,
    properties: Object.fromEntries(Object.entries(membersOf(converted['properties'])).filter(keep)),
    ...(isNames(required) && { required: required.filter((name) => !hidden.has(name)) }),
  };
}

/** `nullable` and boolean `exclusiveMinimum` of OpenAPI 3.0 in JSON Schema, which has neither. */
function withMeaningOf30(schema: Json, converted: Json): Json {
  const result: Record<string, unknown> = { ...converted };
  for (const [exclusive, inclusive] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    if (schema[exclusive] !== true || !isNumber(result[inclusive])) continue;
    result[exclusive] = result[inclusive];
    delete result[inclusive];
  }
  if (schema['nullable'] !== true) return result;
  if (typeof result['type'] !== 'string') return { anyOf: [result, { type: 'null' }] };
  const values = result['enum'];
  return {
    ...result,
    type: [result['type'], 'null'],
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
  };
}
