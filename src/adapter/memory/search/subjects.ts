import { isStopWord, stemOf, wordsOf } from '../tokenizer.ts';
import { tellsChange } from './assertions.ts';
import { withoutChange } from './change-words.ts';
import { isOfOtherOwner } from './owners.ts';
import { saidIn, tellsTime } from './statements.ts';

/** Environments of software: what runs in one says nothing of another. */
const ENVIRONMENTS = [
  /(?<!\p{L})(?:prod|production|produktion|produktiv\p{L}*|live[ -]?(?:system|site|server|database|db|api|cluster|instance|instanz|env\p{L}*|umgebung))(?!\p{L})/iu,
  /(?<!\p{L})(?:staging|stage|pre-?prod\p{L}*)(?!\p{L})/iu,
  /(?<!\p{L})(?:dev|development|entwicklungs?(?:umgebung|server|system)?)(?!\p{L})/iu,
  /(?<!\p{L})(?:qa|uat|sandbox|canary|abnahme\p{L}*)(?!\p{L})/iu,
  /(?<!\p{L})(?:demo|preview|vorschau)[ -]?(?:system|site|server|database|db|api|cluster|instance|instanz|env\p{L}*|umgebung)(?!\p{L})/iu,
  /(?<!\p{L})test(?:ing)?[ -]?(?:env\p{L}*|environment|server|system|umgebung|cluster)(?!\p{L})/iu,
] as const;

/** Longer turns hardly ever say the same of two things in the same words. */
const LONGEST = 40;
/** What two turns must have in common to be compared word for word. */
const COMMON = 0.5;

/**
 * Whether a later turn says of one thing what an earlier one says of another: they name different environments, or they agree
 * word for word except for the thing that the question names (`the office in Bonn closes at 5`, of that in Cologne) and its value.
 * Where only one word differs, it is the value if the later turn tells a change. Or one of them `isAside` of the other.
 *
 * @param asked stems of the words of the question
 */
export function isOfOther(later: string, earlier: string, asked: ReadonlySet<string>): boolean {
  const [said, saidThen] = [saidIn(later), saidIn(earlier)];
  const [now, then] = [environmentsOf(said), environmentsOf(saidThen)];
  if (now.length > 0 && then.length > 0 && !now.some((one) => then.includes(one))) return true;
  if (isAside(later, earlier, asked) || isAside(earlier, later, asked)) return true;
  const differences = differencesOf(wordsIn(saidThen), wordsIn(said));
  const named = differences.filter(({ before, after }) =>
    before.some((word) => asked.has(stemOf(word)) && !after.includes(word) && isName(word)),
  );
  const hasValues = named.some(({ before, after }) => before.some(tellsTime) && after.some(tellsTime));
  return named.length > 0 && (hasValues || differences.length > named.length || !tellsChange(said));
}

/**
 * Whether a turn is about something that the question does not name, as it names what another turn is about: a special one (`the guest wifi`,
 * `the wifi`), that of somebody else (`my mother's gym`, `my gym`), or another person (`Bea`, `Ben`).
 *
 * @param asked stems of the words of the question
 */
export function isAside(turn: string, other: string, asked: ReadonlySet<string>): boolean {
  const [said, saidThen] = [saidIn(turn), saidIn(other)];
  return (
    isOfOtherOwner(said, saidThen, asked) ||
    isNarrower(wordsIn(saidThen), wordsIn(said), asked) ||
    isOfOtherPerson(said, saidThen, asked)
  );
}

/** They say which one only where they stand for themselves: there is one monthly rent, and one new door code. */
const NO_KIND = new Set(
  (
    'new current latest actual correct right final total whole full entire real exact official updated revised main same ' +
    'daily weekly monthly yearly annual usual regular next last first ' +
    'neue neuen neuer neues aktuelle aktuellen aktueller aktuelles richtige richtigen richtiger richtiges ganze ganzen gesamte gesamten ' +
    'endgultige endgultigen tagliche taglichen wochentliche wochentlichen monatliche monatlichen monatlicher jahrliche jahrlichen ' +
    'nachste nachsten letzte letzten erste ersten genaue genauen'
  ).split(' '),
);

/** Words of a text among which its subject is. */
const SUBJECT = 3;
/** Shorter words end many others by chance. */
const COMPOUND = 4;

/**
 * Whether a text says of a special one of the things that the question names what another says: in the same words, or as the subject of
 * both.
 */
function isNarrower(
  words: readonly string[],
  narrower: readonly string[],
  asked: ReadonlySet<string>,
): boolean {
  if (words.length > LONGEST || narrower.length > LONGEST) return false;
  const pairs = commonWords(words, narrower);
  const isSame = pairs.length >= COMMON * Math.min(words.length, narrower.length);
  const isAsked = (word: string): boolean => asked.has(stemOf(word));
  const known = new Set(words.map(stemOf));
  const isKind = (word: string): boolean =>
    says(word) && isName(word) && !NO_KIND.has(word) && !known.has(stemOf(word)) && !isAsked(word);
  const ends = [...pairs, [words.length, narrower.length] as const];
  return ends.some(([at, place], index) => {
    const [before, placeBefore] = pairs[index - 1] ?? [-1, -1];
    // `The newsletter`, `the internal newsletter`
    const isSubject = place <= SUBJECT && before === 0 && placeBefore === 0 && !says(words[0] ?? '');
    if (!isSame && !isSubject) return false;
    const [replaced, added] = [words.slice(before + 1, at), narrower.slice(placeBefore + 1, place)];
    const named = words[at];
    if (replaced.length === 0)
      return named !== undefined && isAsked(named) && added.length <= 2 && added.some(isKind);
    // `Schlüssel`, `Ersatzschlüssel`
    const [thing = ''] = replaced;
    return (
      thing.length >= COMPOUND && isAsked(thing) && added.some((word) => isKind(word) && word.endsWith(thing))
    );
  });
}

const PERSON = /^(?:(?:Frau|Herr|Mr|Mrs|Ms|Dr|Doktor|Doctor)\.? )?(\p{Lu}\p{Ll}+) (?=\p{Ll})/u;
const PRONOUN = /(?<!\p{L})(?:he|she|they|him|her|his|their|er|sie|ihn|ihm|ihr\p{L}*|sein\p{L}*)(?!\p{L})/iu;

/** Whether a text begins with a name that neither the question nor the other text has, which begins with one that the question has. */
function isOfOtherPerson(said: string, other: string, asked: ReadonlySet<string>): boolean {
  const [name, asksFor] = [said, other].map((text) => wordsOf(PERSON.exec(text)?.[1] ?? '')[0]);
  if (name === undefined || asksFor === undefined || !says(name) || PRONOUN.test(said)) return false;
  const [words, otherWords] = [new Set(wordsOf(said)), new Set(wordsOf(other))];
  const isNamed = asked.has(stemOf(asksFor)) && !words.has(asksFor);
  return isNamed && !asked.has(stemOf(name)) && !otherWords.has(name);
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
