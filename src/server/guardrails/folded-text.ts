import type { Span } from '../kernel/json/json-text.ts';
import { withPlainLetters } from './look-alikes.ts';

// Texts that models read as others do, but in which patterns find nothing: `alice@\u200bexample.com`, `ａｌｉｃｅ＠ｅｘａｍｐｌｅ．ｃｏｍ`
// (RPBLC-hq/DAM#9 and #12, api7/aisix#767).

/** Characters that are not shown, such as spaces without width, and signs of direction (Unicode, DerivedCoreProperties.txt). */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/u;

/** Letters and digits of full width or in a style of mathematics, and the signs in addresses and numbers of full width. */
const STYLED = /[\uff0b\uff0d\uff0e\uff10-\uff19\uff20-\uff3a\uff3f\uff41-\uff5a\u{1d400}-\u{1d7ff}]/u;

const FOLDABLE = new RegExp(`${INVISIBLE.source}|${STYLED.source}`, 'u');

/** The lowest character that any of these patterns matches: the soft hyphen. */
const LOWEST = 0xad;

/** A text in plain letters, and where a span of it is in the original. */
export interface FoldedText {
  readonly text: string;
  originalOf(span: Span): Span;
}

/**
 * The text without invisible characters and with plain letters for styled ones and those that look alike; undefined if it is the same.
 */
export function foldedText(original: string): FoldedText | undefined {
  if (!FOLDABLE.test(original)) {
    const plain = withPlainLetters(original);
    return plain === original ? undefined : { text: plain, originalOf: (span) => span };
  }
  // No character becomes longer.
  const starts = new Uint32Array(original.length);
  let text = '';
  let at = 0;
  for (const character of original) {
    const plain = folded(character);
    starts.fill(at, text.length, text.length + plain.length);
    text += plain;
    at += character.length;
  }
  return {
    text: withPlainLetters(text),
    originalOf({ start, end }) {
      const last = starts[end - 1] ?? 0;
      return { start: starts[start] ?? 0, end: last + ((original.codePointAt(last) ?? 0) > 0xffff ? 2 : 1) };
    },
  };
}

function folded(character: string): string {
  if (character < String.fromCharCode(LOWEST)) return character;
  if (INVISIBLE.test(character)) return '';
  return STYLED.test(character) ? character.normalize('NFKC') : character;
}
