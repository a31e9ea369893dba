import { AppError, messageOf } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { keysCreatedBy, missingKey } from '../../../core/postgres-keys.ts';
import { optionalNumber, rowsOf, text } from '../../../core/sql-row.ts';
import type { Client } from './connection.ts';

/** Letters of scripts without spaces: Kana, ideographs, Thai, Lao, Myanmar and Khmer, but no punctuation. */
const UNSPACED =
  '[\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff]';

/** SQL that splits a text into words and pairs of letters, about as `plainWords` does. */
function pairsIn(column: string): string {
  const apart = `regexp_replace(lower(left(${column}, 100000)), '(${UNSPACED}+)', ' \\1 ', 'g')`;
  const pairs = `regexp_replace(${apart}, '(?<=${UNSPACED})(${UNSPACED})(?=${UNSPACED})', '\\1 \\1', 'g')`;
  const plain = `regexp_replace(normalize(${pairs}, NFD), '[\u0300-\u036f\u3099\u309a]', '', 'g')`;
  return `regexp_replace(${plain}, '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u3020\uff00-\uff0f]+', ' ', 'g')`;
}

/**
 * Each list migrates the tables from the preceding version to its own, counted from 1. What it does never changes once released.
 * Those from the second on pass over what is there already: a restored dump of an earlier version has set the version back,
 * and has left in place what it does not know.
 */
