import { number } from '../../../core/sql-row.ts';
import type { RelatedTurns, TurnQuery } from '../store.ts';
import { TURN, turnOf } from './chat.ts';
import { type Engine, selectiveTerms, type TurnConditions, type Value } from './sql.ts';

/** Turns found by words or by their ids, with those before and after them. */
export async function relatedTurns(engine: Engine, query: TurnQuery): Promise<RelatedTurns> {
  const { terms, ids, limit } = query;
  const [sum] = await engine.all('SELECT coalesce(sum(turns), 0) AS n FROM memory_sessions');
  const total = sum === undefined ? 0 : number(sum, 'n');
  const counts = await engine.turnCounts(terms);
  if (total === 0) return { turns: [], total, counts };
  const where = conditionsOf(query);
  const isFiltered = query.sessionId !== undefined || query.agentId !== undefined;
  const selective = selectiveTerms(total, counts, isFiltered);
  const found =
    selective.selecting.length === 0 ? [] : await engine.turnsByWords(selective, total, where, limit);
  const numbers = [...new Set([...found, ...(await numbersOf(engine, ids, where))])];
  if (numbers.length === 0) return { turns: [], total, counts };
  // The turns before and after it are context, by any speaker; but none that has expired, or that was said after `asOf`.
  const list = engine.list(numbers);
  const among = (column: string): string => engine.among(column, '$1');
  // One list of numbers: SQLite would read all turns of the time for alternatives.
  const rows = await engine.all(
    `SELECT ${TURN} FROM memory_chat_history WHERE seq IN (
       SELECT t.seq FROM memory_chat_history AS t WHERE ${among('t.seq')}
       UNION ALL SELECT (SELECT max(p.seq) FROM memory_chat_history AS p
                         WHERE p.session_id = t.session_id AND p.seq < t.seq)
                 FROM memory_chat_history AS t WHERE ${among('t.seq')}
       UNION ALL SELECT (SELECT min(n.seq) FROM memory_chat_history AS n
                         WHERE n.session_id = t.session_id AND n.seq > t.seq)
                 FROM memory_chat_history AS t WHERE ${among('t.seq')})
       AND created_at || '' > $2 AND created_at || '' < $3
     ORDER BY seq`,
    [list, query.expired?.turns ?? '', query.to ?? LATEST],
  );
  return { turns: rows.map(turnOf), total, counts };
}

/** After every time that is compared as text. */
const LATEST = 'Z';

async function numbersOf(
  engine: Engine,
  ids: readonly string[],
  { conditions, parameters }: TurnConditions,
): Promise<number[]> {
  if (ids.length === 0) return [];
  const rows = await engine.all(
    `SELECT t.seq AS seq FROM memory_chat_history AS t
     WHERE ${engine.among('t.id', `$${parameters.length + 1}`)} AND ${conditions}`,
    [...parameters, engine.list(ids)],
  );
  return rows.map((row) => number(row, 'seq'));
}

function conditionsOf({ sessionId, agentId, from, to, expired }: TurnQuery): TurnConditions {
  const parameters: Value[] = [];
  const place = (value: Value): string => `$${parameters.push(value)}`;
  const conditions = [
    `t.created_at > ${place(expired?.turns ?? '')}`,
    ...(sessionId === undefined ? [] : [`t.session_id = ${place(sessionId)}`]),
    ...(agentId === undefined ? [] : [`t.agent_id = ${place(agentId)}`]),
    ...(from === undefined ? [] : [`t.created_at >= ${place(from)}`]),
    ...(to === undefined ? [] : [`t.created_at < ${place(to)}`]),
  ];
  return { conditions: conditions.join(' AND '), parameters };
}
