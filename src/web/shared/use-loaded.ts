import { useCallback, useEffect, useState } from 'react';
import { ask } from './api.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: Error | undefined;
  readonly reload: () => void;
}

/**
 * Loads JSON from the server when the page opens, and again every `everyMs` if given. Keeps the last successful
 * response. Without a path, nothing is loaded.
 */
export function useLoaded<T>(path: string | undefined, everyMs?: number): Loaded<T> {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<Error>();
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((count) => count + 1), []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of `round` loads it again.
  useEffect(() => {
    if (path === undefined) return undefined;
    const gone = new AbortController();
    ask<T>(path, { signal: gone.signal }).then(
      (value) => {
        setData(value);
        setError(undefined);
      },
      (problem: Error) => {
        if (!gone.signal.aborted) setError(problem);
      },
    );
    const timer = everyMs === undefined ? undefined : setTimeout(reload, everyMs);
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, round, reload]);
  return { data, error, reload };
}
