import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { SUPERSEDES } from '../../../core/memory-model.ts';
import { chatMessageId } from '../ids.ts';
import type { Store, Turn, TurnQuery } from '../store.ts';

/** Changes of changes that are followed: a value that changed more often is found by its own turns. */
const STEPS = 5;

/**
 * The turns that a language model found to make some turns outdated, and those that make these outdated, by the `seq` of the earlier
 * turn. Of several, the latest.
 *
 * @param scope which turns a search may return
 */
export async function markedSuccessors(
  store: Store,
  turns: readonly Turn[],
  scope: Pick<TurnQuery, 'sessionId' | 'agentId' | 'to'>,
): Promise<Map<number, Turn>> {
  const successors = new Map<number, Turn>();
  let open = turns;
  for (let step = 0; step < STEPS && open.length > 0; step += 1) {
    const marks = await marksOf(store, open);
    if (marks.size === 0) break;
    const ids = [...new Set([...marks.values()].flat())];
    const found = await store.relatedTurns({
      terms: [],
      ids,
      limit: MEMORY_STORE_LIMITS.candidates,
      ...scope,
    });
    const byId = new Map(found.turns.map((turn) => [turn.id, turn]));
    const known = new Set([...turns.map(({ seq }) => seq), ...successors.keys()]);
    const next: Turn[] = [];
    for (const earlier of open) {
      // Not an earlier one: turns that are marked in a circle would follow each other for ever.
      const [later] = (marks.get(chatMessageId(earlier.id)) ?? [])
        .flatMap((id) => byId.get(id) ?? [])
        .filter(({ seq }) => seq > earlier.seq)
        .sort((left, right) => right.seq - left.seq);
      if (later === undefined) continue;
      successors.set(earlier.seq, later);
      if (!known.has(later.seq)) next.push(later);
    }
    open = next;
  }
  return successors;
}

/** Ids of the turns that make turns outdated, by the id of the entity of the outdated one. */
async function marksOf(store: Store, turns: readonly Turn[]): Promise<Map<string, string[]>> {
  const edges = await store.edges(
    turns.map(({ id }) => chatMessageId(id)),
    'in',
    MEMORY_STORE_LIMITS.candidates,
  );
  const marks = edges.filter(({ relationType }) => relationType === SUPERSEDES);
  if (marks.length === 0) return new Map();
  const entities = await store.entities([...new Set(marks.map(({ fromId }) => fromId))]);
  const turnIds = new Map(entities.map(({ id, metadata }) => [id, metadata['turnId']]));
  const byEarlier = new Map<string, string[]>();
  for (const { fromId, toId } of marks) {
    const turnId = turnIds.get(fromId);
    if (typeof turnId === 'string') byEarlier.set(toId, [...(byEarlier.get(toId) ?? []), turnId]);
  }
  return byEarlier;
}
