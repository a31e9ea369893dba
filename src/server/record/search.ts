import { membersOf, parseJson } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { DENIED } from '../../core/outcome.ts';
import { number, text, time } from '../../core/sql-row.ts';
import type { Database, SqlRow, SqlValue } from '../kernel/database.ts';
import type { Column } from '../kernel/fact.ts';
import { stepsByBlock } from './blocks.ts';
import { usdOf } from './money.ts';
import { wordsOf } from './payload.ts';
import { COLUMNS } from './request-record.ts';
import {
  all,
  before,
  type Condition,
  type Cursor,
  cursorOf,
  notBefore,
  type Steps,
  withoutIndex,
} from './steps.ts';

/** Columns that a search compares, by the name of the filter. */
const FILTERS: ReadonlyMap<string, string> = new Map(
  COLUMNS.flatMap(({ name, filter }) => (filter === undefined ? [] : [[filter, name] as const])),
);

export const FILTER_NAMES: readonly string[] = [...FILTERS.keys()];

export interface Search {
  /** Unix time in ms: `from` is included, `to` is not. */
  readonly from: number;
  readonly to: number;
  /** By the name of the filter. */
  readonly equal: Readonly<Partial<Record<string, string>>>;
  /** First and last status, or requests that failed or were refused (`core/outcome.ts`). */
  readonly status?: readonly [number, number] | 'error' | 'refused' | undefined;
  /** Only calls of models and of MCP tools, prompts and resources: other requests are about nothing that was said. */
  readonly hasContents?: boolean | undefined;
  /** Words that all occur in the payload or the error. */
  readonly text?: string | undefined;
  /** Most records of the page. */
  readonly limit: number;
  /** The end of the page before. */
  readonly after?: Cursor | undefined;
}

export interface Page {
  readonly records: readonly ShownRecord[];
  /** Where the next page begins; undefined if everything was searched. */
  readonly next: Cursor | undefined;
}

/** One record as the admin server shows it. Absent values are left out. */
export type ShownRecord = Readonly<Record<string, unknown>> & { readonly id: number };

/**
 * Searches from the newest record to older ones. What an index does not answer alone is searched in steps of so many
 * records that a step takes a fraction of `LIMITS.recordSearchTime`: the page is returned once it is full or that time is
 * over, whatever the filters are. A search for words finds records in the order in which the requests ended.
 */
export async function searchRecords(database: Database, search: Search): Promise<Page> {
  const words = wordsOf(search.text ?? '');
  const steps = words === '' ? stepsByValue(database, search) : stepsByWords(database, search, words);
  const started = performance.now();
  const found: SqlRow[] = [];
  let at = search.after ?? steps.start;
  let size: number = LIMITS.recordSearchStep;
  for (;;) {
    const stepStarted = performance.now();
    const left = search.limit - found.length;
    const end = await steps.end(at, size);
    const rows = await steps.rows(at, end, left);
    found.push(...rows);
    const last = rows.at(-1);
    // A full page may end in the middle of a step.
    if (rows.length === left && last !== undefined) return pageOf(found, cursorOf(last));
    if (end === undefined) return pageOf(found, undefined);
    at = end;
    const now = performance.now();
    if (now - started > LIMITS.recordSearchTime) return pageOf(found, at);
    if (now - stepStarted < LIMITS.recordSearchTime / 8)
      size = Math.min(LIMITS.recordSearchMaxStep, size * 2);
  }
}

const READ = COLUMNS.map((column) => readColumn(column)).join(', ');

/** The rest of the conditions is compared with the records that the index of the first one finds. */
function stepsByValue(database: Database, search: Search): Steps {
  const conditions = conditionsOf(search);
  const [name] = INDEXED.filter((each) => conditions.has(each));
  const indexed = name === undefined ? undefined : conditions.get(name);
  const rest = [...conditions.values()].filter((each) => each !== indexed);
  if (database.kind === 'postgres' || indexed === undefined || name === 'failed')
    return stepsByTime(database, search, indexed, rest);
  return stepsByBlock(database, READ, search, indexed, rest);
}

function stepsByTime(
  database: Database,
  search: Search,
  indexed: Condition | undefined,
  rest: readonly Condition[],
): Steps {
  const first = indexed === undefined ? [] : [indexed];
  const from: Condition = { sql: 'time >= ?', values: [search.from] };
  return {
    start: { time: search.to, id: 0 },
    async end(at, size) {
      // An index has exactly what is searched: nothing is read in vain.
      if (rest.length === 0) return undefined;
      const range = all([...first, before(at), from]);
      const [row] = await database.query(
        `SELECT time, id FROM agctl_records WHERE ${range.sql} ORDER BY time DESC, id DESC LIMIT 1 OFFSET ?`,
        [...range.values, size - 1],
      );
      return row === undefined ? undefined : cursorOf(row);
    },
    rows(at, end, limit) {
      const compared = database.kind === 'sqlite' ? rest.map(withoutIndex) : rest;
      const within = all([
        ...first,
        ...compared,
        before(at),
        from,
        ...(end === undefined ? [] : [notBefore(end)]),
      ]);
      return database.query(
        `SELECT id, ${READ} FROM agctl_records WHERE ${within.sql} ORDER BY time DESC, id DESC LIMIT ?`,
        [...within.values, limit],
      );
    },
  };
}

