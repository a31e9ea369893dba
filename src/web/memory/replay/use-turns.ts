import { useEffect, useState } from 'react';
import { MEMORY_PAGE_LIMITS as LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { API, type Turn } from '../model.ts';

export interface Turns {
  /** In order; a new list when more have arrived. */
  readonly turns: readonly Turn[];
  readonly state: 'loading' | 'complete' | 'cut' | 'failed';
  readonly error: Error | undefined;
  readonly reload: () => void;
}

interface TurnPage {
  readonly turns: readonly Turn[];
  readonly nextAfter: number | null;
}

const NOTHING = { turns: [], state: 'loading', error: undefined } as const;
/**
 * Minimum interval between updates of the page, in ms: drawing every part of a long session would take longer than
 * loading it.
 */
const UPDATE_INTERVAL = 150;

/** All turns of a session, loaded in parts; the first can be displayed while the others are loading. */
export function useTurns(session: string): Turns {
  const [found, setFound] = useState<Omit<Turns, 'reload'>>(NOTHING);
  const [round, setRound] = useState(0);
  useEffect(() => {
    // A change of it starts the effect again.
    void round;
    const gone = new AbortController();
    setFound(NOTHING);
    load(session, gone.signal, (next) => {
      if (!gone.signal.aborted) setFound(next);
    }).catch(
      (error: Error) => gone.signal.aborted || setFound(({ turns }) => ({ turns, state: 'failed', error })),
    );
    return () => gone.abort();
  }, [session, round]);
  return { ...found, reload: () => setRound(round + 1) };
}

async function load(
  session: string,
  signal: AbortSignal,
  tell: (found: Omit<Turns, 'reload'>) => void,
): Promise<void> {
  const turns: Turn[] = [];
  let after: number | null = 0;
  let limit: number = LIMITS.turnsFirst;
  let characters = 0;
  let toldAt = -Infinity;
  while (after !== null && characters < LIMITS.sessionText) {
    const path: string = `${API}/sessions/${encodeURIComponent(session)}/turns?after=${after}&limit=${limit}`;
    const page: TurnPage = await ask<TurnPage>(path, { signal });
    turns.push(...page.turns);
    const length = page.turns.reduce((sum, { content }) => sum + content.length, 0);
    characters += length;
    limit = length < 1_000 * limit ? LIMITS.turnsMore : LIMITS.turnsFirst;
    after = page.nextAfter;
    if (after === null || performance.now() - toldAt < UPDATE_INTERVAL) continue;
    toldAt = performance.now();
    tell({ turns: [...turns], state: 'loading', error: undefined });
  }
  tell({ turns, state: after === null ? 'complete' : 'cut', error: undefined });
}
