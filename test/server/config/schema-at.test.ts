import { expect, test } from 'vitest';
import type { Path } from '../../../src/core/diagnostic.ts';
import { configJsonSchema } from '../../../src/server/config/json-schema.ts';
import { schemaAt } from '../../../src/server/config/schema-at.ts';

interface Json {
  readonly anyOf?: readonly Json[];
  readonly allOf?: readonly Json[];
  readonly oneOf?: readonly Json[];
  readonly $ref?: string;
  readonly properties?: Readonly<Record<string, Json>>;
  readonly additionalProperties?: Json | boolean;
  readonly items?: Json;
}

test('completion offers the keys of the JSON Schema at every place, however deep', () => {
  const root = configJsonSchema() as Json & { definitions: Readonly<Record<string, Json>> };
  const alternatives = (schema: Json): Json[] => {
    if (schema.$ref !== undefined)
      return alternatives(root.definitions[schema.$ref.split('/').at(-1) ?? ''] as Json);
    const { anyOf = [], allOf = [], oneOf = [] } = schema;
    const several = [...anyOf, ...allOf, ...oneOf];
    return several.length === 0 ? [schema] : several.flatMap(alternatives);
  };
  let places = 0;
  const walk = (schemas: readonly Json[], path: Path, depth: number): void => {
    const found = schemas.flatMap(alternatives);
    const members = Map.groupBy(
      found.flatMap(({ properties = {} }) => Object.entries(properties)),
      ([name]) => name,
    );
    expect(
      schemaAt(path)
        .keys.map(({ name }) => name)
        .sort(),
      path.join('.'),
    ).toEqual([...members.keys()].sort());
    places += 1;
    if (depth === 0) return;
    for (const [name, own] of members)
      walk(
        own.map(([, schema]) => schema),
        [...path, name],
        depth - 1,
      );
    const items = found.flatMap(({ items: own }) => own ?? []);
    if (items.length > 0) walk(items, [...path, 0], depth - 1);
    const others = found.flatMap(({ additionalProperties: own }) => (typeof own === 'object' ? own : []));
    if (others.length > 0) walk(others, [...path, 'any-name'], depth - 1);
  };
  walk([root], [], 5);
  expect(places).toBeGreaterThan(500);
});

test('completion knows allowed values, descriptions and kinds, and nothing about unknown places', () => {
  expect(schemaAt(['gateways', 'edge', 'protocol']).values).toContain('HTTPS');
  expect(schemaAt(['gateways', 'edge', 'port']).description).toMatch(/^Port to listen on/);
  const keys = schemaAt(['gateways', 'edge']).keys;
  expect(keys.find(({ name }) => name === 'routes')?.kind).toBe('list');
  expect(keys.find(({ name }) => name === 'tls')?.kind).toBe('mapping');
  for (const path of [
    ['no', 'such', 'place'],
    ['gateways', 'edge', '__proto__'],
    [0, 1],
  ])
    expect(schemaAt(path)).toEqual({ keys: [], values: [] });
});