const WORDS: Readonly<Record<Database['kind'], string>> = {
  sqlite:
    'SELECT rowid AS id FROM agctl_record_words WHERE agctl_record_words MATCH ? AND rowid < ? AND rowid >= ?',
  postgres: `SELECT id FROM agctl_record_payloads WHERE words @@ plainto_tsquery('simple', ?) AND id < ? AND id >= ?`,
};

function stepsByWords(database: Database, search: Search, words: string): Steps {
  const { kind } = database;
  const query = kind === 'postgres' ? words : quoted(words);
  const range: Condition = { sql: 'time >= ? AND time < ?', values: [search.from, search.to] };
  const compared = all([...conditionsOf(search).values(), range]);
  return {
    start: { time: search.to, id: Number.MAX_SAFE_INTEGER },
    async end({ id }, size) {
      const [row] = await database.query(`${WORDS[kind]} ORDER BY id DESC LIMIT 1 OFFSET ?`, [
        query,
        id,
        0,
        size - 1,
      ]);
      return row === undefined ? undefined : { time: search.to, id: number(row, 'id') };
    },
    rows: ({ id }, end, limit) =>
      database.query(
        `SELECT id, ${READ} FROM agctl_records WHERE id IN (${WORDS[kind]}) AND ${compared.sql} ORDER BY id DESC LIMIT ?`,
        [query, id, end?.id ?? 0, ...compared.values, limit],
      ),
  };
}

/** All words must occur; quotes make operators of FTS5 words. */
function quoted(words: string): string {
  return words
    .split(' ')
    .map((word) => `"${word}"`)
    .join(' ');
}

/** Conditions that an index answers, the most selective first. */
const INDEXED = ['trace', 'session', 'tool', 'key', 'user', 'group', 'target', 'model', 'failed'] as const;

/** Operations of MCP that have contents. */
const CONTENTS: Condition = {
  sql: "(protocol = 'llm' OR operation IN ('tools/call', 'prompts/get', 'resources/read'))",
  values: [],
};

/** `outcomeOf` and `isRefusal` of `core/outcome.ts`, for records that have an error or an unusual status. */
const OUTCOMES: Readonly<Record<'error' | 'refused', Condition>> = {
  error: {
    sql: '(status >= 500 OR (status < 400 AND (reason IS NULL OR reason <> ?)))',
    values: [DENIED],
  },
  refused: {
    sql: '(status BETWEEN 400 AND 498 OR (status < 400 AND reason = ?))',
    values: [DENIED],
  },
};

function conditionsOf({ equal, status, hasContents = false }: Search): Map<string, Condition> {
  const conditions = new Map<string, Condition>();
  for (const [name, column] of FILTERS) {
    const value = equal[name];
    if (value !== undefined) conditions.set(name, { sql: `${column} = ?`, values: [value] });
  }
  if (hasContents) conditions.set('contents', CONTENTS);
  if (status === undefined) return conditions;
  // The index of requests that were refused or failed has no others.
  const isUnusual = typeof status === 'string' || status[0] >= 400;
  if (isUnusual) conditions.set('failed', { sql: '(status >= 400 OR error IS NOT NULL)', values: [] });
  if (typeof status === 'string') conditions.set('status', OUTCOMES[status]);
  else conditions.set('status', { sql: 'status BETWEEN ? AND ?', values: status });
  return conditions;
}

function pageOf(rows: readonly SqlRow[], next: Cursor | undefined): Page {
  return { records: rows.map(shown), next };
}

/** One record with its payload. */
export async function recordById(database: Database, id: number): Promise<ShownRecord | undefined> {
  const [row] = await database.query(
    `SELECT r.id, ${COLUMNS.map((column) => readColumn(column, 'r.')).join(', ')}, p.request, p.response
     FROM agctl_records r LEFT JOIN agctl_record_payloads p ON p.id = r.id WHERE r.id = ?`,
    [id],
  );
  if (row === undefined) return undefined;
  const payload = { ...parsed(row['request']), ...parsed(row['response']) };
  return { ...shown(row), ...(Object.keys(payload).length === 0 ? {} : { payload }) };
}

function readColumn({ name, type }: Column<never>, prefix = ''): string {
  const column = prefix + name;
  return type === 'usd' ? `CAST(${column} AS TEXT) AS ${name}` : column;
}

/** The JSON of a column of payloads; empty if there is none. */
export function parsed(text: SqlValue | undefined): Readonly<Record<string, unknown>> {
  return typeof text === 'string' ? membersOf(parseJson(text)) : {};
}

function shown(row: SqlRow): ShownRecord {
  const values = COLUMNS.map((column) => [column.shown, shownValue(column, row)] as const);
  const present = values.filter(([, value]) => value !== null && value !== undefined);
  return { id: number(row, 'id'), ...Object.fromEntries(present) };
}

function shownValue({ name, type }: Column<never>, row: SqlRow): unknown {
  if (row[name] === null) return undefined;
  switch (type) {
    case 'text':
      return row[name];
    case 'count':
      return number(row, name);
    case 'time':
      return time(row, name).toISOString();
    case 'duration':
      return number(row, name) / 1000;
    case 'usd':
      return usdOf(text(row, name));
    case 'flag':
      return number(row, name) === 1 ? true : undefined;
    case 'json':
      return parsed(row[name]);
  }
}
