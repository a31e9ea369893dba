import type { Path } from '../../core/diagnostic.ts';
import { isRecord } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Ignored } from './ignored.ts';
import { RedactedForms } from './redacted-forms.ts';
import { isExactNumber } from './redaction.ts';

/** A value that is another one than was recorded; undefined: there is none. */
export interface Difference {
  readonly path: Path;
  readonly recorded: unknown;
  readonly found: unknown;
}

/** The text of a value that equal values have: members in the order of their names, without those that are ignored. */
export function canonical(value: unknown, ignored: Ignored): string {
  if (Array.isArray(value))
    return `[${value.map((item, index) => canonical(ignored.in(index).isHere ? null : item, ignored.in(index))).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value)
    .filter(([name, member]) => !isNothing(member, ignored.in(name)))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonical(member, ignored.in(name))}`);
  return `{${members.join(',')}}`;
}

/** Whether a member counts as absent: it is ignored, or is an object with nothing else than ignored members. */
function isNothing(value: unknown, ignored: Ignored): boolean {
  if (value === undefined || ignored.isHere) return true;
  if (!isObject(value)) return false;
  const members = Object.entries(value);
  return members.length > 0 && members.every(([name, member]) => isNothing(member, ignored.in(name)));
}

/**
 * How a value differs from the recorded one, at most `LIMITS.cassetteDifferences` times. What was redacted is the same as what
 * would be.
 */
export function differences(
  recorded: unknown,
  found: unknown,
  ignored: Ignored,
  forms = new RedactedForms(),
): Difference[] {
  const all: Difference[] = [];
  compare(recorded, found, ignored, [], { all, forms });
  return all;
}

interface Comparing {
  readonly all: Difference[];
  readonly forms: RedactedForms;
}

function compare(
  recorded: unknown,
  found: unknown,
  ignored: Ignored,
  path: Path,
  comparing: Comparing,
): void {
  const { all, forms } = comparing;
  if (ignored.isHere || all.length >= LIMITS.cassetteDifferences) return;
  if (Array.isArray(recorded) && Array.isArray(found)) {
    for (let at = 0; at < Math.max(recorded.length, found.length); at += 1)
      compare(recorded[at], found[at], ignored.in(at), [...path, at], comparing);
  } else if (isObject(recorded) && isObject(found)) {
    for (const name of new Set([...Object.keys(recorded), ...Object.keys(found)])) {
      const [one, other] = [recorded, found].map((each) =>
        Object.hasOwn(each, name) ? each[name] : undefined,
      );
      compare(one, other, ignored.in(name), [...path, name], comparing);
    }
  } else if (isNothing(recorded, ignored) && isNothing(found, ignored)) return;
  else if (!isSame(recorded, found, path, forms)) all.push({ path, recorded, found });
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isRecord(value) && !isExactNumber(value);

const isSame = (recorded: unknown, found: unknown, path: Path, forms: RedactedForms): boolean =>
  recorded === found ||
  forms.areSame(recorded, found, path) ||
  JSON.stringify(recorded) === JSON.stringify(found);

const SHOWN = 60;

/** A value in a message: of a long text the part around the first character that is another one. */
export function shown({ recorded, found }: Difference): {
  readonly recorded: string;
  readonly found: string;
} {
  if (typeof recorded === 'string' && typeof found === 'string') {
    let at = 0;
    while (at < recorded.length && recorded[at] === found[at]) at += 1;
    const from = Math.max(0, Math.min(at - SHOWN / 3, Math.max(recorded.length, found.length) - SHOWN));
    return { recorded: excerpt(recorded, from), found: excerpt(found, from) };
  }
  return { recorded: brief(recorded), found: brief(found) };
}

const excerpt = (text: string, from: number): string =>
  `${from > 0 ? '…' : ''}${JSON.stringify(text.slice(from, from + SHOWN))}${from + SHOWN < text.length ? '…' : ''}`;

function brief(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}
