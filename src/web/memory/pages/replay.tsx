import { type ReactNode, useCallback, useEffect, useState } from 'react';
import { MEMORY_PAGE_LIMITS } from '../../../core/memory-limits.ts';
import { ask } from '../../shared/api.ts';
import { counted, times } from '../../shared/format.ts';
import { Link, useLocation } from '../../shared/router.tsx';
import { visible } from '../../shared/visible.ts';
import { sessionKey, useDeletions } from '../deletions.ts';
import { API, type Session } from '../model.ts';
import { Empty, toolCall, Unreachable } from '../placeholder.tsx';
import { SessionPlayer } from '../replay/session-player.tsx';
import { FoundTurns, TurnSearch } from '../replay/turn-search.tsx';

/** Conversations of agents and users, by session, turn by turn. */
export function Replay(): ReactNode {
  const { query } = useLocation();
  const session = query.get('session') ?? '';
  const search = { text: query.get('text') ?? '', from: query.get('from') ?? '', to: query.get('to') ?? '' };
  const isSearch = Object.values(search).some((value) => value !== '');
  return (
    <>
      {session === '' ? <TurnSearch query={search} /> : null}
      {session === '' && isSearch ? (
        <FoundTurns key={JSON.stringify(search)} query={search} />
      ) : (
        <div className={session === '' ? '' : 'split sidebar'}>
          <Sessions open={session} />
          {session === '' ? null : <SessionPlayer key={session} session={session} />}
        </div>
      )}
    </>
  );
}

interface SessionPage {
  readonly sessions: readonly Session[];
  readonly nextCursor: string | null;
}

/** The sessions, most recent first, one page at a time. */
function Sessions({ open }: { readonly open: string }): ReactNode {
  const [sessions, setSessions] = useState<readonly Session[]>();
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<Error>();
  const [round, setRound] = useState(0);
  const load = useCallback((cursor: string | null, signal?: AbortSignal): void => {
    const query = new URLSearchParams({ limit: String(MEMORY_PAGE_LIMITS.sessions) });
    if (cursor !== null) query.set('cursor', cursor);
    ask<SessionPage>(`${API}/sessions?${query}`, signal === undefined ? {} : { signal }).then(
      (page) => {
        setSessions((former = []) => (cursor === null ? page.sessions : [...former, ...page.sessions]));
        setNext(page.nextCursor);
        setError(undefined);
      },
      (problem: Error) => signal?.aborted === true || setError(problem),
    );
  }, []);
  useEffect(() => {
    // A change of it starts the effect again.
    void round;
    const gone = new AbortController();
    load(null, gone.signal);
    return () => gone.abort();
  }, [round, load]);
  const reload = (): void => setRound((rounds) => rounds + 1);
  const hidden = useDeletions(sessions, reload);
  if (error !== undefined) return <Unreachable error={error} retry={reload} />;
  if (sessions === undefined) return <p role="status">Loading…</p>;
  if (sessions.length === 0)
    return (
      <Empty
        title="No conversation is stored yet"
        call={toolCall('store_episodic', { sessionId: 'session-1', role: 'user', content: 'Remember this.' })}
      >
        An agent stores one turn with this call of <code>store_episodic</code>:
      </Empty>
    );
  return (
    <nav aria-label="Sessions" className="sessions panel">
      <h2>Sessions</h2>
      <ul>
        {sessions
          .filter(({ sessionId }) => !hidden.has(sessionKey(sessionId)))
          .map(({ sessionId, turns, firstAt, lastAt, agentIds }) => (
            <li key={sessionId}>
              <Link to="/replay" query={{ session: sessionId }} current={sessionId === open}>
                {visible(sessionId)}
              </Link>
              <span className="quiet">
                {counted(turns, 'turn')}, {agentIds.map(visible).join(', ')}
                <br />
                {times(firstAt, lastAt)}
              </span>
            </li>
          ))}
      </ul>
      {next === null ? null : (
        <button type="button" onClick={() => load(next)}>
          Older sessions
        </button>
      )}
    </nav>
  );
}
