/**
 * Splits texts into words, identically on every machine and for every language; used by the built-in embedder and the
 * score.
 */

/**
 * English words without subject matter. They have almost no weight in a vector and none in the score; a query of stop
 * words only keeps them.
 */
const STOP_WORDS = new Set(
  (
    'a about after all also am an and any are as at be because been before being below between both but by can ' +
    'cannot could did do does doing down during each few for from further get gets had has have having he her here ' +
    'hers him his how i if in into is it its itself just let like may me might more most must my need no nor not of ' +
    'off on once only or other our out over own please same she should so some such than that the their them then ' +
    'there these they this those through to too under until up use used using very want was we were what when where ' +
    'which while who whom why will with without would you your'
  ).split(' '),
);

/** Maximum length of a word; longer ones are hashes, base64 and the like, of which only the beginning counts. */
const WORD_LENGTH = 40;

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Letters of scripts without spaces between words. */
const UNSPACED_LETTERS =
  '\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}';
const UNSPACED = new RegExp(`[${UNSPACED_LETTERS}]`, 'u');
/** `Vueの` has two runs: names from other languages stand in such texts without a space. */
const RUN = new RegExp(`[${UNSPACED_LETTERS}]+|[^${UNSPACED_LETTERS}]+`, 'gu');
const UNSPACED_RUN = new RegExp(`[${UNSPACED_LETTERS}]+`, 'gu');
const ASCII_ONLY = /^[\0-\x7f]*$/;
const ASCII_WORD = /[A-Za-z0-9]+/g;
/** Detects `aB` or `ABc` inside a word, which most words with a capital do not contain. */
const HAS_BORDER = /[a-z0-9][A-Z]|[A-Z][A-Z][a-z]/;
const CASE_BORDER = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/;
const LATIN_MARKS = /[\u0300-\u036f]/g;

export function isStopWord(word: string): boolean {
  return STOP_WORDS.has(word);
}

/** Folds to lower case without accents and compatibility forms: `Éﬁ` becomes `efi`. */
function fold(text: string): string {
  if (ASCII_ONLY.test(text)) return text.toLowerCase();
  return text.toWellFormed().normalize('NFKD').replace(LATIN_MARKS, '').normalize('NFKC').toLowerCase();
}

/** Kana and ideographs that folding leaves as they are. */
const PLAIN_RUN = /^[\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff]+$/;

function pairsOf(run: string): string[] {
  if (run.length > 1 && PLAIN_RUN.test(run)) {
    const pairs: string[] = [];
    for (let start = 0; start + 1 < run.length; start += 1) pairs.push(run.slice(start, start + 2));
    return pairs;
  }
  const letters = [...fold(run)];
  return letters.length < 2 ? letters : letters.slice(1).map((letter, index) => `${letters[index]}${letter}`);
}

/** Whether a word is of a script without spaces, so that it is a pair of letters and no whole word. */
export function isPair(word: string): boolean {
  return UNSPACED.test(word);
}

/**
 * A text for an index that takes everything between spaces for one word: with the pairs of letters of scripts without
 * spaces, as `wordsOf` yields them. Undefined for a text without such letters, which needs no change.
 */
export function withPairs(text: string): string | undefined {
  if (ASCII_ONLY.test(text) || !UNSPACED.test(text)) return undefined;
  return text.replace(UNSPACED_RUN, (run) => ` ${pairsOf(run).join(' ')} `);
}

/** What an index needs of the fields of an entity, title and headings last; null if the fields themselves will do. */
export function pairsOfFields(fields: readonly string[]): string | null {
  const text = fields.at(-1) ?? '';
  const others = fields.slice(0, -1).flatMap((field) => withPairs(field) ?? []);
  const pairs = withPairs(text);
  if (pairs === undefined && others.length === 0) return null;
  return [pairs ?? text, ...others].join('\n');
}

/**
 * The folded words of a text, in order. `maxSessions` yields itself, `max` and `sessions`; text in a script without
 * spaces yields its pairs of letters. ASCII texts, which are the most common, take a third of the time.
 */
export function wordsOf(text: string): string[] {
  const words: string[] = [];
  const isAscii = ASCII_ONLY.test(text);
  for (const found of text.match(isAscii ? ASCII_WORD : WORD) ?? []) {
    if (isAscii) addWord(found, lowerCase, words);
    else if (!UNSPACED.test(found)) addWord(found, fold, words);
    else
      for (const run of found.match(RUN) ?? [])
        if (UNSPACED.test(run)) for (const pair of pairsOf(run)) words.push(pair);
        else addWord(run, fold, words);
  }
  return words;
}

/** What folding is for ASCII. */
function lowerCase(word: string): string {
  return word.toLowerCase();
}

function addWord(found: string, folded: (word: string) => string, words: string[]): void {
  const word = found.length > WORD_LENGTH ? found.slice(0, WORD_LENGTH) : found;
  const whole = folded(word);
  words.push(whole);
  if (whole !== word && HAS_BORDER.test(word))
    for (const part of word.split(CASE_BORDER)) words.push(folded(part));
}

/** A word with its parts, if it is a compound: `maxSessions` with `max` and `sessions`. */
export interface CompoundWord {
  readonly word: string;
  readonly parts: readonly string[];
}

/** The same words, with the parts of a compound at their word. */
export function compoundWordsOf(text: string): CompoundWord[] {
  return (text.match(WORD) ?? []).flatMap((found) =>
    (found.match(RUN) ?? []).flatMap((run): CompoundWord[] => {
      if (UNSPACED.test(run)) return pairsOf(run).map((pair) => ({ word: pair, parts: [] }));
      const [word, ...parts] = wordsOf(run);
      return word === undefined ? [] : [{ word, parts }];
    }),
  );
}

const ENDINGS: readonly (readonly [ending: string, put: string, stays: number])[] = [
  ['ations', 'at', 4],
  ['ation', 'at', 4],
  ['izing', 'iz', 3],
  ['ising', 'iz', 3],
  ['ized', 'iz', 3],
  ['ised', 'iz', 3],
  ['izes', 'iz', 3],
  ['ises', 'iz', 3],
  ['ize', 'iz', 3],
  ['ise', 'iz', 3],
  ['ements', '', 4],
  ['ement', '', 4],
  ['ments', '', 4],
  ['ment', '', 4],
  ['ings', '', 3],
  ['ing', '', 3],
  ['ies', 'y', 2],
  ['ied', 'y', 2],
  ['sses', 'ss', 2],
  ['ers', '', 4],
  ['er', '', 4],
  ['ors', '', 4],
  ['or', '', 4],
  ['ate', 'at', 4],
  ['ates', 'at', 4],
  ['ated', 'at', 4],
  ['ive', '', 4],
  ['ed', '', 3],
  ['es', '', 3],
  ['ly', '', 3],
  ['e', '', 3],
  ['s', '', 3],
];
const PLAIN_WORD = /^[a-z]{4,}$/;
const DOUBLED = /([bdfgmnprt])\1$/;

/**
 * Removes English suffixes, so that `limits`, `limited` and `limiting` match. Other words are unchanged. Uses no
 * dictionary.
 */
export function stemOf(word: string): string {
  if (!PLAIN_WORD.test(word) || word.endsWith('ss') || word.endsWith('us') || word.endsWith('is'))
    return word;
  for (const [ending, put, stays] of ENDINGS) {
    if (word.length - ending.length < stays || !word.endsWith(ending)) continue;
    const stem = word.slice(0, word.length - ending.length) + put;
    return DOUBLED.test(stem) ? stem.slice(0, -1) : stem;
  }
  return word;
}
