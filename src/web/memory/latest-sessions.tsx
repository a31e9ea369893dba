import type { ReactNode } from 'react';
import { count, time } from '../shared/format.ts';
import { Link } from '../shared/router.tsx';
import { useLoaded } from '../shared/use-loaded.ts';
import { visible } from '../shared/visible.ts';
import { sessionKey, useDeletions } from './deletions.ts';
import { API, type Session } from './model.ts';

/** As many as fit into a window of usual height. */
const SHOWN = 10;

/** The conversations that were continued last, if there are any. The page around them reports that the backend fails. */
export function LatestSessions({ everyMs }: { readonly everyMs: number }): ReactNode {
  const { data, reload } = useLoaded<{ readonly sessions: readonly Session[] }>(
    `${API}/sessions?limit=${SHOWN}`,
    everyMs,
  );
  const hidden = useDeletions(data?.sessions, reload);
  const sessions = data?.sessions.filter(({ sessionId }) => !hidden.has(sessionKey(sessionId))) ?? [];
  if (sessions.length === 0) return null;
  return (
    <section className="panel" aria-labelledby="latest">
      <h2 id="latest">Latest sessions</h2>
      <table className="figures">
        <thead>
          <tr>
            <th scope="col">Session</th>
            <th scope="col" className="end">
              Turns
            </th>
            <th scope="col" className="end">
              Last turn
            </th>
          </tr>
        </thead>
        <tbody>
          {sessions.map(({ sessionId, agentIds, turns, lastAt }) => (
            <tr key={sessionId}>
              <th scope="row">
                <Link to="/replay" query={{ session: sessionId }}>
                  {visible(sessionId)}
                </Link>{' '}
                <span className="quiet">{agentIds.map(visible).join(', ')}</span>
              </th>
              <td>{count(turns)}</td>
              <td>{time(lastAt)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
