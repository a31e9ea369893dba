import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { text } from '../../../core/sql-row.ts';
import { nameKey, plainWords } from '../plain-words.ts';
import type { NewEntity } from '../store.ts';
import type { Sql } from './sql.ts';

/** Shorter names, such as `go` or `x`, are words of too many texts. */
const SHORTEST = 3;
/** Mentioned entities of one text; a glossary must not become related to everything. */
const MOST = 20;
const MENTIONING = ['doc_chunk', 'chat_message'];

/** Relates texts to the entities of agents that they mention by name: `REFERENCES`, from the text to the entity. */
export async function mentionsIn(sql: Sql, texts: readonly NewEntity[]): Promise<void> {
  const mentioning = texts.filter(({ type }) => MENTIONING.includes(type));
  if (mentioning.length === 0) return;
  const [any] = await sql.all(`SELECT 1 AS one FROM memory_entities WHERE type = 'entity' LIMIT 1`);
  if (any === undefined) return;
  for (const { id, content } of mentioning) {
    const rows = await sql.all(
      `SELECT id FROM memory_entities
       WHERE type = 'entity' AND folded IS NOT NULL AND ${sql.among('name_key', '$1')} ORDER BY id LIMIT $2`,
      [sql.list(phrasesOf(content)), MOST],
    );
    await relate(
      sql,
      rows.map((row) => [id, text(row, 'id')]),
    );
  }
}

/** Relates the texts that mention a new entity by its name to it. */
export async function mentionsOf(
  sql: Sql,
  entity: { readonly id: string; readonly name: string },
): Promise<void> {
  const key = nameKey(entity.name);
  if (key.length < SHORTEST || key.split(' ').length > MEMORY_STORE_LIMITS.mentionWords) return;
  const rows = await sql.all(
    `SELECT id, content FROM memory_entities WHERE ${sql.among('type', '$1')} AND ${sql.matches('entities', '$2')}
     ORDER BY row LIMIT $3`,
    [sql.list(MENTIONING), sql.wordQuery(entity.name, 'phrase'), MEMORY_STORE_LIMITS.mentions],
  );
  await relate(
    sql,
    // The index finds other forms of a word too.
    rows
      .filter((row) => ` ${nameKey(text(row, 'content'))} `.includes(` ${key} `))
      .map((row) => [text(row, 'id'), entity.id]),
  );
}

async function relate(sql: Sql, pairs: readonly (readonly [string, string])[]): Promise<void> {
  if (pairs.length === 0) return;
  await sql.insert({
    table: 'memory_relations',
    columns: ['from_id', 'to_id', 'relation_type', 'weight'],
    rows: pairs.map(([from, to]) => [from, to, 'REFERENCES', 1]),
    conflict: 'ON CONFLICT (from_id, to_id, relation_type) DO NOTHING',
  });
}

/** Every sequence of a text's words that could be a name. */
function phrasesOf(content: string): string[] {
  const words = plainWords(content);
  const phrases = new Set<string>();
  for (let start = 0; start < words.length; start++) {
    let phrase = '';
    for (let end = start; end < words.length && end < start + MEMORY_STORE_LIMITS.mentionWords; end++) {
      phrase = end === start ? (words[end] ?? '') : `${phrase} ${words[end]}`;
      if (phrase.length >= SHORTEST) phrases.add(phrase);
    }
  }
  return [...phrases];
}
