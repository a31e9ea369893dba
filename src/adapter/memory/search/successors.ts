import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { Store, Turn } from '../store.ts';
import { stemOf } from '../tokenizer.ts';
import { tellsChange } from './assertions.ts';
import { withoutChange } from './change-words.ts';
import { isGeneral } from './general-words.ts';
import { markedSuccessors } from './marked-turns.ts';
import { rarity, shareOf } from './query-words.ts';
import {
  asksForChoice,
  asksForPast,
  isQuestion,
  nameOf,
  saidIn,
  saysOfOneself,
  tellingStems,
  tellingWords,
} from './statements.ts';
import { isOfOther } from './subjects.ts';

/** What a search in conversations asks, and of which turns. */
export interface TurnScope {
  readonly query: string;
  readonly sessionId?: string | undefined;
  readonly agentId?: string | undefined;
  /** RFC 3339, UTC: not before. */
  readonly from?: string | undefined;
  /** RFC 3339, UTC: as if nothing had been said from then on. */
  readonly asOf?: string | undefined;
}

/** A turn with the value by which turns are ranked. */
export interface Judged {
  readonly turn: Turn;
  readonly fused: number;
  /** What it covers itself of the words of the question, by stem, times their weights. */
  readonly covered: ReadonlyMap<string, number>;
}

/** A turn at its place, marked if a later one says something else about the same. */
export interface Placed extends Judged {
  readonly supersededBy?: number;
}

/** How far clocks may have been put back since a turn was stored; ms. */
const CLOCK_CHANGE = 86_400_000;

/** The best turns, whose later changes are looked for. */
const FOLLOWED = 5;
/** Words of each that are looked up. */
const WORDS = 12;
/** What two turns must have in common, in words that no other turn has. */
const COMMON = 0.8;
/** And at least this share of what the shorter one says; more for a question about the past, which may mean the earlier one. */
const SHARE = 0.2;
const SHARE_PAST = 0.35;

/**
 * Places turns that say that something has changed before those about what it was. A question hardly has the words of the
 * change ("the club double-booked us, we move to the 21st"), but the change has those of what was said before.
 *
 * Facts that resemble each other are usually all true, so a later turn supersedes an earlier one only if it belongs to the
 * same session or person, says that something changes, and shares rare words with it.
 */
export async function withSuccessors(
  store: Store,
  best: readonly Judged[],
  { query, sessionId, agentId, asOf }: TurnScope,
): Promise<Placed[]> {
  const followed = best.slice(0, FOLLOWED).map(({ turn }) => turn);
  const words = [...new Set(followed.flatMap(({ content }) => tellingWords(content).slice(0, WORDS)))];
  const since = earliest(followed);
  if (since === undefined || words.length === 0) return [...best];
  const { turns, total, counts } = await store.relatedTurns({
    terms: words.slice(0, MEMORY_STORE_LIMITS.queryWords),
    ids: [],
    limit: MEMORY_STORE_LIMITS.candidates,
    sessionId,
    agentId,
    from: since,
    to: asOf,
  });
  const weights = new Map(
    words.map((word) => [stemOf(word), shareOf(word) * rarity(counts.get(word) ?? 0, total)]),
  );
  const changes = turns.filter((turn) => tellsChange(saidIn(turn.content)) && !isQuestion(turn.content));
  const highest = rarity(1, total);
  const share = asksForPast(query) ? SHARE_PAST : SHARE;
  const asked = tellingStems(query);
  // What a language model has found is more certain than what words say.
  const successors = await markedSuccessors(store, followed, { sessionId, agentId, to: asOf });
  for (const earlier of followed) {
    if (successors.has(earlier.seq)) continue;
    const later =
      changes
        .filter((turn) => !isOfOther(turn.content, earlier.content, asked))
        .filter((turn) => supersedes(turn, earlier, weights, highest, share))
        .at(-1) ?? (asksForChoice(query) ? decision(best, earlier) : undefined);
    if (later !== undefined) successors.set(earlier.seq, later);
  }
  if (asksForPast(query))
    return best.map((one) => {
      const later = successors.get(one.turn.seq);
      return later === undefined ? one : { ...one, supersededBy: later.seq };
    });
  return inOrder(best, successors);
}

