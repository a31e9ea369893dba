import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../../src/server/policies/token-bucket.ts';

test('TokenBucket never gives more tokens than its size and refills allow', () => {
  const calls = fc.array(fc.tuple(fc.integer({ min: 0, max: 500 }), fc.integer({ min: 1, max: 3 })), {
    maxLength: 60,
  });
  const shape = fc.record({
    size: fc.integer({ min: 1, max: 20 }),
    perFill: fc.integer({ min: 1, max: 30 }),
    interval: fc.integer({ min: 1, max: 300 }),
  });
  fc.assert(
    fc.property(shape, calls, ({ size, perFill, interval }, steps) => {
      const bucket = new TokenBucket(size, perFill, interval, 1000);
      let now = 1000;
      let given = 0;
      for (const [wait, tokens] of steps) {
        now += wait;
        const left = bucket.remaining(now);
        expect(left).toBeLessThanOrEqual(size);
        if (left >= tokens) {
          bucket.take(tokens);
          given += tokens;
        }
        expect(given).toBeLessThanOrEqual(size + Math.floor((now - 1000) / interval) * perFill);
      }
    }),
  );
});

test('TokenBucket.secondsUntil gives the first second with enough tokens', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 1, max: 5_000 }),
      fc.integer({ min: 0, max: 20_000 }),
      (perFill, interval, waited) => {
        const bucket = new TokenBucket(10, perFill, interval, 0);
        bucket.take(10);
        const seconds = bucket.secondsUntil(7, waited);
        if (bucket.remaining(waited) >= 7) {
          expect(seconds).toBe(0);
          return;
        }
        expect(bucket.remaining(waited + (seconds - 1) * 1000)).toBeLessThan(7);
        expect(bucket.remaining(waited + seconds * 1000)).toBeGreaterThanOrEqual(7);
      },
    ),
  );
});

test('TokenBucket refills at its intervals independently of when it is read', () => {
  const bucket = new TokenBucket(4, 1, 100, 0);
  bucket.take(4);
  expect(bucket.remaining(199)).toBe(1);
  expect(bucket.remaining(200)).toBe(2);
  expect(bucket.remaining(299)).toBe(2);
  expect(bucket.remaining(10_000)).toBe(4);
});
