import { useCallback, useEffect, useRef, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { API, type EntityPage } from '../model.ts';

interface Entities {
  /** Undefined until the first page is loaded. */
  readonly entities: EntityPage['entities'] | undefined;
  readonly hasMore: boolean;
  readonly error: Error | undefined;
  readonly more: () => void;
  /** Loads as many again as there are now. */
  readonly reload: () => void;
}

/** Entities by name, page by page. Empty values match everything. */
export function useEntities(text: string, type: string): Entities {
  const [page, setPage] = useState<EntityPage>();
  const [error, setError] = useState<Error>();
  const gone = useRef(new AbortController());
  const load = useCallback(
    (former: EntityPage['entities'], cursor: string | null, atLeast: number): void => {
      const { signal } = gone.current;
      const query = new URLSearchParams({ limit: String(MEMORY_PAGE_LIMITS.tableRows) });
      if (text !== '') query.set('query', text);
      if (type !== '') query.set('types', type);
      if (cursor !== null) query.set('cursor', cursor);
      ask<EntityPage>(`${API}/entities?${query}`, { signal }).then(
        ({ entities, nextCursor }) => {
          if (signal.aborted) return;
          const all = [...former, ...entities];
          if (all.length < atLeast && nextCursor !== null) return load(all, nextCursor, atLeast);
          setPage({ entities: all, nextCursor });
          setError(undefined);
        },
        (problem: Error) => signal.aborted || setError(problem),
      );
    },
    [text, type],
  );
  useEffect(() => {
    gone.current = new AbortController();
    setPage(undefined);
    load([], null, 0);
    return () => gone.current.abort();
  }, [load]);
  return {
    entities: page?.entities,
    hasMore: page !== undefined && page.nextCursor !== null,
    error,
    more: () => page !== undefined && load(page.entities, page.nextCursor, 0),
    reload: () => load([], null, page?.entities.length ?? 0),
  };
}
