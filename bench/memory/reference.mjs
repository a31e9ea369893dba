// What results are compared with: plain SQLite FTS5, BM25 with field weights, the cosine of a model, and reciprocal rank
// fusion (Cormack et al., SIGIR 2009, k = 60) of the two. Each ranks the same chunks, without thresholds.
import { DatabaseSync } from 'node:sqlite';

const K = 60;
const CANDIDATES = 50;

/** @param chunks with `title`, `heading`, `searchText`, and `vector` for the rankings by cosine */
export function createReference(chunks) {
  const database = new DatabaseSync(':memory:');
  database.exec(`
    CREATE VIRTUAL TABLE plain USING fts5 (text, tokenize = 'porter unicode61');
    CREATE VIRTUAL TABLE fields USING fts5 (title, heading, text, tokenize = 'porter unicode61');
    BEGIN`);
  const plain = database.prepare('INSERT INTO plain (rowid, text) VALUES (?, ?)');
  const fields = database.prepare('INSERT INTO fields (rowid, title, heading, text) VALUES (?, ?, ?, ?)');
  for (const [row, { title, heading, searchText }] of chunks.entries()) {
    plain.run(row, [title, heading, searchText].filter(Boolean).join('\n'));
    fields.run(row, title, heading, searchText);
  }
  database.exec('COMMIT');
  const byPlain = database.prepare('SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?');
  const byFields = database.prepare(
    'SELECT rowid FROM fields WHERE fields MATCH ? ORDER BY bm25(fields, 4, 2, 1) LIMIT ?',
  );
  const words = (statement, question) => {
    const terms = [...new Set(question.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [])];
    if (terms.length === 0) return [];
    const query = terms.map((term) => `"${term}"`).join(' OR ');
    return statement.all(query, CANDIDATES).map(({ rowid }) => rowid);
  };
  const nearest = (vector) =>
    chunks
      .map((chunk, row) => [dot(vector, chunk.vector), row])
      .sort((a, b) => b[0] - a[0])
      .slice(0, CANDIDATES)
      .map(([, row]) => row);
  const fused = (...lists) => {
    const scores = new Map();
    for (const list of lists)
      for (const [rank, row] of list.entries()) scores.set(row, (scores.get(row) ?? 0) + 1 / (K + rank + 1));
    return [...scores].sort((a, b) => b[1] - a[1]).map(([row]) => row);
  };
  /** Rankings by name, each a function of the question and its vector. */
  const rankings = {
    FTS5: (question) => words(byPlain, question),
    'BM25 with fields': (question) => words(byFields, question),
  };
  if (chunks[0]?.vector !== undefined)
    Object.assign(rankings, {
      model: (_, vector) => nearest(vector),
      'model + FTS5': (question, vector) => fused(words(byPlain, question), nearest(vector)),
      'model + BM25 with fields': (question, vector) => fused(words(byFields, question), nearest(vector)),
    });
  return { rankings, close: () => database.close() };
}

function dot(a, b) {
  let sum = 0;
  for (let index = 0; index < a.length; index += 1) sum += a[index] * b[index];
  return sum;
}
