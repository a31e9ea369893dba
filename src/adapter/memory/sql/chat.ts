import { randomUUID } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { number, type Row, text } from '../../../core/sql-row.ts';
import type { Cutoffs, NewTurn, Session, Turn } from '../store.ts';
import type { Sql } from './sql.ts';

export const TURN = 'seq, id, session_id, agent_id, role, content, created_at';

/**
 * The session's row comes first: on PostgreSQL that locks it until the transaction ends. Turns of one session thus get
 * their numbers in the order in which they become visible, and a reader that follows `seq` misses none. A retry of a turn that is being
 * stored waits for it.
 *
 * @throws AppError `memory_key_reused`
 */
export async function appendTurn(sql: Sql, turn: NewTurn): Promise<{ turn: Turn; deduplicated: boolean }> {
  const at = new Date().toISOString();
  await sql.run(
    `INSERT INTO memory_sessions (session_id, turns, first_at, last_at, last_seq) VALUES ($1, 0, $2, $2, 0)
     ON CONFLICT (session_id) DO UPDATE SET turns = memory_sessions.turns`,
    [turn.sessionId, at],
  );
  if (turn.idempotencyKey !== undefined) {
    const [known] = await sql.all(
      `SELECT ${TURN} FROM memory_chat_history WHERE session_id = $1 AND idempotency_key = $2`,
      [turn.sessionId, turn.idempotencyKey],
    );
    if (known !== undefined) {
      const stored = turnOf(known);
      if (!isSame(turn, stored)) throw new AppError('memory_key_reused');
      return { turn: stored, deduplicated: true };
    }
  }
  const words = sql.turnWords(turn.content, '$8');
  const [stored] = await sql.all(
    `INSERT INTO memory_chat_history
       (id, session_id, agent_id, role, content, created_at, idempotency_key${words.columns})
     VALUES ($1, $2, $3, $4, $5, $6, $7${words.values}) RETURNING ${TURN}`,
    [
      ...[
        randomUUID(),
        turn.sessionId,
        turn.agentId,
        turn.role,
        turn.content,
        at,
        turn.idempotencyKey ?? null,
      ],
      ...words.parameters,
    ],
  );
  if (stored === undefined) throw new Error('an inserted turn was not returned');
  await sql.run(
    'UPDATE memory_sessions SET turns = turns + 1, last_at = $2, last_seq = $3 WHERE session_id = $1',
    [turn.sessionId, at, number(stored, 'seq')],
  );
  await sql.run(
    'INSERT INTO memory_session_agents (session_id, agent_id) VALUES ($1, $2) ON CONFLICT DO NOTHING',
    [turn.sessionId, turn.agentId],
  );
  return { turn: turnOf(stored), deduplicated: false };
}

/** Of one session. */
function isSame(turn: NewTurn, stored: Turn): boolean {
  return turn.agentId === stored.agentId && turn.role === stored.role && turn.content === stored.content;
}

export async function sessions(
  sql: Sql,
  page: { limit: number; cursor?: string | undefined; expired?: Cutoffs },
): Promise<{ sessions: Session[]; nextCursor: string | null }> {
  const before = page.cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(page.cursor);
  const rows = await sql.all(
    `SELECT session_id, turns, first_at, last_at, last_seq FROM memory_sessions
     WHERE last_seq < $1 AND turns > 0 AND last_at > $3 ORDER BY last_seq DESC LIMIT $2`,
    [Number.isSafeInteger(before) ? before : 0, page.limit + 1, page.expired?.turns ?? ''],
  );
  const shown = rows.slice(0, page.limit);
  const agents = await agentsOf(
    sql,
    shown.map((row) => text(row, 'session_id')),
  );
  const last = shown.at(-1);
  return {
    sessions: shown.map((row) => ({
      sessionId: text(row, 'session_id'),
      turns: number(row, 'turns'),
      firstAt: text(row, 'first_at'),
      lastAt: text(row, 'last_at'),
      agentIds: agents.get(text(row, 'session_id')) ?? [],
    })),
    nextCursor: rows.length > shown.length && last !== undefined ? String(number(last, 'last_seq')) : null,
  };
}

async function agentsOf(sql: Sql, ids: readonly string[]): Promise<Map<string, string[]>> {
  const rows = await sql.all(
    `SELECT session_id, agent_id FROM (
       SELECT session_id, agent_id, row_number() OVER (PARTITION BY session_id ORDER BY agent_id) AS place
       FROM memory_session_agents WHERE ${sql.among('session_id', '$1')}) AS numbered
     WHERE place <= $2 ORDER BY session_id, place`,
    [sql.list(ids), MEMORY_STORE_LIMITS.sessionAgents],
  );
  const agents = new Map<string, string[]>();
  for (const row of rows) {
    const sessionId = text(row, 'session_id');
    agents.set(sessionId, [...(agents.get(sessionId) ?? []), text(row, 'agent_id')]);
  }
  return agents;
}

export async function turns(
  sql: Sql,
  sessionId: string,
  page: { after: number; limit: number; expired?: Cutoffs },
): Promise<{ turns: Turn[]; nextAfter: number | null } | undefined> {
  const rows = await sql.all(
    `SELECT ${TURN} FROM memory_chat_history WHERE session_id = $1 AND seq > $2 AND created_at > $4 ORDER BY seq LIMIT $3`,
    [sessionId, page.after, page.limit + 1, page.expired?.turns ?? ''],
  );
  if (rows.length === 0) {
    const [session] = await sql.all(
      'SELECT turns FROM memory_sessions WHERE session_id = $1 AND turns > 0 AND last_at > $2',
      [sessionId, page.expired?.turns ?? ''],
    );
    if (session === undefined) return undefined;
  }
  const shown = rows.slice(0, page.limit).map(turnOf);
  return { turns: shown, nextAfter: rows.length > shown.length ? (shown.at(-1)?.seq ?? null) : null };
}

export function turnOf(row: Row): Turn {
  return {
    id: text(row, 'id'),
    seq: number(row, 'seq'),
    sessionId: text(row, 'session_id'),
    agentId: text(row, 'agent_id'),
    role: text(row, 'role'),
    content: text(row, 'content'),
    createdAt: text(row, 'created_at'),
  };
}
