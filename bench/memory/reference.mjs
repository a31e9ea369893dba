// What results are compared with: plain SQLite FTS5, also with trigrams and with each page once, BM25 with field weights,
// the cosine of the embedder, and reciprocal rank fusion (Cormack et al., SIGIR 2009, k = 60) of the two. Each ranks the
// same chunks, without thresholds.
import { DatabaseSync } from 'node:sqlite';

const K = 60;
const CANDIDATES = 50;

/** @param chunks with `title`, `heading`, `searchText`, and `vector` for the rankings by cosine */
export function createReference(chunks) {
  const database = new DatabaseSync(':memory:');
  database.exec(`
    CREATE VIRTUAL TABLE plain USING fts5 (text, tokenize = 'porter unicode61');
    CREATE VIRTUAL TABLE trigrams USING fts5 (text, tokenize = 'trigram');
    CREATE VIRTUAL TABLE fields USING fts5 (title, heading, text, tokenize = 'porter unicode61');
    BEGIN`);
  const plain = database.prepare('INSERT INTO plain (rowid, text) VALUES (?, ?)');
  const trigrams = database.prepare('INSERT INTO trigrams (rowid, text) VALUES (?, ?)');
  const fields = database.prepare('INSERT INTO fields (rowid, title, heading, text) VALUES (?, ?, ?, ?)');
  for (const [row, { title, heading, searchText }] of chunks.entries()) {
    const text = [title, heading, searchText].filter(Boolean).join('\n');
    plain.run(row, text);
    trigrams.run(row, text);
    fields.run(row, title, heading, searchText);
  }
  database.exec('COMMIT');
  const byPlain = database.prepare('SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?');
  const byTrigrams = database.prepare(
    'SELECT rowid FROM trigrams WHERE trigrams MATCH ? ORDER BY rank LIMIT ?',
  );
  const byFields = database.prepare(
    'SELECT rowid FROM fields WHERE fields MATCH ? ORDER BY bm25(fields, 4, 2, 1) LIMIT ?',
  );
  const words = (statement, question) =>
    matching(statement, question.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? []);
  const byLetters = (question) => {
    const letters = [...question.toLowerCase()];
    return matching(
      byTrigrams,
      letters.slice(2).map((_, index) => letters.slice(index, index + 3).join('')),
    );
  };
  const matching = (statement, found) => {
    const terms = [...new Set(found)];
    if (terms.length === 0) return [];
    const query = terms.map((term) => `"${term.replaceAll('"', '""')}"`).join(' OR ');
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
  const eachPageOnce = (rows) => {
    const seen = new Set();
    return rows.filter((row) => !seen.has(chunks[row].file) && seen.add(chunks[row].file));
  };
  /** Rankings by name, each a function of the question and its vector. */
  const rankings = {
    FTS5: (question) => words(byPlain, question),
    'FTS5, each page once': (question) => eachPageOnce(words(byPlain, question)),
    'FTS5 trigrams': byLetters,
    'BM25 with fields': (question) => words(byFields, question),
  };
  if (chunks[0]?.vector !== undefined)
    Object.assign(rankings, {
      cosine: (_, vector) => nearest(vector),
      'RRF of cosine and FTS5': (question, vector) => fused(words(byPlain, question), nearest(vector)),
      'RRF of cosine and BM25 with fields': (question, vector) =>
        fused(words(byFields, question), nearest(vector)),
    });
  return { rankings, close: () => database.close() };
}

function dot(a, b) {
  let sum = 0;
  for (let index = 0; index < a.length; index += 1) sum += a[index] * b[index];
  return sum;
}
