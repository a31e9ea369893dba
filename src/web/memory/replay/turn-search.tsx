import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import { MEMORY_PAGE_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { time } from '../../shared/format.ts';
import { Link, navigate } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { API, type Turn } from '../model.ts';
import { Unreachable } from '../placeholder.tsx';

/** Empty values match everything. Times are local, as an input writes them: `2026-01-31T12:00`. */
export interface TurnQuery {
  readonly text: string;
  readonly from: string;
  readonly to: string;
}

/** Searches the turns of all sessions by words and time. */
export function TurnSearch({ query }: { readonly query: TurnQuery }): ReactNode {
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const fields = ['text', 'from', 'to'].map((name) => [name, String(form.get(name)).trim()] as const);
    navigate('/replay', Object.fromEntries(fields.filter(([, value]) => value !== '')));
  };
  return (
    <form key={Object.values(query).join('\n')} className="row turn-search" onSubmit={submit}>
      <label className="wide">
        Search all sessions
        <input
          data-filter
          name="text"
          type="search"
          defaultValue={query.text}
          maxLength={MEMORY_STORE_LIMITS.queryLength}
        />
      </label>
      <label>
        From
        <input name="from" type="datetime-local" defaultValue={query.from} />
      </label>
      <label>
        To
        <input name="to" type="datetime-local" defaultValue={query.to} />
      </label>
      <button type="submit" className="primary">
        Search
      </button>
    </form>
  );
}

interface Page {
  readonly turns: readonly Turn[];
  readonly nextCursor: number | null;
}

/** The turns that match, newest first; each opens its session at that turn. */
export function FoundTurns({ query: { text, from, to } }: { readonly query: TurnQuery }): ReactNode {
  const [page, setPage] = useState<Page>();
  const [error, setError] = useState<Error>();
  const [request, setRequest] = useState<{ readonly after: Page | undefined }>({ after: undefined });
  useEffect(() => {
    const gone = new AbortController();
    const { after } = request;
    const parameters = new URLSearchParams({ limit: String(MEMORY_PAGE_LIMITS.turnsFirst) });
    if (text !== '') parameters.set('query', text);
    for (const [name, value] of Object.entries({ from, to })) {
      const at = new Date(value);
      if (!Number.isNaN(at.getTime())) parameters.set(name, at.toISOString());
    }
    if (typeof after?.nextCursor === 'number') parameters.set('cursor', String(after.nextCursor));
    ask<Page>(`${API}/turns?${parameters}`, { signal: gone.signal }).then(
      ({ turns, nextCursor }) => {
        setPage({ turns: [...(after?.turns ?? []), ...turns], nextCursor });
        setError(undefined);
      },
      (problem: Error) => gone.signal.aborted || setError(problem),
    );
    return () => gone.abort();
  }, [text, from, to, request]);
  if (error !== undefined) return <Unreachable error={error} retry={() => setRequest({ ...request })} />;
  if (page === undefined) return <p role="status">Searching…</p>;
  return (
    <>
      <p role="status">
        {page.turns.length === 0
          ? 'No turn matches. All words must occur in one turn, in any form.'
          : `${page.turns.length}${page.nextCursor === null ? '' : ' or more'} found, newest first.`}{' '}
        <Link to="/replay">All sessions</Link>
      </p>
      <ol className="results found">
        {page.turns.map(({ id, seq, sessionId, agentId, role, content, createdAt }) => (
          <li key={id} className="panel result">
            <p className="quiet">
              <Link to="/replay" query={{ session: sessionId, seq: String(seq) }}>
                {visible(sessionId)}
              </Link>
              , {role}, {visible(agentId)}, <time dateTime={createdAt}>{time(createdAt)}</time>
            </p>
            <p className="chunk">
              {visible(content.slice(0, EXCERPT))}
              {content.length > EXCERPT ? '…' : ''}
            </p>
          </li>
        ))}
      </ol>
      {page.nextCursor === null ? null : (
        <button type="button" onClick={() => setRequest({ after: page })}>
          Older turns
        </button>
      )}
    </>
  );
}

const EXCERPT = 600;
