import { outcomeOf } from '../../core/outcome.ts';
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

const INSERT = `INSERT INTO agctl_records (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map(() => '?').join(', ')})`;
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

const TEXTS = new Set([
  'protocol',
  'operation',
  'listener',
  'route',
  'path',
  'error',
  'reason',
  'cut',
  'caller',
  'user_name',
  'user_group',
  'client',
  'agent',
  'session',
  'trace_id',
  'provider',
  'model',
  'used_model',
  'target',
  'tool',
  'estimated',
  'added',
]);
const GIVEN = COLUMNS.map((name) => `${name} ${TEXTS.has(name) ? 'TEXT' : 'BIGINT'}`).join(', ');
/** One statement for the batch, because each takes a round trip. */
const INSERT_BATCH = `
WITH given AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('agctl_records', 'id')) AS id, r.*
  FROM json_to_recordset(?::json) AS r(${GIVEN}, request TEXT, response TEXT, words TEXT)
), kept AS (
  INSERT INTO agctl_records (id, ${COLUMNS.join(', ')}) SELECT id, ${COLUMNS.join(', ')} FROM given
)
INSERT INTO agctl_record_payloads (id, request, response, words)
SELECT id, request, response, to_tsvector('simple', words) FROM given WHERE words IS NOT NULL`;

function inPostgres(batch: readonly QueuedRecord[]): Statement[] {
  if (batch.length === 0) return [];
  const rows = batch.map(({ record, payload }) => {
    const values = rowOf(record);
    return {
      ...Object.fromEntries(COLUMNS.map((name, index) => [name, values[index]])),
      request: payload?.request ?? null,
      response: payload?.response ?? null,
      words: searchedWords(record, payload),
    };
  });
  return [{ sql: INSERT_BATCH, values: [JSON.stringify(rows)] }];
}

/** Errors and payloads can be searched by their words; everything else by its value. */
function searchedWords({ error }: RequestRecord, payload: RecordedPayload | undefined): string | null {
  if (error === null) return payload?.words ?? null;
  const words = wordsOf(error);
  return payload === undefined ? words : `${words} ${payload.words}`;
}

function rowOf(record: RequestRecord): SqlValue[] {
  return [
    record.time,
    record.duration,
    record.protocol,
    record.operation,
    record.listener,
    record.route,
    record.path,
    record.status,
    record.error,
    record.reason,
    record.cut,
    record.caller,
    record.user,
    record.group,
    record.client,
    record.agent,
    record.session,
    record.traceId,
    record.provider,
    record.model,
    record.usedModel,
    record.target,
    record.tool,
    record.streamed ? 1 : 0,
    record.firstToken,
    record.input,
    record.output,
    record.cached,
    record.cacheWrite,
    record.reasoning,
    record.estimated,
    record.cost,
    record.added,
  ];
}

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
export const USAGE_SUMS = ['requests', 'errors', 'input_tokens', 'output_tokens', 'cached_tokens', 'cost'];
export const USAGE_CONFLICT = `ON CONFLICT (${USAGE_KEYS.join(', ')}) DO UPDATE SET
${USAGE_SUMS.map((name) => `${name} = agctl_usage.${name} + excluded.${name}`).join(', ')}`;
const ADD_USAGE = `INSERT INTO agctl_usage (${[...USAGE_KEYS, ...USAGE_SUMS].join(', ')})
VALUES (${[...USAGE_KEYS, ...USAGE_SUMS].map(() => '?').join(', ')}) ${USAGE_CONFLICT}`;

/** Adds a batch to the sums. In the order of their keys, so that two gateways do not wait for each other. */
function addUsage(batch: readonly QueuedRecord[]): Statement {
  const sums = new Map<string, [keys: SqlValue[], sums: number[]]>();
  for (const { record: r } of batch) {
    const keys = [
      Math.floor(r.time / HOUR),
      r.protocol,
      r.caller ?? '',
      r.user ?? '',
      r.group ?? '',
      r.provider ?? '',
      r.model ?? '',
      r.target ?? '',
      r.tool ?? '',
    ];
    const key = keys.join('\n');
    const known = sums.get(key);
    const added = [
      1,
      outcomeOf(r.status, r.error ?? undefined) === 'bad' ? 1 : 0,
      r.input ?? 0,
      r.output ?? 0,
      r.cached ?? 0,
      r.cost ?? 0,
    ];
    if (known === undefined) sums.set(key, [keys, added]);
    else for (const [index, value] of added.entries()) known[1][index] = (known[1][index] ?? 0) + value;
  }
  const many = [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, [keys, values]]) => [...keys, ...values]);
  return { sql: ADD_USAGE, many };
}
