import { isCredentialName, REDACTED } from '../../core/credentials.ts';
import type { Path } from '../../core/diagnostic.ts';
import { byForm } from '../../core/redact.ts';
import { builtinPatterns, type Patterns } from '../../server/guardrails/patterns.ts';
import {
  BUILTIN_NAMES,
  BUILTINS,
  type Builtin,
  PATTERN_REPLACEMENT,
} from '../../server/guardrails/sensitive-data.ts';

/** The placeholders that redaction leaves in a recording. */
const NAMES = [
  REDACTED,
  PATTERN_REPLACEMENT,
  ...Object.values(BUILTINS).map(({ replacement }) => replacement),
];
const MARKS = new RegExp(`(?:${NAMES.join('|')})+`, 'g');

/**
 * Compares values of which one is redacted: the other one is redacted by the same rules, and is the same if it then has the
 * same text. Values of the configuration and matches of its own patterns have no form that this can know: one word of six
 * characters or more, as `Redactor` knows them, is the same as `<redacted>`, and a part of a line as `<masked>`.
 */
export class RedactedForms {
  /** Requests are compared with many recorded ones, and have long texts: what each of them is by the rules with these marks. */
  readonly #known = new Map<string, string>();
  readonly #patterns = new Map<string, Patterns>();

  areSame(one: unknown, other: unknown, path: Path): boolean {
    const isFirst = hasMark(one);
    if (!isFirst && !hasMark(other)) return false;
    const [redacted, given] = isFirst ? [String(one), other] : [String(other), one];
    // A member that was redacted by its name, or an option of a command by the one before it.
    if (redacted === REDACTED && path.some((name) => name === 'args' || isCredentialName(String(name))))
      return given !== undefined;
    if (typeof given !== 'string' && typeof given !== 'number') return false;
    return isForm(redacted, this.#redacted(String(given), redacted));
  }

  /** A text by the rules that have left their marks in a redacted one. */
  #redacted(text: string, redacted: string): string {
    const names = BUILTIN_NAMES.filter((name) => redacted.includes(BUILTINS[name].replacement));
    const key = `${names.join()} ${text}`;
    let clean = this.#known.get(key);
    if (clean === undefined) {
      clean = byForm.line(this.#masking(names).mask(text));
      this.#known.set(key, clean);
    }
    return clean;
  }

  #masking(names: readonly Builtin[]): Patterns {
    const key = names.join();
    const patterns = this.#patterns.get(key) ?? builtinPatterns(names);
    this.#patterns.set(key, patterns);
    return patterns;
  }
}

const hasMark = (value: unknown): boolean => typeof value === 'string' && value.search(MARKS) >= 0;

/** Whether a text is a redacted one, with other text only where that has a mark. Each part is looked for once. */
function isForm(redacted: string, text: string): boolean {
  const marks = redacted.match(MARKS) ?? [];
  const [first = '', ...parts] = redacted.split(MARKS);
  const last = parts.pop() ?? '';
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const [index, mark] of marks.entries()) {
    const part = parts[index];
    const next = part === undefined ? end : text.indexOf(part, at + 1);
    if (next <= at || next > end || !standsFor(mark, text.slice(at, next))) return false;
    at = next + (part ?? '').length;
  }
  return true;
}

/** A mark of an earlier version may have another name. */
function standsFor(mark: string, text: string): boolean {
  if (text.replace(MARKS, '') === '') return true;
  if (mark.includes(PATTERN_REPLACEMENT)) return !text.includes('\n');
  return mark.includes(REDACTED) && /^\S{6,}$/.test(text);
}
