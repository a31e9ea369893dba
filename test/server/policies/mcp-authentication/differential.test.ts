import { expect, test } from 'vitest';
import { compareWithJose } from '../../../kit/differential.ts';
import { STRICTER } from '../../../kit/token-mutations.ts';

test('3,000 tokens that are almost right: we accept none that jose refuses, and refuse more for known reasons only', async () => {
  const { accepted, refused, stricter, unexplained } = await compareWithJose(3_000, 1);
  expect(unexplained.slice(0, 5)).toEqual([]);
  // The tokens are worth comparing: many are right, many are wrong, and every reason occurs.
  expect(accepted).toBeGreaterThan(500);
  expect(refused).toBeGreaterThan(500);
  expect(Object.keys(stricter).sort()).toEqual(Object.keys(STRICTER).sort());
});
