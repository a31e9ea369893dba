import { expect, test } from 'vitest';
import { compareWithJose } from '../../../kit/differential.ts';
import { repeats } from '../../../kit/thorough.ts';
import { STRICTER } from '../../../kit/token-mutations.ts';

const RUNS = repeats(3_000, 10_000);

test('mcpAuthentication accepts no mutated token that jose rejects, and is stricter only for known reasons', async () => {
  const { accepted, refused, stricter, unexplained } = await compareWithJose(RUNS, 1);
  expect(unexplained.slice(0, 5)).toEqual([]);
  // The sample is useful: many tokens are valid, many are not, and every reason occurs.
  expect(accepted).toBeGreaterThan(RUNS / 6);
  expect(refused).toBeGreaterThan(RUNS / 6);
  expect(Object.keys(stricter).sort()).toEqual(Object.keys(STRICTER).sort());
});
