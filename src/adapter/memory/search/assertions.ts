import { stemOf } from '../tokenizer.ts';
import { hasChange, startsWithChange, withoutEnding } from './change-words.ts';
import {
  CONDITION,
  CONTINUATION,
  DENIAL,
  NO_DENIAL,
  QUESTION,
  QUESTION_OF_NAME,
  SPEECH,
  SUPPOSITION,
} from './open-words.ts';
import { tellingWords } from './statements.ts';

/** A part of what somebody says. */
interface Clause {
  readonly text: string;
  /** Whether it says how things are: it does not ask, suppose, propose or quote. */
  readonly isStated: boolean;
  /** Whether it says how things are not, other than by saying that something has ended. */
  readonly isDenial: boolean;
}

/** Characters of a turn that are read. */
const READ = 16_000;

/** Texts in quotation marks, and quoted lines. */
const QUOTED =
  /(?:[:,] ?)?(?:"[^"\n]{2,600}"|“[^“”\n]{2,600}”|„[^„“”"\n]{2,600}[“”"]|«[^«»\n]{2,600}»|»[^«»\n]{2,600}«|(?<![\p{L}\p{N}])['‘‚](?:[^'‘’‚\n]|(?<=\p{L})['’](?=\p{L})){2,600}['’‘](?![\p{L}\p{N}]))|^ ?>.*$/gmu;
/** What a quotation is replaced with. */
const QUOTATION = ' “ ';

const SENTENCES = /(?<=[.!?])\s+|(?<=[。！？])|\n+|;\s/u;
/** Before `and`, only if a subject follows: the other verb has that of the first. */
const CLAUSES =
  /[,:] | [–—-] | (?:so|because|weil|denn|aber) | (?:and|und) (?=(?:I|we|you|he|she|it|they|there|the|my|our|ich|wir|ihr|er|sie|es|man|der|die|das|mein\p{L}*|unser\p{L}*)(?![\p{L}\p{N}]))|[，、]/u;

/** What a turn says, clause by clause; quotations are only marked. */
function clausesOf(said: string): Clause[] {
  return (
    said
      .slice(0, READ)
      .replace(/[^\S\n]+/g, ' ')
      // One word in quotation marks is a name.
      .replace(QUOTED, (quoted) => (/\S \S/.test(quoted.replace(/^[:,] ?/, '')) ? QUOTATION : quoted))
      .split(SENTENCES)
      .flatMap(clausesIn)
  );
}

function clausesIn(sentence: string): Clause[] {
  const isOpen = /[?？][^\p{L}\p{N}]{0,20}$/u.test(sentence) || CONDITION.test(sentence.trim());
  let isSupposed = false;
  let isDenial = false;
  return sentence
    .split(CLAUSES)
    .map((clause) => clause.trim())
    .filter((clause) => /[\p{L}\p{N}“]/u.test(clause))
    .map((text) => {
      const goesOn = (isSupposed || isDenial) && (CONTINUATION.test(text) || startsWithChange(text));
      isSupposed =
        (goesOn && isSupposed) ||
        SUPPOSITION.test(text) ||
        QUESTION.test(text) ||
        QUESTION_OF_NAME.test(text);
      isDenial =
        (goesOn && isDenial) ||
        (DENIAL.test(text) && DENIAL.test(withoutEnding(text).replace(NO_DENIAL, ' ')));
      return {
        text,
        isStated: !isOpen && !isSupposed && !onlyQuotes(text),
        isDenial,
      };
    });
}

/** `Anna said “ `, but not `we call it “ now`. */
function onlyQuotes(clause: string): boolean {
  return clause.includes('“') && (SPEECH.test(clause) || !/[\p{L}\p{N}]/u.test(clause));
}

/** Whether a text says itself that something has changed: no question, no plan, no quotation, and no denial of a change. */
export function tellsChange(said: string): boolean {
  return (
    hasChange(said) &&
    clausesOf(said).some(({ text, isStated, isDenial }) => isStated && !isDenial && hasChange(text))
  );
}

/** Of what a text says, the clauses with any of these stems, or all if there is none. */
function clausesAbout(said: string, stems: Stems): Clause[] {
  const clauses = clausesOf(said);
  if (clauses.every(({ isStated, isDenial }) => isStated && !isDenial)) return clauses;
  const about = clauses.filter(({ text }) => tellingWords(text).some((word) => stems.has(stemOf(word))));
  return about.length > 0 ? about : clauses;
}

/** By the keys of a map, or a set. */
interface Stems {
  has(stem: string): boolean;
}

/** Whether a text says how something is, rather than asking, supposing or denying it. */
export function states(said: string, stems: Stems): boolean {
  return clausesAbout(said, stems).some(({ isStated, isDenial }) => isStated && !isDenial);
}

/** Whether a text only asks, supposes, proposes or quotes. */
export function leavesOpen(said: string, stems: Stems): boolean {
  return !clausesAbout(said, stems).some(({ isStated }) => isStated);
}
