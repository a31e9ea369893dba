import { membersOf, parseJson } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { number, optionalNumber, text, time } from '../../core/sql-row.ts';
import type { Database, SqlRow, SqlValue } from '../kernel/database.ts';
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
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a constant
export const FILTER_NAMES = Object.keys(FILTERS) as readonly Filter[];

export interface Search {
  /** Unix time in ms: `from` is included, `to` is not. */
  readonly from: number;
  readonly to: number;
  readonly equal: Readonly<Partial<Record<Filter, string>>>;
  /** First and last status, or requests that failed (`core/outcome.ts`). */
  readonly status?: readonly [number, number] | 'error' | undefined;
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

const READ = COLUMNS.map((name) => readColumn(name)).join(', ');

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

function conditionsOf({ equal, status, hasContents = false }: Search): Map<string, Condition> {
  const conditions = new Map<string, Condition>();
  for (const name of FILTER_NAMES) {
    const value = equal[name];
    if (value !== undefined) conditions.set(name, { sql: `${FILTERS[name]} = ?`, values: [value] });
  }
  if (hasContents) conditions.set('contents', CONTENTS);
  if (status === undefined) return conditions;
  // The index of requests that were refused or failed has no others.
  const isUnusual = status === 'error' || status[0] >= 400;
  if (isUnusual) conditions.set('failed', { sql: '(status >= 400 OR error IS NOT NULL)', values: [] });
  if (status === 'error') conditions.set('status', { sql: '(status < 400 OR status >= 500)', values: [] });
  else conditions.set('status', { sql: 'status BETWEEN ? AND ?', values: status });
  return conditions;
}

function pageOf(rows: readonly SqlRow[], next: Cursor | undefined): Page {
  return { records: rows.map(shown), next };
}

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

function readColumn(name: string, prefix = ''): string {
  const column = prefix + name;
  return name === 'cost' ? `CAST(${column} AS TEXT) AS cost` : column;
}

/** The JSON of a column of payloads; empty if there is none. */
export function parsed(text: SqlValue | undefined): Readonly<Record<string, unknown>> {
  return typeof text === 'string' ? membersOf(parseJson(text)) : {};
}

function shown(row: SqlRow): ShownRecord {
  const ms = (column: string): number | undefined => {
    const microseconds = optionalNumber(row, column);
    return microseconds === null ? undefined : microseconds / 1000;
  };
  const all: Record<string, unknown> = {
    time: time(row, 'time').toISOString(),
    durationMs: ms('duration'),
    protocol: row['protocol'],
    operation: row['operation'],
    listener: row['listener'],
    route: row['route'],
    path: row['path'],
    status: number(row, 'status'),
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
    streamed: optionalNumber(row, 'streamed') === 1 ? true : undefined,
    firstTokenMs: ms('first_token'),
    inputTokens: optionalNumber(row, 'input_tokens'),
    outputTokens: optionalNumber(row, 'output_tokens'),
    cachedInputTokens: optionalNumber(row, 'cached_tokens'),
    cacheWriteTokens: optionalNumber(row, 'cache_write_tokens'),
    reasoningTokens: optionalNumber(row, 'reasoning_tokens'),
    usageEstimated: row['estimated'],
    costUsd: row['cost'] === null ? undefined : usdOf(text(row, 'cost')),
    added: typeof row['added'] === 'string' ? parsed(row['added']) : undefined,
  };
  const present = Object.entries(all).filter(([, value]) => value !== null && value !== undefined);
  return { id: number(row, 'id'), ...Object.fromEntries(present) };
}
