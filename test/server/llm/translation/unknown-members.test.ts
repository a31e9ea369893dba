import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Json } from '../../../../src/server/llm/translation/chat-format.ts';
import { type Case, formatOf, outcomeOf, TARGET } from './cases.ts';

/** Objects that are passed on whole: JSON Schemas, the input of a tool, values for the client. */
const OPAQUE = /\b(parameters|schema|input_schema|input|metadata|logit_bias)$/;

/** Members that are left out whole, as hints. */
const HINTS = /\b(trigger|citations|client_metadata|prediction)$/;

/** All objects in a body with their paths, except those inside opaque ones. */
function objectsIn(value: unknown, path: string): [path: string, object: Record<string, unknown>][] {
  if (typeof value !== 'object' || value === null || HINTS.test(path)) return [];
  if (OPAQUE.test(path) && !Array.isArray(value)) return [];
  const below = Object.entries(value).flatMap(([name, member]) =>
    objectsIn(member, Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`),
  );
  return Array.isArray(value) ? below : [[path, value as Record<string, unknown>], ...below];
}

for (const name of readdirSync(new URL('requests/', import.meta.url)).toSorted()) {
  const file = JSON.parse(readFileSync(new URL(`requests/${name}`, import.meta.url), 'utf8')) as {
    from: string;
    cases: Case[];
  };
  const { readRequest } = formatOf(file.from);
  test(`an unknown member in any object of a request is refused by its path: ${name}`, () => {
    let checked = 0;
    for (const { input } of file.cases) {
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
