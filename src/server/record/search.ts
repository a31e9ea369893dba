import { LIMITS } from '../../core/limits.ts';
import type { Database, SqlRow, SqlValue } from '../kernel/database.ts';
import { usdOf } from './money.ts';
import { wordsOf } from './payload.ts';
import { COLUMNS } from './request-record.ts';

/** Columns that a search compares, by the name of the filter. */
const FILTERS = {
  protocol: 'protocol',
  operation: 'operation',
  route: 'route',
  key: 'caller',
  user: 'user_name',
  group: 'user_group',
  provider: 'provider',
  model: 'model',
  target: 'target',
  tool: 'tool',
  session: 'session',
  trace: 'trace_id',
} as const;

export type Filter = keyof typeof FILTERS;
export const FILTER_NAMES = Object.keys(FILTERS) as readonly Filter[];

export interface Search {
  /** Unix time in ms: `from` is included, `to` is not. */
  readonly from: number;
  readonly to: number;
  readonly equal: Readonly<Partial<Record<Filter, string>>>;
  /** First and last status. */
  readonly status?: readonly [number, number] | undefined;
  /** Words that all occur in the payload or the error. */
  readonly text?: string | undefined;
  /** Most records of the page. */
  readonly limit: number;
  /** The end of the page before. */
  readonly after?: Cursor | undefined;
}

/** A place between two records; records are ordered by time, newest first. */
export interface Cursor {
  readonly time: number;
  readonly id: number;
}

export interface Page {
  readonly records: readonly ShownRecord[];
  /** Where the next page begins; undefined if everything was searched. */
  readonly next: Cursor | undefined;
}

/** One record as the admin server shows it. Absent values are left out. */
export type ShownRecord = Readonly<Record<string, unknown>> & { readonly id: number };

/**
 * Searches from the newest record to older ones, in steps of so many records that a step takes a fraction of
 * `LIMITS.recordSearchTime`: the page is returned once it is full or that time is over, whatever the filters are.
 */
export async function searchRecords(database: Database, search: Search): Promise<Page> {
  const started = performance.now();
  const { conditions, values } = conditionsOf(search);
  const words = wordsOf(search.text ?? '');
  const found: SqlRow[] = [];
  let at: Cursor | undefined = search.after ?? { time: search.to, id: 0 };
  let step: number = LIMITS.recordSearchStep;
  while (at !== undefined && found.length < search.limit) {
    const stepStarted = performance.now();
    const end = await stepEnd(database, search.from, at, step);
    if (end === undefined) return pageOf(found, undefined);
    const left = search.limit - found.length;
    const rows = await database.query(
      `SELECT id, ${COLUMNS.map(readColumn).join(', ')} FROM agctl_records
       WHERE ${[...conditions, WITHIN].join(' AND ')}${words === '' ? '' : ` AND ${WORDS[database.kind]}`}
       ORDER BY time DESC, id DESC LIMIT ?`,
      [
        ...values,
        ...within(at, end),
        ...(words === '' ? [] : [wordQuery(database.kind, words), end.minId, end.maxId]),
        left,
      ],
    );
    found.push(...rows);
    const last = rows.at(-1);
    at = rows.length === left && last !== undefined ? cursorOf(last) : end.isLast ? undefined : end;
    const now = performance.now();
    if (now - started > LIMITS.recordSearchTime) break;
    if (now - stepStarted < LIMITS.recordSearchTime / 8)
      step = Math.min(LIMITS.recordSearchMaxStep, step * 4);
  }
  return pageOf(found, at);
}

interface StepEnd extends Cursor {
  readonly minId: number;
  readonly maxId: number;
  readonly isLast: boolean;
}

/** The last of the next `count` records, found in the index by time alone. Undefined if there are none. */
async function stepEnd(
  database: Database,
  from: number,
  at: Cursor,
  count: number,
): Promise<StepEnd | undefined> {
  const [row] = await database.query(
    `WITH step AS (
       SELECT time, id FROM agctl_records WHERE ${BEFORE} AND time >= ? ORDER BY time DESC, id DESC LIMIT ?
     )
     SELECT count(*) AS count, min(time) AS time, min(id) AS min_id, max(id) AS max_id,
       (SELECT min(id) FROM step WHERE time = (SELECT min(time) FROM step)) AS id
     FROM step`,
    [...before(at), from, count],
  );
  const size = Number(row?.['count'] ?? 0);
  if (row === undefined || size === 0) return undefined;
  const isLast = size < count;
  return { ...cursorOf(row), minId: Number(row['min_id']), maxId: Number(row['max_id']), isLast };
}

