import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { chatMessageId } from '../ids.ts';
import type { Searched } from '../search/query-vector.ts';
import { isQuestion, saidIn, saysOfOneself, speakerOf } from '../search/statements.ts';
import { isSameVoice } from '../search/successors.ts';
import { searchTurns } from '../search/turns.ts';
import type { Store, Turn } from '../store.ts';

/** A turn that a later one may have made outdated. */
export interface EarlierTurn {
  /** What it says, with its day and speaker. */
  readonly statement: string;
  /** That of its entity. */
  readonly id: string;
}

/**
 * Turns before one that say something about the same, best first, then the latest, because "moved to York" has no word of "we live in
 * Leeds"; at most `MEMORY_STORE_LIMITS.earlierTurns`.
 *
 * @param id of the turn's entity
 * @throws the signal's reason
 */
export async function earlierTurns(
  searched: Searched,
  id: string,
  signal: AbortSignal,
): Promise<EarlierTurn[]> {
  const { store } = searched;
  const turn = await turnOf(store, id);
  if (turn === undefined || turn.role === 'assistant') return [];
  const { candidates, latestTurns, queryLength } = MEMORY_STORE_LIMITS;
  // The same millisecond may have an earlier turn.
  const to = new Date(Date.parse(turn.createdAt) + 1).toISOString();
  const query = turn.content.slice(0, queryLength);
  const found = await searchTurns(searched, { query, asOf: to, limit: candidates }, signal);
  const latest = await store.searchTurns({ agentId: turn.agentId, to, order: 'newest', limit: latestTurns });
  const isChangeable = (one: Turn): boolean => !isQuestion(one.content) && mayChange(turn, one);
  const best = found.filter(isChangeable).slice(0, MEMORY_STORE_LIMITS.earlierTurns / 2);
  const all = new Map([...best, ...latest.turns.filter(isChangeable)].map((one) => [one.id, one]));
  const earlier = new Map([...all].slice(0, MEMORY_STORE_LIMITS.earlierTurns));
  // A turn from before turns were indexed has no entity to mark.
  const marked = new Set(
    (await store.entities([...earlier.keys()].map(chatMessageId))).map((entity) => entity.id),
  );
  return [...earlier.values()]
    .map((one) => ({
      statement: `${one.createdAt.slice(0, 10)}, ${speakerOf(one)}: ${saidIn(one.content).slice(0, MEMORY_STORE_LIMITS.earlierTurnLength)}`,
      id: chatMessageId(one.id),
    }))
    .filter((one) => marked.has(one.id));
}

/**
 * Whether a turn may change what another one says: of its session, the same person, or the same agent. Nobody else's statements are
 * theirs to change, and what somebody says of themselves is not news of somebody else.
 */
function mayChange(turn: Turn, earlier: Turn): boolean {
  if (earlier.seq >= turn.seq) return false;
  const isOfAgent = turn.agentId === earlier.agentId && !saysOfOneself(saidIn(turn.content));
  return isOfAgent || isSameVoice(turn, earlier);
}

async function turnOf(store: Store, id: string): Promise<Turn | undefined> {
  const [entity] = await store.entities([id]);
  const turnId = entity?.metadata['turnId'];
  if (typeof turnId !== 'string') return undefined;
  const { turns } = await store.relatedTurns({ terms: [], ids: [turnId], limit: 1 });
  const turn = turns.find((one) => one.id === turnId);
  return turn === undefined || Number.isNaN(Date.parse(turn.createdAt)) ? undefined : turn;
}
