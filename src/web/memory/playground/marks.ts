export interface Piece {
  /** Its offset in the text. */
  readonly at: number;
  readonly text: string;
  readonly isMarked: boolean;
}

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const ENDING = /(?:ations?|ings?|ed|es|s|e)$/;
/** Shorter words occur in every text; they are only marked if the query has no others. */
const MIN_WORD_LENGTH = 4;

/** Splits a text into pieces and marks the words of the query, in any form. */
export function marked(text: string, query: string): Piece[] {
  const words = query.toLowerCase().match(WORD) ?? [];
  const telling = words.filter((word) => word.length >= MIN_WORD_LENGTH || /\P{ASCII}|\d/u.test(word));
  const wanted = new Set((telling.length > 0 ? telling : words).map(stem));
  const pieces: Piece[] = [];
  let end = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!wanted.has(stem(word.toLowerCase()))) continue;
    if (index > end) pieces.push({ at: end, text: text.slice(end, index), isMarked: false });
    pieces.push({ at: index, text: word, isMarked: true });
    end = index + word.length;
  }
  if (end < text.length) pieces.push({ at: end, text: text.slice(end), isMarked: false });
  return pieces;
}

function stem(word: string): string {
  const short = word.replace(ENDING, '');
  return short.length >= 3 ? short : word;
}