// With one range of time the planner uses the index of the filter, or that of the time.
const BEFORE = 'time <= ? AND (time < ? OR id < ?)';
const before = ({ time, id }: Cursor): SqlValue[] => [time, time, id];
const WITHIN = `${BEFORE} AND time >= ? AND (time > ? OR id >= ?)`;
const within = (at: Cursor, end: StepEnd): SqlValue[] => [...before(at), end.time, end.time, end.id];

const WORDS: Readonly<Record<Database['kind'], string>> = {
  sqlite:
    'id IN (SELECT rowid FROM agctl_record_words WHERE agctl_record_words MATCH ? AND rowid >= ? AND rowid <= ?)',
  postgres: `id IN (SELECT id FROM agctl_record_payloads WHERE words @@ plainto_tsquery('simple', ?) AND id >= ? AND id <= ?)`,
};

/** All words must occur; quotes make operators of FTS5 words. */
function wordQuery(kind: Database['kind'], words: string): string {
  if (kind === 'postgres') return words;
  return words
    .split(' ')
    .map((word) => `"${word}"`)
    .join(' ');
}

function conditionsOf({ equal, status }: Search): { conditions: string[]; values: SqlValue[] } {
  const conditions: string[] = [];
  const values: SqlValue[] = [];
  for (const name of FILTER_NAMES) {
    const value = equal[name];
    if (value === undefined) continue;
    conditions.push(`${FILTERS[name]} = ?`);
    values.push(value);
  }
  if (status !== undefined) {
    // The index of failed requests has no others.
    if (status[0] >= 400) conditions.push('status >= 400');
    conditions.push('status BETWEEN ? AND ?');
    values.push(...status);
  }
  return { conditions, values };
}

function pageOf(rows: readonly SqlRow[], next: Cursor | undefined): Page {
  return { records: rows.map(shown), next };
}

const cursorOf = (row: SqlRow): Cursor => ({ time: Number(row['time']), id: Number(row['id']) });

/** One record with its payload. */
export async function recordById(database: Database, id: number): Promise<ShownRecord | undefined> {
  const [row] = await database.query(
    `SELECT r.id, ${COLUMNS.map((name) => readColumn(name, 'r.')).join(', ')}, p.request, p.response
     FROM agctl_records r LEFT JOIN agctl_record_payloads p ON p.id = r.id WHERE r.id = ?`,
    [id],
  );
  if (row === undefined) return undefined;
  const payload = { ...parsed(row['request']), ...parsed(row['response']) };
  return { ...shown(row), ...(Object.keys(payload).length === 0 ? {} : { payload }) };
}

function readColumn(name: string, prefix: unknown = ''): string {
  const column = typeof prefix === 'string' ? prefix + name : name;
  return name === 'cost' ? `CAST(${column} AS TEXT) AS cost` : column;
}

function parsed(text: SqlValue | undefined): object {
  return typeof text === 'string' ? (JSON.parse(text) as object) : {};
}

function shown(row: SqlRow): ShownRecord {
  const ms = (value: SqlValue | undefined): number | undefined =>
    typeof value === 'number' || typeof value === 'string' ? Number(value) / 1000 : undefined;
  const all: Record<string, unknown> = {
    time: new Date(Number(row['time'])).toISOString(),
    durationMs: ms(row['duration']),
    protocol: row['protocol'],
    operation: row['operation'],
    listener: row['listener'],
    route: row['route'],
    path: row['path'],
    status: Number(row['status']),
    error: row['error'],
    reason: row['reason'],
    cut: row['cut'],
    key: row['caller'],
    user: row['user_name'],
    group: row['user_group'],
    client: row['client'],
    userAgent: row['agent'],
    session: row['session'],
    traceId: row['trace_id'],
    provider: row['provider'],
    model: row['model'],
    usedModel: row['used_model'],
    target: row['target'],
    tool: row['tool'],
    streamed: Number(row['streamed']) === 1 ? true : undefined,
    firstTokenMs: row['first_token'] === null ? undefined : ms(row['first_token']),
    inputTokens: count(row['input_tokens']),
    outputTokens: count(row['output_tokens']),
    cachedInputTokens: count(row['cached_tokens']),
    cacheWriteTokens: count(row['cache_write_tokens']),
    reasoningTokens: count(row['reasoning_tokens']),
    usageEstimated: row['estimated'],
    costUsd: row['cost'] === null ? undefined : usdOf(String(row['cost'])),
    added: typeof row['added'] === 'string' ? parsed(row['added']) : undefined,
  };
  const present = Object.entries(all).filter(([, value]) => value !== null && value !== undefined);
  return { id: Number(row['id']), ...Object.fromEntries(present) };
}

const count = (value: SqlValue | undefined): number | undefined =>
  value === null || value === undefined ? undefined : Number(value);
