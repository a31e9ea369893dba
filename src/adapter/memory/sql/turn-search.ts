import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { plainWords } from '../plain-words.ts';
import type { Turn, TurnSearch } from '../store.ts';
import { TURN, turnOf } from './chat.ts';
import type { Sql, Value } from './sql.ts';

/** Turns that fit the request, in order of time, up to a number of characters. */
export async function searchTurns(
  sql: Sql,
  request: TurnSearch,
): Promise<{ turns: Turn[]; nextCursor: number | null }> {
  const { sessionId, agentId, from, to, query, order, cursor, limit } = request;
  if (query !== undefined && plainWords(query).length === 0) return { turns: [], nextCursor: null };
  const parameters: Value[] = [limit + 1];
  const place = (value: Value): string => `$${parameters.push(value)}`;
  const isNewestFirst = order === 'newest';
  const conditions = [
    `created_at > ${place(request.expired?.turns ?? '')}`,
    ...(sessionId === undefined ? [] : [`session_id = ${place(sessionId)}`]),
    ...(agentId === undefined ? [] : [`agent_id = ${place(agentId)}`]),
    ...(from === undefined ? [] : [`created_at >= ${place(from)}`]),
    ...(to === undefined ? [] : [`created_at < ${place(to)}`]),
    ...(cursor === undefined ? [] : [`seq ${isNewestFirst ? '<' : '>'} ${place(cursor)}`]),
    ...(query === undefined ? [] : [sql.matches('turns', place(sql.wordQuery(query, 'all')))]),
  ];
  const rows = await sql.all(
    `SELECT ${TURN} FROM memory_chat_history WHERE ${conditions.join(' AND ')}
     ORDER BY seq ${isNewestFirst ? 'DESC' : 'ASC'} LIMIT $1`,
    parameters,
  );
  const turns: Turn[] = [];
  let room: number = MEMORY_STORE_LIMITS.turnCharacters;
  for (const turn of rows.slice(0, limit).map(turnOf)) {
    room -= turn.content.length;
    if (room < 0 && turns.length > 0) break;
    turns.push(turn);
  }
  return { turns, nextCursor: rows.length > turns.length ? (turns.at(-1)?.seq ?? null) : null };
}
