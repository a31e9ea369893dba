import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../src/core/suggest.ts';

describe('editDistance', () => {
  it.each([
    ['', '', 0],
    ['abc', 'abc', 0],
    ['', 'abc', 3],
    ['kitten', 'sitting', 3],
    ['ab', 'ba', 1],
    ['cros', 'cors', 1],
    ['mcpAuthetication', 'mcpAuthentication', 1],
    ['ca', 'abc', 3],
  ])('editDistance from %j to %j is %i', (a, b, expected) => {
    expect(editDistance(a, b)).toBe(expected);
    expect(editDistance(b, a)).toBe(expected);
  });

  it('editDistance is between the difference and the maximum of the lengths', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
        expect(distance === 0).toBe(a === b);
      }),
    );
  });
});

describe('nearest', () => {
  const fields = ['q', 'cors', 'authorization', 'mcpAuthentication', 'port'];

  it.each([
    ['cros', 'cors'],
    ['CORS', 'cors'],
    ['prot', 'port'],
    ['mcpAuthetication', 'mcpAuthentication'],
    ['authorisation', 'authorization'],
    ['authoriz', undefined],
    ['xyz', undefined],
    ['', undefined],
    ['p', undefined],
  ])('nearest to %j is %j', (word, expected) => {
    expect(nearest(word, fields)).toBe(expected);
  });

  it('nearest returns the first of equally close candidates', () => {
    expect(nearest('ab', ['ac', 'ad'])).toBe('ac');
  });

  it('nearest skips a word of several megabytes without computing distances', () => {
    const started = process.threadCpuUsage();
    expect(nearest('x'.repeat(5_000_000), fields)).toBeUndefined();
    expect(process.threadCpuUsage(started).user / 1000).toBeLessThan(200);
  });
});
