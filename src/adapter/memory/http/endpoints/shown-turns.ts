import type { FoundTurn } from '../../search/turns.ts';
import type { Store, Turn } from '../../store.ts';

/** A turn that replaces another one. */
export interface Successor extends Pick<Turn, 'seq' | 'sessionId' | 'role' | 'content' | 'createdAt'> {
  readonly link: string;
}

/** A found turn with the address of its conversation. */
export interface ShownTurn extends FoundTurn {
  readonly link: string;
  /** The turn that `supersededBy` names, unless it is among the results. */
  readonly successor?: Successor;
}

/** The conversation from a turn on. */
function linkOf({ sessionId, seq }: Pick<Turn, 'sessionId' | 'seq'>): string {
  return `/api/memory/sessions/${encodeURIComponent(sessionId)}/turns?after=${seq - 1}`;
}

/** Turns as a search returns them. No tool finds a turn by its number, so a replaced turn brings the one that counts. */
export async function shownTurns(store: Store, found: readonly FoundTurn[]): Promise<ShownTurn[]> {
  const there = new Set(found.map(({ seq }) => seq));
  return Promise.all(
    found.map(async (turn) => {
      const later = turn.supersededBy;
      const missing = later === undefined || there.has(later) ? undefined : await turnAt(store, later);
      return { ...turn, link: linkOf(turn), ...(missing !== undefined && { successor: missing }) };
    }),
  );
}

async function turnAt(store: Store, at: number): Promise<Successor | undefined> {
  const { turns } = await store.searchTurns({ order: 'oldest', cursor: at - 1, limit: 1 });
  const [turn] = turns;
  // It may have been deleted since.
  if (turn?.seq !== at) return undefined;
  const { seq, sessionId, role, content, createdAt } = turn;
  return { seq, sessionId, role, content, createdAt, link: linkOf(turn) };
}
