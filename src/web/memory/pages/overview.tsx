import type { ReactNode } from 'react';
import { count, size, time } from '../../shared/format.ts';
import { Link } from '../../shared/router.tsx';
import { useLoaded } from '../../shared/use-loaded.ts';
import { visible } from '../../shared/visible.ts';
import { sessionKey, useDeletions } from '../deletions.ts';
import { API, ENTITY_TYPES, type QueueStatus, RELATION_TYPES, type Session, type Stats } from '../model.ts';
import { curl, Empty, Unreachable } from '../placeholder.tsx';
import { Resync, useSync } from '../sync.tsx';

/** Calls of agents change the counts too. */
const REFRESH = 10_000;

/** What is stored, when the docs folder was last read, and the latest conversations. */
export function Overview(): ReactNode {
  const { data, error, reload } = useLoaded<Stats>(`${API}/stats`, REFRESH);
  const sync = useSync(reload);
  const problem = sync.error ?? error;
  const retry = (): void => {
    sync.reload();
    reload();
  };
  return (
    <>
      {problem === undefined ? null : <Unreachable error={problem} retry={retry} />}
      <Resync sync={sync} />
      {data === undefined ? null : <Counts stats={data} />}
      <LatestSessions everyMs={REFRESH} />
    </>
  );
}

/** What waits in a queue of texts, and why, if anything does. */
function pendingOf(
  queue: QueueStatus | undefined,
  waiting: string,
  failed: string,
): (readonly [string, string])[] {
  if (queue === undefined || (queue.pending === 0 && queue.problem === undefined)) return [];
  const { pending, total, state, problem, retryAt } = queue;
  const ofAll = total === undefined || total === pending ? '' : ` of ${count(total)}`;
  return [
    [waiting, `${count(pending)}${ofAll}${state === 'idle' ? '' : `, ${state}`}`],
    ...(problem === undefined
      ? []
      : ([
          [failed, `${visible(problem)}${retryAt === undefined ? '' : `; again at ${time(retryAt)}`}`],
        ] as const)),
  ];
}

function Counts({ stats }: { readonly stats: Stats }): ReactNode {
  const { entities, relations, documents, sessions, turns, ready } = stats;
  const isEmpty = documents === 0 && turns === 0;
  return (
    <>
      {isEmpty ? (
        <Empty
          title="Nothing is stored yet"
          call={curl('/ingest/docs', { title: 'First note', content: '# First note\n\nAgents find this.' })}
        >
          Put <code>.md</code> files into the docs folder and press Re-sync Docs, or store a document with a
          call:
        </Empty>
      ) : null}
      <div className="cards">
        <section className="panel" aria-labelledby="entities">
          <h2 id="entities">
            <Link to="/browser">Entities</Link>
          </h2>
          <FigureTable rows={ENTITY_TYPES.map((type) => [type, count(entities[type])])} />
        </section>
        <section className="panel" aria-labelledby="relations">
          <h2 id="relations">
            <Link to="/graph">Relations</Link>
          </h2>
          <FigureTable
            rows={[...RELATION_TYPES, 'other' as const].map((type) => [type, count(relations[type])])}
          />
        </section>
        <section className="panel" aria-labelledby="episodes">
          <h2 id="episodes">
            <Link to="/replay">Episodes</Link>
          </h2>
          <FigureTable
            rows={[
              ['sessions', count(sessions)],
              ['turns', count(turns)],
            ]}
          />
        </section>
        <section className="panel" aria-labelledby="backend">
          <h2 id="backend">Backend</h2>
          <FigureTable
            rows={[
              ['readiness', ready ? '✓ ready' : '… first sync is running'],
              ['documents', count(documents)],
              ['embedder', stats.embedder],
              ...pendingOf(stats.embedding, 'to embed', 'embedder failed'),
              ...pendingOf(stats.extraction, 'to extract from', 'extraction failed'),
              ['store', `${stats.store}, ${size(stats.bytes)}`],
              ['version', stats.version],
            ]}
          />
        </section>
      </div>
    </>
  );
}

/** Names and figures. */
export function FigureTable({
  rows,
}: {
  readonly rows: readonly (readonly [name: string, value: string])[];
}): ReactNode {
  return (
    <table className="figures">
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** As many as fit into a window of usual height. */
const SHOWN = 10;

/** The conversations that were continued last, if there are any. The page around them reports that the backend fails. */
function LatestSessions({ everyMs }: { readonly everyMs: number }): ReactNode {
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
