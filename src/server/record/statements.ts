import { textIn } from '../../core/foreign.ts';
import { isOfService, isRefusal, outcomeOf } from '../../core/outcome.ts';
import type { Database, SqlValue, Statement } from '../kernel/database.ts';
import { addToBlocks } from './blocks.ts';
import { type RecordedPayload, wordsOf } from './payload.ts';
import { COLUMNS, type RequestRecord } from './request-record.ts';

const HOUR = 3_600_000;

/** A record that waits to be stored. */
export interface QueuedRecord {
  readonly record: RequestRecord;
  readonly payload: RecordedPayload | undefined;
  /** Only its sums are stored. */
  readonly isSummed: boolean;
  /** Characters of its texts. */
  readonly size: number;
}

/** The statements that store a batch, in one transaction. */
export function storeStatements(kind: Database['kind'], batch: readonly QueuedRecord[]): Statement[] {
  const kept = batch.filter(({ isSummed }) => !isSummed);
  const statements = kind === 'sqlite' ? inSqlite(kept) : inPostgres(kept);
  return [...statements, addUsage(batch)];
}

const NAMES = COLUMNS.map(({ name }) => name);
const INSERT = `INSERT INTO agctl_records (${NAMES.join(', ')}) VALUES (${NAMES.map(() => '?').join(', ')})`;
// The id of the record is that of the last row inserted, in all three tables.
const INSERT_PAYLOAD =
  'INSERT INTO agctl_record_payloads (id, request, response) VALUES (last_insert_rowid(), ?, ?)';
const INSERT_WORDS = 'INSERT INTO agctl_record_words (rowid, words) VALUES (last_insert_rowid(), ?)';

function inSqlite(batch: readonly QueuedRecord[]): Statement[] {
  if (batch.length === 0) return [];
  const plain: SqlValue[][] = [];
  const statements: Statement[] = [{ sql: INSERT, many: plain }];
  for (const { record, payload } of batch) {
    const words = searchedWords(record, payload);
    if (words === null) {
      plain.push(rowOf(record));
      continue;
    }
    statements.push({ sql: INSERT, values: rowOf(record) });
    if (payload !== undefined)
      statements.push({ sql: INSERT_PAYLOAD, values: [payload.request, payload.response] });
    statements.push({ sql: INSERT_WORDS, values: [words] });
  }
  return [...statements, addToBlocks(batch.length)];
}

const GIVEN = COLUMNS.map(
  ({ name, type }) => `${name} ${type === 'text' || type === 'json' ? 'TEXT' : 'BIGINT'}`,
).join(', ');
/** One statement for the batch, because each takes a round trip. */
const INSERT_BATCH = `
WITH given AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('agctl_records', 'id')) AS id, r.*
  FROM json_to_recordset(?::json) AS r(${GIVEN}, request TEXT, response TEXT, words TEXT)
), kept AS (
  INSERT INTO agctl_records (id, ${NAMES.join(', ')}) SELECT id, ${NAMES.join(', ')} FROM given
)
INSERT INTO agctl_record_payloads (id, request, response, words)
SELECT id, request, response, to_tsvector('simple', words) FROM given WHERE words IS NOT NULL`;

function inPostgres(batch: readonly QueuedRecord[]): Statement[] {
  if (batch.length === 0) return [];
  const rows = batch.map(({ record, payload }) => ({
    ...record,
    request: payload?.request ?? null,
    response: payload?.response ?? null,
    words: searchedWords(record, payload),
  }));
  return [{ sql: INSERT_BATCH, values: [JSON.stringify(rows)] }];
}

/** Errors and payloads can be searched by their words; everything else by its value. */
function searchedWords({ error }: RequestRecord, payload: RecordedPayload | undefined): string | null {
  if (typeof error !== 'string') return payload?.words ?? null;
  const words = wordsOf(error);
  return payload === undefined ? words : `${words} ${payload.words}`;
}

const rowOf = (record: RequestRecord): SqlValue[] => NAMES.map((name) => record[name] ?? null);

export const USAGE_KEYS = [
  'hour',
  'protocol',
  'caller',
  'user_name',
  'user_group',
  'provider',
  'model',
  'target',
  'tool',
];
/** Services that a request is not a call of, although it names them, because the gateway has failed it, or refused it. */
const NOT_CALLED: Readonly<Record<'failed' | 'refused', ReadonlySet<string>>> = {
  failed: new Set(['provider', 'target']),
  // By target, refused calls are shown apart.
  refused: new Set(['provider']),
};
export const USAGE_SUMS = [
  'requests',
  'errors',
  'refused',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'cost',
];
export const USAGE_CONFLICT = `ON CONFLICT (${USAGE_KEYS.join(', ')}) DO UPDATE SET
${USAGE_SUMS.map((name) => `${name} = agctl_usage.${name} + excluded.${name}`).join(', ')}`;
const ADD_USAGE = `INSERT INTO agctl_usage (${[...USAGE_KEYS, ...USAGE_SUMS].join(', ')})
VALUES (${[...USAGE_KEYS, ...USAGE_SUMS].map(() => '?').join(', ')}) ${USAGE_CONFLICT}`;

/** Adds a batch to the sums. In the order of their keys, so that two gateways do not wait for each other. */
function addUsage(batch: readonly QueuedRecord[]): Statement {
  const sums = new Map<string, [keys: SqlValue[], sums: number[]]>();
  const add = (keys: SqlValue[], added: readonly number[]): void => {
    const key = keys.join('\n');
    const known = sums.get(key);
    if (known === undefined) sums.set(key, [keys, [...added]]);
    else for (const [index, value] of added.entries()) known[1][index] = (known[1][index] ?? 0) + value;
  };
  for (const { record: r } of batch) {
    const status = Number(r['status']);
    const outcome = outcomeOf(status, textIn(r['error']) || undefined, textIn(r['reason']));
    const keys = USAGE_KEYS.map((name) =>
      name === 'hour' ? Math.floor(Number(r['time']) / HOUR) : (r[name] ?? ''),
    );
    const ended: Readonly<Record<string, number>> = {
      requests: 1,
      errors: outcome === 'bad' ? 1 : 0,
      refused: isRefusal(outcome, status) ? 1 : 0,
    };
    if (outcome === 'good' || isOfService(textIn(r['reason']))) {
      add(
        keys,
        USAGE_SUMS.map((name) => ended[name] ?? Number(r[name])),
      );
      continue;
    }
    // It is not a call of the service, which may have used tokens before.
    const notCalled = NOT_CALLED[outcome === 'bad' ? 'failed' : 'refused'];
    add(
      keys.map((value, index) => (notCalled.has(USAGE_KEYS[index] ?? '') ? '' : value)),
      USAGE_SUMS.map((name) => ended[name] ?? 0),
    );
    if (Number(r['input_tokens']) > 0)
      add(
        keys,
        USAGE_SUMS.map((name) => (name in ended ? 0 : Number(r[name]))),
      );
  }
  const many = [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, [keys, values]]) => [...keys, ...values]);
  return { sql: ADD_USAGE, many };
}
