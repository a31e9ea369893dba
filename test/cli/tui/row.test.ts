import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { wrap } from '../../../src/cli/tui/row.ts';
import { displayWidth } from '../../../src/core/render/width.ts';

describe('line wrapping', () => {
  test.each([
    ['"admin" in jwt.roles => false', 26, ['"admin" in jwt.roles =>', 'false']],
    ['fits', 4, ['fits']],
    ['selected gateway/edge/default/tools', 28, ['selected', 'gateway/edge/default/tools']],
    ['  => false', 8, ['  =>', 'false']],
    // A word that is wider than a line is broken where the line ends.
    ['a https://example.com/long/path', 12, ['a https://ex', 'ample.com/lo', 'ng/path']],
    ['two  spaces', 5, ['two ', 'space', 's']],
    ['寿司 寿司', 5, ['寿司', '寿司']],
  ])('wrapping %j at %i columns keeps words together', (text, width, lines) => {
    expect(wrap(text, width)).toEqual(lines);
  });

  test('wrapping loses only the spaces at line breaks and keeps to the width', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 60 }),
        fc.integer({ min: 2, max: 20 }),
        (text, width) => {
          const lines = wrap(text, width);
          expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
          for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
        },
      ),
    );
  });
});
