import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../../../src/server/policies/limits/token-bucket.ts';

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

test('TokenBucket never gives more tokens than its size and refills allow if workers hold and return some', () => {
  type Step = readonly [wait: number, action: 'take' | 'lend' | 'return', tokens: number];
  const steps: fc.Arbitrary<Step[]> = fc.array(
    fc.tuple(
      fc.integer({ min: 0, max: 200 }),
      fc.constantFrom('take' as const, 'lend' as const, 'return' as const),
      fc.integer({ min: 1, max: 9 }),
    ),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 30 }), (all, perFill) => {
      const bucket = new TokenBucket(20, perFill, 100, 0);
      let now = 0;
      let lent = 0;
      // What a client can have used by now is what was given out, with what workers may still use.
      const given: { at: number; tokens: number }[] = [];
      for (const [wait, action, tokens] of all) {
        now += wait;
        const left = bucket.remaining(now);
        expect(left + lent).toBeLessThanOrEqual(20);
        if (action === 'take' && left >= tokens) {
          bucket.take(tokens);
          given.push({ at: now, tokens });
        } else if (action === 'lend' && left >= tokens) {
          bucket.lend(tokens, now);
          lent += tokens;
        } else if (action === 'return') {
          const used = Math.floor(lent / 2);
          bucket.settle(used, lent - used, now);
          given.push({ at: now, tokens: used });
          lent = 0;
        }
        // Workers return what they hold in time.
        if (lent > 0) bucket.lend(0, now);
        const fills = Math.floor(now / 100);
        expect(given.reduce((sum, each) => sum + each.tokens, lent)).toBeLessThanOrEqual(
          20 + fills * perFill,
        );
      }
    }),
  );
});

test('TokenBucket is filled to its size again a second after a worker with tokens has ended', () => {
  const bucket = new TokenBucket(100, 100, 600, 0);
  bucket.lend(10, 100);
  expect(bucket.remaining(599)).toBe(90);
  expect(bucket.remaining(600)).toBe(90);
  expect(bucket.remaining(1200)).toBe(100);
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
