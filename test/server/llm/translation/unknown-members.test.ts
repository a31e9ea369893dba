import { basename } from 'node:path';
import { expect, test } from 'vitest';
import type { Json } from '../../../../src/server/llm/chat/chat-format.ts';
import { casesIn, formatOf, outcomeOf, TARGET } from './cases.ts';

/** Objects that are passed on whole: JSON Schemas, the input of a tool, values for the client. */
const OPAQUE = /\b(parameters|schema|input_schema|input|arguments|metadata|logit_bias)$/;

/** Members that are left out whole, as hints. */
const HINTS = /\b(trigger|citations|client_metadata|prediction|provider_specific_fields)$/;

/** All objects in a body with their paths, except those inside opaque ones. */
function objectsIn(value: unknown, path: string): [path: string, object: Record<string, unknown>][] {
  if (typeof value !== 'object' || value === null || HINTS.test(path)) return [];
  if (OPAQUE.test(path) && !Array.isArray(value)) return [];
  const below = Object.entries(value).flatMap(([name, member]) =>
    objectsIn(member, Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`),
  );
  return Array.isArray(value) ? below : [[path, value as Record<string, unknown>], ...below];
}

for (const { file, from, cases } of casesIn('requests')) {
  const { readRequest } = formatOf(from);
  test(`an unknown member in any object of a request is refused by its path: ${basename(file.pathname)}`, () => {
    let checked = 0;
    for (const { input } of cases) {
      if ('refused' in outcomeOf(() => readRequest(input, TARGET) as unknown as Json)) continue;
      const copy = structuredClone(input);
      for (const [path, object] of objectsIn(copy, '')) {
        object['unknown_member'] = 1;
        expect(outcomeOf(() => readRequest(copy, TARGET) as unknown as Json)).toEqual({
          refused: path === '' ? 'unknown_member' : `${path}.unknown_member`,
        });
        delete object['unknown_member'];
        checked += 1;
      }
    }
    expect(checked).toBeGreaterThan(0);
  });
}
