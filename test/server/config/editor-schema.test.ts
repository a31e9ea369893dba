import { describe, expect, test } from 'vitest';
import { editorSchema } from '../../../src/server/config/editor-schema.ts';
import { configJsonSchema } from '../../../src/server/config/json-schema.ts';

interface Schema {
  readonly definitions: Readonly<Record<string, unknown>>;
}

const whole = configJsonSchema() as Schema;
const schema = editorSchema() as Schema;

/** The same with each reference replaced by its definition. */
function expanded(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(expanded);
  if (typeof node !== 'object' || node === null) return node;
  const { $ref } = node as { readonly $ref?: string };
  const name = $ref?.replace('#/definitions/', '') ?? '';
  // Schemas that contain themselves remain references.
  if ($ref !== undefined && !(name in whole.definitions)) return expanded(schema.definitions[name]);
  const members = Object.entries(node).filter(([key]) => key !== 'markdownDescription');
  return Object.fromEntries(members.map(([key, value]) => [key, expanded(value)]));
}

describe('the JSON Schema for editors', () => {
  test('the JSON Schema for editors says the same as that of the program, in a fifth of its size', () => {
    const { definitions, ...root } = schema;
    const recursive = Object.keys(whole.definitions).map((name) => [name, definitions[name]]);
    expect(expanded({ ...root, definitions: Object.fromEntries(recursive) })).toEqual(whole);
    expect(JSON.stringify(schema).length).toBeLessThan(JSON.stringify(whole).length / 5);
  });

  test('the JSON Schema for editors has each description as Markdown, too, and uses each definition', () => {
    const text = JSON.stringify(schema);
    const count = (part: string): number => text.split(part).length - 1;
    expect(count('"markdownDescription":')).toBeGreaterThan(300);
    for (const name of Object.keys(schema.definitions))
      expect(count(`"#/definitions/${name}"`), name).toBeGreaterThan(0);
  });

  test('the JSON Schema for editors has examples of durations and addresses', () => {
    const { config } = (expanded(schema) as { properties: Record<string, { properties: object }> })
      .properties;
    expect(config?.properties).toMatchObject({
      adminAddr: {
        default: 'localhost:15000',
        anyOf: [{ examples: expect.arrayContaining(['127.0.0.1:15000']) }, {}],
      },
      connectionTerminationDeadline: { examples: ['30s'] },
    });
  });
});
