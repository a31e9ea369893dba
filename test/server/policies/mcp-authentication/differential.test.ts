import { expect, test } from 'vitest';
import { compareWithJose } from '../../../kit/differential.ts';
import { STRICTER } from '../../../kit/token-mutations.ts';

test('mcpAuthentication accepts none of 3,000 mutated tokens that jose rejects, and is stricter only for known reasons', async () => {
  const { accepted, refused, stricter, unexplained } = await compareWithJose(3_000, 1);
  expect(unexplained.slice(0, 5)).toEqual([]);
  // The sample is useful: many tokens are valid, many are not, and every reason occurs.
  expect(accepted).toBeGreaterThan(500);
  expect(refused).toBeGreaterThan(500);
  expect(Object.keys(stricter).sort()).toEqual(Object.keys(STRICTER).sort());
});
