import type { DatabaseSync } from 'node:sqlite';
import { AppError } from '../../../core/errors.ts';
import { createPrivateDatabase } from '../../../core/private-files.ts';
import { number } from '../../../core/sql-row.ts';
import { pairsOfFields } from '../tokenizer.ts';

/** "agcm": identifies the file as ours (`PRAGMA application_id`). */
const APPLICATION_ID = 0x6167636d;

/** Each script migrates a file from the preceding version to its own, counted from 1. Never changed once released. */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE memory_sessions (
    session_id TEXT PRIMARY KEY,
    turns INTEGER NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    last_seq INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX memory_sessions_latest ON memory_sessions (last_seq);
  CREATE TABLE memory_session_agents (
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    PRIMARY KEY (session_id, agent_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE memory_chat_history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at TEXT NOT NULL,
    idempotency_key TEXT
  ) STRICT;
  CREATE INDEX memory_chat_history_session ON memory_chat_history (session_id, seq);
  CREATE UNIQUE INDEX memory_chat_history_key ON memory_chat_history (session_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

  CREATE TABLE memory_documents (
    document INTEGER PRIMARY KEY AUTOINCREMENT,
    origin TEXT NOT NULL,
    key TEXT NOT NULL,
    hash TEXT NOT NULL,
    embedder TEXT NOT NULL,
    file_id TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    UNIQUE (origin, key)
  ) STRICT;
  -- row only grows: what is above the highest one seen is new to the cache of vectors.
  CREATE TABLE memory_entities (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    search_text TEXT NOT NULL,
    embedder TEXT,
    embedding BLOB,
    document INTEGER
  ) STRICT;
  CREATE INDEX memory_entities_name ON memory_entities (name);
  CREATE INDEX memory_entities_type ON memory_entities (type);
  CREATE INDEX memory_entities_document ON memory_entities (document) WHERE document IS NOT NULL;
  CREATE INDEX memory_entities_searched ON memory_entities (type) WHERE search_text <> '';
  CREATE TABLE memory_relations (
    from_id TEXT NOT NULL,
    to_id TEXT NOT NULL,
    relation_type TEXT NOT NULL,
    weight REAL NOT NULL,
    PRIMARY KEY (from_id, to_id, relation_type)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX memory_relations_to ON memory_relations (to_id, from_id, relation_type, weight);
  CREATE TABLE memory_notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

  CREATE VIEW memory_searched AS SELECT row, search_text FROM memory_entities WHERE search_text <> '';
  CREATE VIRTUAL TABLE memory_words USING fts5 (
    search_text, content = 'memory_searched', content_rowid = 'row', tokenize = 'porter unicode61'
  );
  CREATE VIRTUAL TABLE memory_word_counts USING fts5vocab ('memory_words', 'row');
  CREATE TRIGGER memory_entities_insert AFTER INSERT ON memory_entities WHEN new.search_text <> '' BEGIN
    INSERT INTO memory_words (rowid, search_text) VALUES (new.row, new.search_text);
  END;
  CREATE TRIGGER memory_entities_delete AFTER DELETE ON memory_entities WHEN old.search_text <> '' BEGIN
    INSERT INTO memory_words (memory_words, rowid, search_text) VALUES ('delete', old.row, old.search_text);
  END;
  `,
  // Fields for the index of words; vectors of any length in a table of their own, so that texts can be embedded after
  // they were stored, and again for another embedder.
  `
  DROP TRIGGER memory_entities_insert;
  DROP TRIGGER memory_entities_delete;
  DROP TABLE memory_word_counts;
  DROP TABLE memory_words;
  DROP VIEW memory_searched;
  ALTER TABLE memory_entities ADD COLUMN title TEXT NOT NULL DEFAULT '';
  ALTER TABLE memory_entities ADD COLUMN heading TEXT NOT NULL DEFAULT '';
  UPDATE memory_entities SET
    title = coalesce(json_extract(metadata, '$.title'), ''),
    heading = coalesce(json_extract(metadata, '$.heading'), ''),
    search_text = content
  WHERE type = 'doc_chunk' AND search_text <> '' AND content <> '' AND json_valid(metadata);

  -- vector only grows: what is above the highest one seen is new to the cache of vectors. A null vector says that the
  -- text has no meaning for the embedder.
  CREATE TABLE memory_vectors (
    vector INTEGER PRIMARY KEY AUTOINCREMENT,
    row INTEGER NOT NULL,
    embedder TEXT NOT NULL,
    type TEXT NOT NULL,
    embedding BLOB,
    UNIQUE (row, embedder)
  ) STRICT;
  CREATE INDEX memory_vectors_embedder ON memory_vectors (embedder, vector);
  INSERT INTO memory_vectors (row, embedder, type, embedding)
    SELECT row, embedder, type, embedding FROM memory_entities WHERE embedder IS NOT NULL ORDER BY row;
  ALTER TABLE memory_entities DROP COLUMN embedding;
  ALTER TABLE memory_entities DROP COLUMN embedder;

  CREATE VIEW memory_searched AS
    SELECT row, title, heading, search_text FROM memory_entities WHERE search_text <> '';
  CREATE VIRTUAL TABLE memory_words USING fts5 (
    title, heading, search_text, content = 'memory_searched', content_rowid = 'row', tokenize = 'porter unicode61'
  );
  INSERT INTO memory_words (memory_words) VALUES ('rebuild');
  CREATE VIRTUAL TABLE memory_word_counts USING fts5vocab ('memory_words', 'row');
  CREATE TRIGGER memory_entities_insert AFTER INSERT ON memory_entities WHEN new.search_text <> '' BEGIN
    INSERT INTO memory_words (rowid, title, heading, search_text)
      VALUES (new.row, new.title, new.heading, new.search_text);
  END;
  CREATE TRIGGER memory_entities_delete AFTER DELETE ON memory_entities BEGIN
    INSERT INTO memory_words (memory_words, rowid, title, heading, search_text)
      SELECT 'delete', old.row, old.title, old.heading, old.search_text WHERE old.search_text <> '';
    DELETE FROM memory_vectors WHERE row = old.row;
  END;
  `,
  `
  -- Words of the name, for lookups that ignore case and punctuation; older rows get an approximation.
  ALTER TABLE memory_entities ADD COLUMN name_key TEXT NOT NULL DEFAULT '';
  -- What search_nodes searches; null for all but entities of agents, and for the end of a relation that is not an entity.
  ALTER TABLE memory_entities ADD COLUMN folded TEXT;
  -- From when the time-to-live counts; null for what never expires.
  ALTER TABLE memory_entities ADD COLUMN stored_at TEXT;
  UPDATE memory_entities SET name_key = lower(replace(replace(name, '_', ' '), '-', ' '));
  CREATE INDEX memory_entities_name_key ON memory_entities (name_key);
  CREATE INDEX memory_entities_agents ON memory_entities (name) WHERE type = 'entity';
  CREATE INDEX memory_entities_stored ON memory_entities (stored_at) WHERE stored_at IS NOT NULL;
  CREATE INDEX memory_chat_history_id ON memory_chat_history (id);
  CREATE INDEX memory_chat_history_time ON memory_chat_history (created_at);
  CREATE VIRTUAL TABLE memory_turn_words USING fts5 (
    content, content = 'memory_chat_history', content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
  );
  CREATE TRIGGER memory_chat_history_insert AFTER INSERT ON memory_chat_history BEGIN
    INSERT INTO memory_turn_words (rowid, content) VALUES (new.seq, new.content);
  END;
  CREATE TRIGGER memory_chat_history_delete AFTER DELETE ON memory_chat_history BEGIN
    INSERT INTO memory_turn_words (memory_turn_words, rowid, content) VALUES ('delete', old.seq, old.content);
  END;
  INSERT INTO memory_turn_words (memory_turn_words) VALUES ('rebuild');
  -- Deleted words leave the index at once, instead of when its segments are merged.
  INSERT INTO memory_turn_words (memory_turn_words, rank) VALUES ('secure-delete', 1);
  INSERT INTO memory_words (memory_words) VALUES ('rebuild');
  INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);
  `,
  // Texts in scripts without spaces are indexed by pairs of letters, because FTS5 takes all up to the next mark for a word.
  `
  DROP TRIGGER memory_entities_insert;
  DROP TRIGGER memory_entities_delete;
  DROP TABLE memory_word_counts;
  DROP TABLE memory_words;
  DROP VIEW memory_searched;
  -- What is indexed instead of the text; null if that is the text.
  ALTER TABLE memory_entities ADD COLUMN pairs TEXT;
  UPDATE memory_entities SET pairs = agctl_pairs(title, heading, search_text) WHERE search_text <> '';
  CREATE VIEW memory_searched AS
    SELECT row, title, heading, coalesce(pairs, search_text) AS search_text FROM memory_entities
    WHERE search_text <> '';
  CREATE VIRTUAL TABLE memory_words USING fts5 (
    title, heading, search_text, content = 'memory_searched', content_rowid = 'row', tokenize = 'porter unicode61'
  );
  CREATE VIRTUAL TABLE memory_word_counts USING fts5vocab ('memory_words', 'row');
  CREATE TRIGGER memory_entities_insert AFTER INSERT ON memory_entities WHEN new.search_text <> '' BEGIN
    INSERT INTO memory_words (rowid, title, heading, search_text)
      VALUES (new.row, new.title, new.heading, coalesce(new.pairs, new.search_text));
  END;
  CREATE TRIGGER memory_entities_delete AFTER DELETE ON memory_entities BEGIN
    INSERT INTO memory_words (memory_words, rowid, title, heading, search_text)
      SELECT 'delete', old.row, old.title, old.heading, coalesce(old.pairs, old.search_text)
      WHERE old.search_text <> '';
    DELETE FROM memory_vectors WHERE row = old.row;
  END;
  INSERT INTO memory_words (memory_words) VALUES ('rebuild');
  INSERT INTO memory_words (memory_words, rank) VALUES ('secure-delete', 1);

  DROP TRIGGER memory_chat_history_insert;
  DROP TRIGGER memory_chat_history_delete;
  DROP TABLE memory_turn_words;
  ALTER TABLE memory_chat_history ADD COLUMN pairs TEXT;
  UPDATE memory_chat_history SET pairs = agctl_pairs('', '', content);
  CREATE VIEW memory_searched_turns AS SELECT seq, coalesce(pairs, content) AS content FROM memory_chat_history;
  CREATE VIRTUAL TABLE memory_turn_words USING fts5 (
    content, content = 'memory_searched_turns', content_rowid = 'seq',
    tokenize = 'porter unicode61 remove_diacritics 2'
  );
  CREATE VIRTUAL TABLE memory_turn_word_counts USING fts5vocab ('memory_turn_words', 'row');
  CREATE TRIGGER memory_chat_history_insert AFTER INSERT ON memory_chat_history BEGIN
    INSERT INTO memory_turn_words (rowid, content) VALUES (new.seq, coalesce(new.pairs, new.content));
  END;
  CREATE TRIGGER memory_chat_history_delete AFTER DELETE ON memory_chat_history BEGIN
    INSERT INTO memory_turn_words (memory_turn_words, rowid, content)
      VALUES ('delete', old.seq, coalesce(old.pairs, old.content));
  END;
  INSERT INTO memory_turn_words (memory_turn_words) VALUES ('rebuild');
  INSERT INTO memory_turn_words (memory_turn_words, rank) VALUES ('secure-delete', 1);
  `,
];

/**
 * Migrates an open file to the newest version. A file of a newer agctl, or of another program, is refused and left
 * unchanged; before an older file is changed, it is copied.
 */
export function migrate(database: DatabaseSync, path: string, migrations = MIGRATIONS): void {
  const version = pragma(database, 'user_version');
  const tables = number(database.prepare('SELECT count(*) AS n FROM sqlite_schema').get() ?? {}, 'n');
  if (pragma(database, 'application_id') !== APPLICATION_ID && (tables > 0 || version !== 0))
    throw new AppError('memory_not_opened', {
      message: `${path}: is a database of another program: use another folder with --data`,
    });
  if (version > migrations.length)
    throw new AppError('memory_not_opened', {
      message:
        `${path}: was written by a newer agctl (version ${version}, this one supports ${migrations.length}): ` +
        'install that version again, or use another folder with --data',
    });
  if (version > 0 && version < migrations.length) {
    const backup = `${path}.v${version}.${Date.now()}.backup`;
    createPrivateDatabase(backup);
    database.prepare('VACUUM INTO ?').run(backup);
  }
  // Only migrations call it. A trigger that did would fail in other programs, such as the `sqlite3` shell, which lack the function.
  database.function('agctl_pairs', { deterministic: true, varargs: true }, (...fields) =>
    pairsOfFields(fields.map((field) => String(field))),
  );
  for (const [index, statements] of migrations.entries()) {
    if (index < version) continue;
    database.exec('BEGIN IMMEDIATE');
    try {
      database.exec(statements);
      database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      database.exec(`PRAGMA user_version = ${index + 1}`);
      database.exec('COMMIT');
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }
}

function pragma(database: DatabaseSync, name: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
}
