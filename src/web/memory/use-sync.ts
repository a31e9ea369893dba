import { useCallback, useEffect, useRef, useState } from 'react';
import { ask } from '../shared/api.ts';
import { API, type SyncStatus } from './model.ts';

/** Polling intervals in ms: during a sync, and otherwise. */
const RUNNING = 500;
const IDLE = 2_000;

export interface Sync {
  readonly status: SyncStatus | undefined;
  readonly error: Error | undefined;
  /** Whether this page started a sync that has not ended. */
  readonly isAsked: boolean;
  readonly start: () => void;
  readonly reload: () => void;
}

/**
 * The sync of the docs folder, whoever started it; polls the backend.
 *
 * @param ended called when a sync has ended, which may have changed what is stored
 */
export function useSync(ended: () => void): Sync {
  const [status, setStatus] = useState<SyncStatus>();
  const [error, setError] = useState<Error>();
  const [isAsked, setAsked] = useState(false);
  const [round, setRound] = useState(0);
  const wasRunning = useRef(false);
  const onEnd = useRef(ended);
  onEnd.current = ended;
  const take = useCallback((next: SyncStatus) => {
    setStatus(next);
    setError(undefined);
    const isRunning = next.state === 'running';
    if (wasRunning.current && !isRunning) onEnd.current();
    wasRunning.current = isRunning;
    return isRunning;
  }, []);
  useEffect(() => {
    // A change of it starts the effect again.
    void round;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      ask<{ sync: SyncStatus }>(`${API}/ingest/status`, { signal: gone.signal }).then(
        ({ sync }) => {
          if (!gone.signal.aborted) timer = setTimeout(look, take(sync) ? RUNNING : IDLE);
        },
        (problem: Error) => {
          if (gone.signal.aborted) return;
          setError(problem);
          timer = setTimeout(look, IDLE);
        },
      );
    };
    look();
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [round, take]);
  const reload = useCallback(() => setRound((rounds) => rounds + 1), []);
  const start = useCallback(() => {
    setAsked(true);
    ask<{ sync: SyncStatus }>(`${API}/ingest/docs`, { method: 'POST' })
      .then(({ sync }) => take(sync), setError)
      .finally(() => {
        setAsked(false);
        reload();
        // Also if the sync ended before the first poll.
        onEnd.current();
      });
    setTimeout(reload, 50);
  }, [take, reload]);
  return { status, error, isAsked, start, reload };
}
