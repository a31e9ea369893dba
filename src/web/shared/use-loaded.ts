import { useCallback, useEffect, useState } from 'react';
import { ask } from './api.ts';
import { isRefusal, whenShownAgain } from './refusal.ts';

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: Error | undefined;
  readonly reload: () => void;
}

/**
 * Loads JSON from the server when the page opens, and again every `everyMs` if given. Keeps the last successful
 * response. Without a path, nothing is loaded. After a refusal, the next attempt is made when the page is shown again.
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
    const timer = everyMs === undefined ? undefined : setTimeout(reload, everyMs);
    ask<T>(path, { signal: gone.signal }).then(
      (value) => {
        setData(value);
        setError(undefined);
      },
      (problem: Error) => {
        if (gone.signal.aborted) return;
        setError(problem);
        if (everyMs === undefined || !isRefusal(problem)) return;
        clearTimeout(timer);
        whenShownAgain(reload, gone.signal);
      },
    );
    return () => {
      gone.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, round, reload]);
  return { data, error, reload };
}