export const MIGRATIONS: readonly (readonly string[])[] = [
  [
    `CREATE TABLE memory_sessions (
      session_id text COLLATE "C" PRIMARY KEY,
      turns bigint NOT NULL,
      first_at text NOT NULL,
      last_at text NOT NULL,
      last_seq bigint NOT NULL
    )`,
    'CREATE INDEX memory_sessions_latest ON memory_sessions (last_seq)',
    `CREATE TABLE memory_session_agents (
      session_id text COLLATE "C" NOT NULL,
      agent_id text COLLATE "C" NOT NULL,
      PRIMARY KEY (session_id, agent_id)
    )`,
    `CREATE TABLE memory_chat_history (
      seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      id text NOT NULL,
      session_id text COLLATE "C" NOT NULL,
      agent_id text NOT NULL,
      role text NOT NULL,
      content text NOT NULL,
      created_at text NOT NULL,
      idempotency_key text COLLATE "C"
    )`,
    'CREATE INDEX memory_chat_history_session ON memory_chat_history (session_id, seq)',
    `CREATE UNIQUE INDEX memory_chat_history_key ON memory_chat_history (session_id, idempotency_key)
      WHERE idempotency_key IS NOT NULL`,
    `CREATE TABLE memory_documents (
      document bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      origin text NOT NULL,
      key text COLLATE "C" NOT NULL,
      hash text NOT NULL,
      embedder text NOT NULL,
      file_id text NOT NULL,
      chunks integer NOT NULL,
      UNIQUE (origin, key)
    )`,
    // Stems like those of FTS5's porter tokenizer, and no stop words: a rare name may look like one.
    'CREATE TEXT SEARCH DICTIONARY memory_stems (TEMPLATE = snowball, LANGUAGE = english)',
    'CREATE TEXT SEARCH CONFIGURATION memory_words (COPY = simple)',
    'ALTER TEXT SEARCH CONFIGURATION memory_words ALTER MAPPING FOR asciiword, word WITH memory_stems',
    `CREATE TABLE memory_entities (
      row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      id text COLLATE "C" NOT NULL UNIQUE,
      name text COLLATE "C" NOT NULL,
      type text NOT NULL,
      content text NOT NULL,
      metadata text NOT NULL,
      search_text text NOT NULL,
      words tsvector,
      embedder text,
      embedding vector(128),
      document bigint
    )`,
    'CREATE INDEX memory_entities_name ON memory_entities (name)',
    'CREATE INDEX memory_entities_type ON memory_entities (type)',
    'CREATE INDEX memory_entities_document ON memory_entities (document) WHERE document IS NOT NULL',
    'CREATE INDEX memory_entities_searched ON memory_entities (row) WHERE words IS NOT NULL',
    'CREATE INDEX memory_entities_words ON memory_entities USING gin (words)',
    'CREATE INDEX memory_entities_embedding ON memory_entities USING hnsw (embedding vector_cosine_ops)',
    `CREATE TABLE memory_relations (
      from_id text COLLATE "C" NOT NULL,
      to_id text COLLATE "C" NOT NULL,
      relation_type text COLLATE "C" NOT NULL,
      weight double precision NOT NULL,
      PRIMARY KEY (from_id, to_id, relation_type)
    )`,
    'CREATE INDEX memory_relations_to ON memory_relations (to_id)',
    'CREATE TABLE memory_notes (key text COLLATE "C" PRIMARY KEY, value text NOT NULL)',
  ],
  // Fields for the search by words; vectors of any length in a table of their own, so that texts can be embedded after
  // they were stored, and again for another embedder. Each embedder has an index of its own (`vector-index.ts`).
  [
    `ALTER TABLE memory_entities ADD COLUMN IF NOT EXISTS title text NOT NULL DEFAULT '', ADD COLUMN IF NOT EXISTS heading text NOT NULL DEFAULT ''`,
    // Words keep no weights until the document is stored again, which the next sync does.
    `UPDATE memory_entities SET title = coalesce(metadata::json->>'title', ''),
       heading = coalesce(metadata::json->>'heading', ''), search_text = content
     WHERE type = 'doc_chunk' AND search_text <> '' AND content <> '' AND title = '' AND heading = ''`,
    // A null vector says that the text has no meaning for the embedder.
    `CREATE TABLE IF NOT EXISTS memory_vectors (
      row bigint NOT NULL REFERENCES memory_entities (row) ON DELETE CASCADE,
      embedder text COLLATE "C" NOT NULL,
      type text NOT NULL,
      embedding vector,
      PRIMARY KEY (row, embedder)
    )`,
    // Dropped below: they are missing if a restored dump has set the version back, and the next statement reads them.
    'ALTER TABLE memory_entities ADD COLUMN IF NOT EXISTS embedder text, ADD COLUMN IF NOT EXISTS embedding vector(128)',
    `INSERT INTO memory_vectors (row, embedder, type, embedding)
       SELECT row, embedder, type, embedding FROM memory_entities WHERE embedder IS NOT NULL
       ON CONFLICT DO NOTHING`,
    'ALTER TABLE memory_entities DROP COLUMN embedding, DROP COLUMN embedder',
  ],
  [
    // Words of the name, for lookups that ignore case and punctuation; older rows get an approximation.
    `ALTER TABLE memory_entities ADD COLUMN IF NOT EXISTS name_key text COLLATE "C" NOT NULL DEFAULT ''`,
    // What search_nodes searches; null for all but entities of agents, and for the end of a relation that is not an entity.
    'ALTER TABLE memory_entities ADD COLUMN IF NOT EXISTS folded text',
    // From when the time-to-live counts; null for what never expires.
    'ALTER TABLE memory_entities ADD COLUMN IF NOT EXISTS stored_at text COLLATE "C"',
    `UPDATE memory_entities SET name_key = lower(translate(name, '_-', '  ')) WHERE name_key = ''`,
    'CREATE INDEX IF NOT EXISTS memory_entities_name_key ON memory_entities (name_key)',
    `CREATE INDEX IF NOT EXISTS memory_entities_agents ON memory_entities (name) WHERE type = 'entity'`,
    'CREATE INDEX IF NOT EXISTS memory_entities_stored ON memory_entities (stored_at) WHERE stored_at IS NOT NULL',
    'CREATE INDEX IF NOT EXISTS memory_chat_history_id ON memory_chat_history (id)',
    'CREATE INDEX IF NOT EXISTS memory_chat_history_time ON memory_chat_history (created_at COLLATE "C")',
    'ALTER TABLE memory_chat_history ADD COLUMN IF NOT EXISTS words tsvector',
    `UPDATE memory_chat_history SET words =
      to_tsvector('memory_words', regexp_replace(lower(left(content, 200000)), '[^[:alnum:]]+', ' ', 'g'))
      WHERE words IS NULL`,
    'CREATE INDEX IF NOT EXISTS memory_chat_history_words ON memory_chat_history USING gin (words)',
  ],
  [
    // Entities in which common words are counted (word-index.ts). Without a list of pending entries, which
    // would be as long as the index, and is read by every search.
    `CREATE INDEX IF NOT EXISTS memory_entities_sample ON memory_entities USING gin (words) WITH (fastupdate = off)
      WHERE row * 40503 % 65536 < 8192`,
  ],
  [
    // Words in titles and headings, and those that a text repeats (found-entities.ts).
    `CREATE OR REPLACE FUNCTION memory_prominent(words tsvector) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
      SELECT array_to_tsvector(ARRAY(
        SELECT lexeme FROM unnest(words) WHERE cardinality(positions) > 1 OR weights && '{A,B}'))
    $$`,
    `CREATE INDEX IF NOT EXISTS memory_entities_prominent ON memory_entities USING gin (memory_prominent(words))
      WITH (fastupdate = off)`,
    // One of sixteen is enough, and visited twice as fast.
    'DROP INDEX IF EXISTS memory_entities_sample',
    `CREATE INDEX IF NOT EXISTS memory_entities_sample ON memory_entities USING gin (words) WITH (fastupdate = off)
      WHERE row * 40503 % 65536 < 4096`,
  ],
  // Texts in scripts without spaces are indexed by pairs of letters, as `plainWords` makes them.
  [
    `UPDATE memory_entities SET words = setweight(to_tsvector('memory_words', ${pairsIn('title')}), 'A') ||
       setweight(to_tsvector('memory_words', ${pairsIn('heading')}), 'B') ||
       to_tsvector('memory_words', ${pairsIn('search_text')})
     WHERE search_text <> '' AND concat(title, heading, search_text) ~ '${UNSPACED}'`,
    `UPDATE memory_chat_history SET words = to_tsvector('memory_words', ${pairsIn('content')})
     WHERE content ~ '${UNSPACED}'`,
  ],
];

