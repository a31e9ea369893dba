import { AUDIT_OUTCOMES } from '../../core/audit-view.ts';
import { number, optionalText, text } from '../../core/sql-row.ts';
import type { Database, SqlRow, SqlValue, Statement } from '../kernel/database.ts';
import { type AuditEvent, actorKind } from './event.ts';

/** Names only columns that have a value: a command may write to tables of an earlier version. */
export function insertOf({ actor, from, before, after, ...event }: AuditEvent): Statement {
  const { time, action, outcome, target, gateway, detail } = event;
  const columns = Object.entries({
    ...{ time, action, outcome, actor_kind: actor.kind, actor: actor.name, issuer: actor.issuer },
    ...{ role: actor.role, address: from?.address, proxy: from?.proxy, target },
    ...{ before_hash: before, after_hash: after, gateway, detail },
  }).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return {
    sql: `INSERT INTO agctl_audit (${columns.map(([name]) => name).join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    values: columns.map(([, value]) => value),
  };
}

/** What a list contains: events from `from` on and before `to` (Unix times in ms), newest first. */
export interface AuditQuery {
  readonly from: number;
  readonly to: number;
  readonly action?: string | undefined;
  /** Name of the actor. */
  readonly actor?: string | undefined;
  readonly outcome?: string | undefined;
  readonly limit: number;
  /** `next` of the page before. */
  readonly after?: number | undefined;
}

export interface AuditPage {
  readonly events: readonly AuditEvent[];
  /** For `after` of the next page; undefined at the end. */
  readonly next: number | undefined;
}

/** Reads a page of events. Rejects as `Database.query`. */
export async function listEvents(database: Pick<Database, 'query'>, query: AuditQuery): Promise<AuditPage> {
  const { from, to, action, actor, outcome, limit, after } = query;
  const conditions: (readonly [string, SqlValue | undefined])[] = [
    ['time >= ?', from],
    ['time < ?', to],
    ['action = ?', action],
    ['actor = ?', actor],
    ['outcome = ?', outcome],
    ['id < ?', after],
  ];
  const given = conditions.filter((each): each is readonly [string, SqlValue] => each[1] !== undefined);
  const rows = await database.query(
    `SELECT * FROM agctl_audit WHERE ${given.map(([sql]) => sql).join(' AND ')} ORDER BY id DESC LIMIT ?`,
    [...given.map(([, value]) => value), limit + 1],
  );
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return {
    events: shown.map(eventOf),
    next: rows.length > limit && last !== undefined ? number(last, 'id') : undefined,
  };
}

/** @throws RowError for a row that something else has written */
function eventOf(row: SqlRow): AuditEvent {
  // A gateway of a later version may have written one that this version does not know.
  const outcome = AUDIT_OUTCOMES.find((each) => each === row['outcome']) ?? 'unknown';
  // A command may read tables of an earlier version, which has fewer columns.
  const optional = (column: string): string | undefined =>
    column in row ? (optionalText(row, column) ?? undefined) : undefined;
  const address = optional('address');
  return {
    time: number(row, 'time'),
    action: text(row, 'action'),
    outcome,
    actor: {
      kind: actorKind(row['actor_kind']),
      name: optional('actor'),
      issuer: optional('issuer'),
      role: optional('role'),
    },
    ...(address !== undefined && { from: { address, proxy: optional('proxy') } }),
    target: optional('target'),
    before: optional('before_hash'),
    after: optional('after_hash'),
    gateway: optional('gateway'),
    detail: optional('detail'),
  };
}
