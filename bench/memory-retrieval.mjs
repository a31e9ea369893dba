// Quality of search: `npm run bench memory-retrieval`. Pages are the Markdown documents of packages that are installed
// anyway, and npm's manual; nothing in the product was fitted to them. A sentence that describes a page is removed from
// it and used as query: its first sentence, or the description that its author wrote for other places. The page should
// be among the first five chunks. In addition, forty questions about other subjects should find nothing. `--
// --development` uses the corpora for trying changes; `-- --misses` lists what was not found.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ingestDocument } from '../src/adapter/memory/documents.ts';
import { createHashEmbedder } from '../src/adapter/memory/embed/hash-embedder.ts';
import { openStore } from '../src/adapter/memory/open-store.ts';
import { queryWords } from '../src/adapter/memory/search/score.ts';
import { search } from '../src/adapter/memory/search/search.ts';
import { createLog } from '../src/core/log.ts';
import { MEMORY_STORE_LIMITS } from '../src/core/memory-limits.ts';
import { DEVELOPMENT, HELD_OUT } from './memory/corpora.mjs';
import { OFF_TOPIC } from './memory/questions.mjs';

const LIMIT = 5;
const MIN_SCORE = 0.7;

const { values } = parseArgs({
  options: {
    development: { type: 'boolean', default: false },
    misses: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

/**
 * Share of the pages found: at the default threshold, without one, by the word index alone, by the cosine alone at 0.7.
 */
async function measure(name, pages) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agctl-retrieval-'));
  const log = createLog({ write: () => undefined }, 'error', 'text');
  const store = await openStore({ dataDir, log });
  const embedder = createHashEmbedder();
  try {
    let chunks = 0;
    for (const { file, title, rest } of pages)
      chunks += (await ingestDocument({ store, embedder }, { title, content: rest, source: file })).chunks;
    const byWords = async (query) => {
      const terms = queryWords(query, MEMORY_STORE_LIMITS.queryWords).map(({ word }) => word);
      return store.entities((await store.lexical(terms, { limit: LIMIT })).map(({ id }) => id));
    };
    const ask = (query, minScore) => search({ store, embedder }, { query, limit: LIMIT, minScore });
    const counts = { found: 0, ranked: 0, words: 0, cosine: 0, offTopic: 0 };
    const times = [];
    for (const { file, question } of pages) {
      const { results, tookMs } = await ask(question, 0);
      times.push(tookMs);
      const own = results.filter(({ metadata }) => metadata.source === file);
      const isFound = own.some(({ score }) => score >= MIN_SCORE);
      counts.ranked += own.length > 0;
      counts.words += (await byWords(question)).some(({ metadata }) => metadata.source === file);
      counts.found += isFound;
      counts.cosine += own.some(({ cosine }) => cosine >= MIN_SCORE);
      if (values.misses && !isFound) sayMissed(file, question, results, own);
    }
    for (const question of OFF_TOPIC) {
      const { count, results } = await ask(question, MIN_SCORE);
      counts.offTopic += count > 0;
      if (values.misses && count > 0) say(`leaked  ${question}: ${results[0].score} ${results[0].name}`);
    }
    times.sort((a, b) => a - b);
    const share = (count) => (count / pages.length).toFixed(3);
    return {
      corpus: name,
      pages: pages.length,
      chunks,
      'recall@5': share(counts.found),
      'without threshold': share(counts.ranked),
      'BM25 alone': share(counts.words),
      'cosine >= 0.7 alone': share(counts.cosine),
      [`off topic of ${OFF_TOPIC.length}`]: counts.offTopic,
      'ms p50': times[times.length >> 1],
    };
  } finally {
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function sayMissed(file, question, results, own) {
  const instead = results.map(({ name, score }) => `${score.toFixed(2)} ${name.slice(0, 25)}`).join(' | ');
  const best = own[0] === undefined ? 'not among five' : `score ${own[0].score.toFixed(2)}`;
  say(`missed  ${file}: ${question.slice(0, 120)} (${best}) [${instead}]`);
}

const say = (line) => void process.stdout.write(`${line}\n`);

const rows = [];
for (const [asked, corpora] of Object.entries(values.development ? DEVELOPMENT : HELD_OUT)) {
  const all = [];
  for (const [name, load] of Object.entries(corpora)) {
    const pages = load();
    if (pages.length === 0) {
      say(`${name}: SKIPPED, it is not installed here`);
      continue;
    }
    all.push(...pages);
    rows.push({ asked, ...(await measure(name, pages)) });
  }
  if (Object.keys(corpora).length > 1) rows.push({ asked, ...(await measure('all together', all)) });
}
console.table(rows);
if (values.json) writeFileSync('memory-retrieval.json', JSON.stringify(rows, undefined, 2));