/** Since this version, a filtered search continues until it has enough rows. */
const ITERATIVE_SCAN = [0, 8] as const;

const NAMESPACES = `CREATE TABLE IF NOT EXISTS memory_namespaces (
  name text COLLATE "C" PRIMARY KEY,
  schema_name text NOT NULL UNIQUE
)`;

/** Creates or migrates the tables; several backends that start concurrently do it one after another. */
export async function migrate(
  client: Client,
  server: string,
  log: Log,
  migrations = MIGRATIONS,
): Promise<void> {
  await client.query('BEGIN');
  try {
    await lockSchema(client);
    await requireVectors(client, server, log);
    const from = await migrateTables(client, server, migrations);
    // Only next to the tables of `default`.
    await client.query(NAMESPACES);
    const missing = await missingKey(client, keysCreatedBy([...migrations.flat(), NAMESPACES]));
    if (missing !== undefined)
      throw new AppError('memory_not_opened', {
        message:
          `${server}: ${missing}, as after a restore that reported errors: restore the dump into an empty database, ` +
          'or use another database',
      });
    await client.query('COMMIT');
    if (from > 0 && from < migrations.length)
      log.info('memory::postgres', 'the tables were migrated', { server, from, to: migrations.length });
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/** Until the end of the transaction, no other backend changes tables. */
export async function lockSchema(client: Client): Promise<void> {
  await client.query(`SELECT pg_advisory_xact_lock(hashtextextended('agctl-memory:migrate', 0))`);
  // Building an index over many rows takes longer than the timeout of a call.
  await client.query('SET LOCAL statement_timeout = 0');
}

/** Creates or migrates the tables in the first schema of the search path. Returns the version that they had, or 0. */
export async function migrateTables(
  client: Client,
  server: string,
  migrations = MIGRATIONS,
): Promise<number> {
  await client.query('CREATE TABLE IF NOT EXISTS memory_schema (version integer NOT NULL)');
  const [row = {}] = rowsOf(await client.query('SELECT max(version) AS version FROM memory_schema'));
  const version = optionalNumber(row, 'version') ?? 0;
  if (version > migrations.length)
    throw new AppError('memory_not_opened', {
      message:
        `${server}: its tables were created by a newer agctl (version ${version}, this one supports ${migrations.length}): ` +
        'install that version, or use another database',
    });
  for (const [index, statements] of migrations.entries()) {
    if (index < version) continue;
    for (const statement of statements) await client.query(statement);
    await client.query('INSERT INTO memory_schema (version) VALUES ($1)', [index + 1]);
  }
  return version;
}

async function requireVectors(client: Client, server: string, log: Log): Promise<void> {
  const installed = async (): Promise<string | undefined> => {
    const [row] = rowsOf(await client.query(`SELECT extversion FROM pg_extension WHERE extname = 'vector'`));
    return row === undefined ? undefined : text(row, 'extversion');
  };
  let version = await installed();
  if (version === undefined) {
    await client.query('CREATE EXTENSION IF NOT EXISTS vector').catch((error: unknown) => {
      throw new AppError('memory_not_opened', {
        message:
          `${server}: has no pgvector (${messageOf(error)}): install it on the server (package ` +
          'postgresql-NN-pgvector, or the image pgvector/pgvector), then let a superuser run CREATE EXTENSION vector',
        cause: error,
      });
    });
    version = await installed();
  }
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number);
  if (major === ITERATIVE_SCAN[0] && minor < ITERATIVE_SCAN[1])
    log.warn('memory::postgres', 'pgvector is older than 0.8: searches by type may return too few results', {
      version: version ?? '',
    });
}
