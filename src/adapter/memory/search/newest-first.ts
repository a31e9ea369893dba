import type { Turn } from '../store.ts';
import { stemOf, wordsOf } from '../tokenizer.ts';
import { states, tellsChange } from './assertions.ts';
import { isOnlyOfOwner } from './owners.ts';
import {
  type AskedFor,
  askedFor,
  asksForPast,
  asksForReason,
  isQuestion,
  nameOf,
  saidIn,
  tellingStems,
  tellsNumber,
  tellsTime,
} from './statements.ts';
import { isAside, isOfOther } from './subjects.ts';
import type { Placed, TurnScope } from './successors.ts';

// Chosen on the development half and on `people` of `npm run bench memory-turns`.

/** A later turn goes first with this share of the value of the better one, if it is about the same. */
const SIMILAR = 0.6;
/** What it must have of the question's words that the better turn has. */
const COMMON = 0.3;
/** And with this share in any case: the values say nothing about which is right. */
const EQUAL = 0.9;
/** The same where a number or a time is asked for, and the later turn has one and says that something has changed. */
const NEW_VALUE = 0.3;

/**
 * Places the newest first among turns that answer a question about the present about equally well: what was said last is
 * usually true. A question about the past or for a reason, and a turn that only asks, change nothing.
 *
 * @param placed the turns that are returned, best first
 */
export function newestFirst(placed: readonly Placed[], { query }: TurnScope): Placed[] {
  if (asksForPast(query) || asksForReason(query)) return [...placed];
  const kind = askedFor(query);
  const hasValue = valueTest(kind);
  const changes = new Set(placed.map(({ supersededBy }) => supersededBy));
  const asked = tellingStems(query);
  const rest = [...placed];
  const ordered: Placed[] = [];
  for (let best = rest[0]; best !== undefined; best = rest[0]) {
    const better = best;
    const newest = rest
      .filter((turn) => isRival(turn, better, asked, kind === undefined ? undefined : hasValue))
      .filter((turn) => !isOnlyOfOwner(query, turn.covered, better.covered))
      .filter(({ turn }) => hasValue(turn.content) || !hasValue(better.turn.content))
      // What has changed a fact holds until something else is said to change.
      .filter(({ turn }) => !changes.has(better.turn.seq) || tellsChange(saidIn(turn.content)))
      .reduce((one, other) => (other.turn.seq > one.turn.seq ? other : one), better);
    // Its neighbors may have brought a turn about another thing to the top.
    const named = rest.find(
      (turn) =>
        turn.fused >= SIMILAR * newest.fused &&
        (([...turn.covered.keys()].some((stem) => !newest.covered.has(stem)) &&
          isOfOther(newest.turn.content, turn.turn.content, asked)) ||
          isAside(newest.turn.content, turn.turn.content, asked)),
    );
    const next = named ?? newest;
    ordered.push(next);
    rest.splice(rest.indexOf(next), 1);
  }
  return ordered;
}

/** Whether a turn has a value of the kind that the question asks for, such as a number. */
function valueTest(asked: AskedFor): (content: string) => boolean {
  if (asked === undefined) return () => true;
  return (content) => (asked === 'time' ? tellsTime : tellsNumber)(saidIn(content));
}

/**
 * Whether a later turn may say the newer value of what the better one says.
 *
 * @param hasValue whether a turn has a number or a time, if the question asks for one
 */
function isRival(
  later: Placed,
  better: Placed,
  asked: ReadonlySet<string>,
  hasValue: ((content: string) => boolean) | undefined,
): boolean {
  if (later.turn.seq <= better.turn.seq || isQuestion(later.turn.content)) return false;
  // An assistant may repeat a value that is out of date.
  if (later.turn.role === 'assistant' && better.turn.role !== 'assistant') return false;
  if (!states(saidIn(later.turn.content), later.covered)) return false;
  if (isOfOther(later.turn.content, better.turn.content, asked)) return false;
  if (isAskedOf(better.turn, later.turn, asked)) return false;
  if (later.fused >= EQUAL * better.fused) return true;
  const isNew = hasValue?.(later.turn.content) === true && tellsChange(saidIn(later.turn.content));
  return later.fused >= (isNew ? NEW_VALUE : SIMILAR) * better.fused && commonShare(later, better) >= COMMON;
}

/** Whether the question names the one who says a turn (`Ann: my locker is 12`), and another one says the other. */
function isAskedOf(turn: Turn, other: Turn, asked: ReadonlySet<string>): boolean {
  const [name, otherName] = [nameOf(turn), nameOf(other)];
  const isNamed = (speaker: string): boolean => wordsOf(speaker).some((word) => asked.has(stemOf(word)));
  return name !== undefined && otherName !== undefined && isNamed(name) && !isNamed(otherName);
}

function commonShare({ covered: later }: Placed, { covered: better }: Placed): number {
  let [common, total] = [0, 0];
  for (const [stem, value] of better) {
    total += value;
    common += Math.min(value, later.get(stem) ?? 0);
  }
  return total === 0 ? 0 : common / total;
}
