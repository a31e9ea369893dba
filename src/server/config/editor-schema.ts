import { configJsonSchema } from './json-schema.ts';

type Schema = Record<string, unknown>;

/** Shorter parts are repeated: a reference would not be shorter. */
const SHORTEST_DEFINITION = 300;

/** Keywords whose value is a schema, a list of schemas, or a map of names to schemas (draft 7). */
const ONE = ['additionalProperties', 'items', 'not', 'propertyNames', 'if', 'then', 'else'];
const LISTS = ['anyOf', 'oneOf', 'allOf'];
const MAPS = ['properties', 'patternProperties'];

/**
 * JSON Schema of a configuration file for editors: parts that occur several times are in `definitions`, which makes it a
 * twentieth of its size, and descriptions are also in `markdownDescription`, because editors show Markdown from there only.
 */
export function editorSchema(): object {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a JSON schema
  const schema = configJsonSchema() as Schema;
  const counts = new Map<string, number>();
  count(schema, counts);
  const definitions = new Map<string, { readonly name: string; schema: Schema }>();
  // Schemas that contain themselves.
  const { definitions: recursive = {}, ...whole } = schema as { definitions?: Schema } & Schema;
  const names = new Set(Object.keys(recursive));
  const shorten = (node: Schema, key: string): Schema => {
    const text = JSON.stringify(node);
    if (text.length < SHORTEST_DEFINITION || (counts.get(text) ?? 0) < 2) return mapped(node, key, shorten);
    let definition = definitions.get(text);
    if (definition === undefined) {
      definition = { name: unused(key, names), schema: {} };
      definitions.set(text, definition);
      definition.schema = mapped(node, key, shorten);
    }
    return { $ref: `#/definitions/${definition.name}` };
  };
  const root = mapped(whole, 'configuration', shorten);
  const shared = [...definitions.values()].map(({ name, schema: body }) => [name, body]);
  return { ...root, definitions: { ...recursive, ...Object.fromEntries(shared) } };
}

/** Counts how often each part occurs, by its text. Parts of one that has been counted before are not counted again. */
function count(node: Schema, counts: Map<string, number>): void {
  const text = JSON.stringify(node);
  const known = counts.get(text) ?? 0;
  counts.set(text, known + 1);
  if (known === 0 || text.length < SHORTEST_DEFINITION)
    mapped(node, '', (child) => {
      count(child, counts);
      return child;
    });
}

/** A name that no definition has yet: the key, if need be with a number. */
function unused(key: string, names: Set<string>): string {
  const base = key.replace(/[^A-Za-z0-9]/g, '') || 'part';
  let name = base;
  for (let number = 2; names.has(name); number += 1) name = `${base}${number}`;
  names.add(name);
  return name;
}

/** The schema with its direct subschemas replaced, and its description also as Markdown. `key`: where it is. */
function mapped(node: Schema, key: string, replace: (child: Schema, key: string) => Schema): Schema {
  const result: Schema = {};
  for (const [keyword, value] of Object.entries(node)) {
    result[keyword] = value;
    if (keyword === 'description') result['markdownDescription'] = value;
    if (ONE.includes(keyword) && isSchema(value)) result[keyword] = replace(value, key);
    else if (LISTS.includes(keyword) && Array.isArray(value))
      result[keyword] = value.map((each) => (isSchema(each) ? replace(each, key) : each));
    else if (MAPS.includes(keyword) && isSchema(value))
      result[keyword] = Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, isSchema(each) ? replace(each, name) : each]),
      );
  }
  return result;
}

const isSchema = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
