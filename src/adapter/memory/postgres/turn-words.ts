import { number } from '../../../core/sql-row.ts';
import type { SelectiveTerms, Sql, TurnConditions, Value } from '../sql/sql.ts';
import { phrase, plainWords } from './word-query.ts';

/** Beyond so many, a word is common: PostgreSQL visits each turn that it counts. */
const COUNTED = 5_000;

export async function turnCounts(sql: Sql, terms: readonly string[]): Promise<Map<string, number>> {
  const rows = await sql.all(
    `SELECT place, (SELECT count(*) FROM (SELECT 1 FROM memory_chat_history AS h
        WHERE h.words @@ phraseto_tsquery('memory_words', term) LIMIT ${COUNTED}) AS capped) AS n
     FROM unnest($1::text[]) WITH ORDINALITY AS listed (term, place)`,
    [terms.map(plainWords)],
  );
  const counts = new Map(terms.map((term) => [term, 0]));
  for (const row of rows) {
    const term = terms[number(row, 'place') - 1];
    if (term !== undefined) counts.set(term, number(row, 'n'));
  }
  return counts;
}

/** Ranked by the rarity of the words that each turn has: `ts_rank` knows no rarity. */
export async function turnsByWords(
  sql: Sql,
  { selecting, ranking }: SelectiveTerms,
  total: number,
  { conditions, parameters }: TurnConditions,
  limit: number,
): Promise<readonly number[]> {
  const values: Value[] = [...parameters];
  const query = (text: string): string => `to_tsquery('memory_words', $${values.push(text)})`;
  const any = query(selecting.map(([term]) => phrase(term)).join(' | '));
  const rank = [...selecting, ...ranking]
    .map(([term, count]) => {
      const weight = Math.log(1 + (total - Math.min(total, count) + 0.5) / (count + 0.5));
      return `CASE WHEN t.words @@ ${query(phrase(term))} THEN $${values.push(weight)}::float8 ELSE 0 END`;
    })
    .join(' + ');
  const rows = await sql.all(
    `SELECT t.seq AS seq FROM memory_chat_history AS t WHERE t.words @@ ${any} AND ${conditions}
     ORDER BY ${rank} DESC, length(t.words), t.seq DESC LIMIT $${values.push(limit)}`,
    values,
  );
  return rows.map((row) => number(row, 'seq'));
}