/**
 * The time from which later turns are looked for. What was said later may have an earlier time: clocks are put back, and imported turns
 * may have any.
 */
function earliest(turns: readonly Turn[]): string | undefined {
  const [first] = turns.map(({ createdAt }) => createdAt).sort();
  const time = Date.parse(first ?? '');
  return Number.isNaN(time) ? first : new Date(Math.min(time, Date.now()) - CLOCK_CHANGE).toISOString();
}

function supersedes(
  later: Turn,
  earlier: Turn,
  weights: ReadonlyMap<string, number>,
  highest: number,
  share: number,
): boolean {
  if (later.seq <= earlier.seq) return false;
  if (!isSameVoice(later, earlier)) return false;
  // What marks the change is not a subject that both have.
  const [said, saidThen] = [
    tellingStems(withoutChange(later.content)),
    tellingStems(withoutChange(earlier.content)),
  ];
  let common = 0;
  let count = 0;
  for (const stem of saidThen)
    if (said.has(stem)) {
      if (!isGeneral(stem)) common += weights.get(stem) ?? 0;
      count += 1;
    }
  return common >= COMMON * highest && count >= share * Math.min(said.size, saidThen.size);
}

/** What a later turn needs of the value of an earlier one to decide between the two values that a question names. */
const DECIDES = 0.5;

/** The later turn, found as well, that says that something changes: it shares words with the question, and none with the earlier one. */
function decision(best: readonly Judged[], earlier: Turn): Turn | undefined {
  const value = best.find(({ turn }) => turn.seq === earlier.seq)?.fused ?? 0;
  return (
    best
      .filter(({ fused, turn }) => fused >= DECIDES * value && turn.seq > earlier.seq)
      // Its neighbors may have brought a turn about something else to the top.
      .filter(({ covered }) => [...covered.keys()].some((stem) => !isGeneral(stem)))
      .map(({ turn }) => turn)
      .filter(
        (turn) =>
          isSameVoice(turn, earlier) && tellsChange(saidIn(turn.content)) && !isQuestion(turn.content),
      )
      .sort((left, right) => left.seq - right.seq)
      .at(-1)
  );
}

/** In one session, or the same person in another one. Assistants change nothing: they confirm what they were told. */
export function isSameVoice(later: Turn, earlier: Turn): boolean {
  if (later.role === 'assistant') return false;
  const isSame = nameOf(later) === nameOf(earlier);
  // What somebody says of themselves is not news of somebody else.
  if (later.sessionId === earlier.sessionId) return isSame || !saysOfOneself(saidIn(later.content));
  // A role is not a person: the users of two agents are two.
  return isSame && (nameOf(later) !== undefined || later.agentId === earlier.agentId);
}

/** Each superseded turn directly after its successor, which takes its place if it is not before it anyway. */
function inOrder(best: readonly Judged[], successors: ReadonlyMap<number, Turn>): Placed[] {
  const known = new Map(best.map((one) => [one.turn.seq, one]));
  const placed = new Map<number, Placed>();
  const place = (one: Judged): void => {
    if (placed.has(one.turn.seq)) return;
    const later = successors.get(one.turn.seq);
    if (later === undefined) {
      placed.set(one.turn.seq, one);
      return;
    }
    const successor = known.get(later.seq);
    place({
      turn: later,
      fused: Math.max(one.fused, successor?.fused ?? 0),
      covered: successor?.covered ?? new Map(),
    });
    placed.set(one.turn.seq, { ...one, supersededBy: later.seq });
  };
  for (const one of best) place(one);
  return [...placed.values()];
}
