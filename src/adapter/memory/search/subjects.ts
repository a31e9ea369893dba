import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';
import { tellsChange } from './assertions.ts';
import { withoutChange } from './change-words.ts';
import { saidIn, tellsTime } from './statements.ts';

/** Environments of software: what runs in one says nothing of another. */
const ENVIRONMENTS = [
  /(?<!\p{L})(?:prod|production|produktion|produktiv\p{L}*)(?!\p{L})/iu,
  /(?<!\p{L})(?:staging|stage|pre-?prod\p{L}*)(?!\p{L})/iu,
  /(?<!\p{L})(?:dev|development|entwicklungs?(?:umgebung|server|system)?)(?!\p{L})/iu,
  /(?<!\p{L})(?:qa|sandbox|canary)(?!\p{L})/iu,
  /(?<!\p{L})test(?:ing)?[ -]?(?:env\p{L}*|environment|server|system|umgebung|cluster)(?!\p{L})/iu,
] as const;

/** Longer turns hardly ever say the same of two things in the same words. */
const LONGEST = 40;
/** What two turns must have in common to be compared word for word. */
const COMMON = 0.5;

/**
 * Whether a later turn says of one thing what an earlier one says of another: they name different environments, or they agree
 * word for word except for the thing that the question names (`the office in Bonn closes at 5`, of that in Cologne) and its value.
 * Where only one word differs, it is the value if the later turn tells a change.
 *
 * @param asked stems of the words of the question
 */
export function isOfOther(later: string, earlier: string, asked: ReadonlySet<string>): boolean {
  const [said, saidThen] = [saidIn(later), saidIn(earlier)];
  const [now, then] = [environmentsOf(said), environmentsOf(saidThen)];
  if (now.length > 0 && then.length > 0 && !now.some((one) => then.includes(one))) return true;
  const differences = differencesOf(wordsIn(saidThen), wordsIn(said));
  const named = differences.filter(({ before, after }) =>
    before.some((word) => asked.has(stemOf(word)) && !after.includes(word) && isName(word)),
  );
  const hasValues = named.some(({ before, after }) => before.some(tellsTime) && after.some(tellsTime));
  return named.length > 0 && (hasValues || differences.length > named.length || !tellsChange(said));
}

function environmentsOf(said: string): number[] {
  return ENVIRONMENTS.flatMap((pattern, index) => (pattern.test(said) ? [index] : []));
}

function wordsIn(said: string): string[] {
  return wordsOf(withoutChange(said));
}

/** Times and numbers are values. */
function isName(word: string): boolean {
  return !/^\d/.test(word) && !tellsTime(word);
}

/** Words of German that say nothing; those of English are the stop words. */
const GERMAN_STOP_WORDS = new Set(
  (
    'der die das den dem des ein eine einer eines einem einen und oder aber für fürs von vom zu zum zur im ins am ans auf aufs aus ' +
    'bei beim mit nach seit vor ist sind war waren wird werden wurde wurden hat haben ich wir du ihr er sie es man sich ' +
    'mein meine meinen meinem meiner unser unsere unseren unserem unserer auch noch wie wo wer was wann welche welcher welches welchen'
  )
    .split(' ')
    .flatMap(wordsOf),
);

function says(word: string): boolean {
  return !isStopWord(word) && !GERMAN_STOP_WORDS.has(word);
}

/** Words that say something, in the same place of two texts. */
interface Difference {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** What two texts say in the same place in other words; nothing if they have too little in common. */
function differencesOf(before: readonly string[], after: readonly string[]): Difference[] {
  if (before.length > LONGEST || after.length > LONGEST) return [];
  const pairs = commonWords(before, after);
  if (pairs.length < COMMON * Math.min(before.length, after.length)) return [];
  const ends = [...pairs, [before.length, after.length] as const];
  return ends
    .map(([end, endAfter], index) => {
      const [start, startAfter] = pairs[index - 1] ?? [-1, -1];
      return {
        before: before.slice(start + 1, end).filter(says),
        after: after.slice(startAfter + 1, endAfter).filter(says),
      };
    })
    .filter((one) => one.before.length > 0 && one.after.length > 0);
}

/** Places of the longest common sequence of words. */
function commonWords(one: readonly string[], other: readonly string[]): (readonly [number, number])[] {
  const lengths = Array.from({ length: one.length + 1 }, () => new Array<number>(other.length + 1).fill(0));
  const lengthAt = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = one.length - 1; i >= 0; i -= 1)
    for (let j = other.length - 1; j >= 0; j -= 1) {
      const row = lengths[i];
      if (row !== undefined)
        row[j] =
          one[i] === other[j] ? lengthAt(i + 1, j + 1) + 1 : Math.max(lengthAt(i + 1, j), lengthAt(i, j + 1));
    }
  const pairs: (readonly [number, number])[] = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (one[i] === other[j]) {
      pairs.push([i, j]);
      i += 1;
      j += 1;
    } else if (lengthAt(i + 1, j) >= lengthAt(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}
