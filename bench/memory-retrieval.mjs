// Quality of search: `npm run bench memory-retrieval`. Questions are taken from documents by stated rules, and the page
// that a question was taken from should be among the first five results at the default `minScore`; forty questions about
// other subjects should find nothing. Reference rankings of the same chunks stand beside it (memory/reference.mjs).
//
//   --docs NAME=FOLDER  a documentation set, such as a checkout of a project's docs (memory/documentation.mjs); repeatable
//   --model FOLDER      an ONNX model, in addition to the built-in embedder
//   --cache FOLDER      keeps the model's vectors for later runs
//   --development       the corpora for trying changes, instead of those that nothing was fitted to
//   --postgres URL      the store in a PostgreSQL with pgvector, in a namespace that is deleted after each set
//   --misses            lists what was not found
//   --only-docs         leaves out the packages and manuals that are installed anyway (memory/corpora.mjs)
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ingestDocument } from '../src/adapter/memory/documents.ts';
import { EmbeddingQueue } from '../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../src/adapter/memory/embed/hash-embedder.ts';
import { createOnnxEmbedder } from '../src/adapter/memory/embed/onnx/onnx-embedder.ts';
import { openStore } from '../src/adapter/memory/open-store.ts';
import { search } from '../src/adapter/memory/search/search.ts';
import { createLog } from '../src/core/log.ts';
import { cachedEmbedder } from './memory/cached-embedder.mjs';
import { DEVELOPMENT, HELD_OUT } from './memory/corpora.mjs';
import { documentationSet } from './memory/documentation.mjs';
import { OFF_TOPIC } from './memory/questions.mjs';
import { createReference } from './memory/reference.mjs';

const LIMIT = 5;
const MIN_SCORE = 0.7;
const PAGE = 1000;
const HOUR = 3_600_000;
const NAMESPACE = 'bench-retrieval';

const { values } = parseArgs({
  options: {
    docs: { type: 'string', multiple: true, default: [] },
    model: { type: 'string' },
    cache: { type: 'string' },
    development: { type: 'boolean', default: false },
    'only-docs': { type: 'boolean', default: false },
    postgres: { type: 'string' },
    misses: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const say = (line) => void process.stdout.write(`${line}\n`);
const log = createLog({ write: () => undefined }, 'error', 'text');

/** Recall at five and mean reciprocal rank of one ranking. */
class Tally {
  found = 0;
  reciprocal = 0;
  asked = 0;

  /** @param files of the results, best first */
  count(files, expected) {
    this.asked += 1;
    const rank = files.slice(0, LIMIT).findIndex((file) => expected.includes(file));
    if (rank === -1) return false;
    this.found += 1;
    this.reciprocal += 1 / (rank + 1);
    return true;
  }

  toString() {
    return `${(this.found / this.asked).toFixed(3)} / ${(this.reciprocal / this.asked).toFixed(3)}`;
  }
}

/** Figures of all rankings, by name, as recall / MRR; of the product also by kind of question. */
async function measure({ name, pages, questions }, embedder, label) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agctl-retrieval-'));
  const opened = await openStore({ dataDir, databaseUrl: values.postgres, log });
  const store = opened.namespace(NAMESPACE);
  const embeddings = new EmbeddingQueue({ store, embedder, log });
  try {
    for (const { file, title, rest } of pages)
      await ingestDocument({ store, embedder }, { title, content: rest, source: file });
    await embeddings.settled(HOUR);
    const chunks = await chunksOf(store);
    if (!embedder.isImmediate) await addVectors(chunks, embedder);
    const reference = createReference(chunks);
    const tallies = new Map();
    const tally = (key) => tallies.get(key) ?? tallies.set(key, new Tally()).get(key);
    const times = [];
    let leaked = 0;
    for (const { kind, question, files } of questions) {
      const vector = embedder.isImmediate ? undefined : await embedder.embedQuery(question);
      for (const [ranking, rank] of Object.entries(reference.rankings))
        tally(ranking).count(
          rank(question, vector).map((row) => chunks[row].file),
          files,
        );
      const ask = (minScore) =>
        search({ store, embedder, embeddings }, { query: question, limit: LIMIT, minScore });
      const { results, tookMs, hint } = await ask(MIN_SCORE);
      times.push(tookMs);
      const own = results.map(({ metadata }) => metadata.source);
      const isFound = tally(label).count(own, files);
      tally(`${label}: ${kind}`).count(own, files);
      tally(`${label} without minScore`).count(
        (await ask(0)).results.map(({ metadata }) => metadata.source),
        files,
      );
      if (values.misses && !isFound)
        say(`missed  ${kind} ${question.slice(0, 100)} [${files}] ${hint ?? own}`);
    }
    for (const question of OFF_TOPIC) {
      const { count, results } = await search(
        { store, embedder, embeddings },
        { query: question, limit: LIMIT, minScore: MIN_SCORE },
      );
      leaked += count > 0;
      if (values.misses && count > 0) say(`leaked  ${question}: ${results[0].score} ${results[0].name}`);
    }
    reference.close();
    times.sort((a, b) => a - b);
    const rows = [...tallies].map(([ranking, figures]) => ({
      set: name,
      questions: figures.asked,
      chunks: chunks.length,
      ranking,
      'recall@5 / MRR': String(figures),
    }));
    rows.push({
      set: name,
      ranking: `${label}: off topic of ${OFF_TOPIC.length} with results`,
      'recall@5 / MRR': leaked,
    });
    rows.push({ set: name, ranking: `${label}: ms p50`, 'recall@5 / MRR': times[times.length >> 1] });
    return rows;
  } finally {
    await embeddings.close();
    await opened.removeNamespace(NAMESPACE);
    await opened.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function chunksOf(store) {
  const chunks = [];
  for (let cursor; ; ) {
    const page = await store.topology({ types: ['doc_chunk'], limit: PAGE, cursor });
    chunks.push(...(await store.entities(page.nodes.map(({ id }) => id))));
    cursor = page.nextCursor ?? undefined;
    if (cursor === undefined) return chunks.map((chunk) => ({ ...chunk, file: chunk.metadata.source }));
  }
}

async function addVectors(chunks, embedder) {
  const { embeddedText } = await import('../src/adapter/memory/embed/embedder.ts');
  const vectors = await embedder.embed(chunks.map(embeddedText));
  for (const [index, vector] of vectors.entries()) chunks[index].vector = vector;
}

/** Sets of installed packages: one question per page. */
function installedSets() {
  return Object.entries(values.development ? DEVELOPMENT : HELD_OUT).flatMap(([kind, corpora]) =>
    Object.entries(corpora).flatMap(([name, load]) => {
      const pages = load();
      if (pages.length === 0) say(`${name}: SKIPPED, it is not installed here`);
      const questions = pages.map(({ file, question }) => ({ kind, question, files: [file] }));
      return pages.length === 0 ? [] : [{ name: `${name} (${kind})`, pages, questions }];
    }),
  );
}

const sets = [
  ...values.docs.map((given) => documentationSet(...given.split('='))),
  ...(values['only-docs'] ? [] : installedSets()),
];
const model = values.model === undefined ? undefined : await createOnnxEmbedder(values.model);
const rows = [];
for (const set of sets) {
  rows.push(...(await measure(set, createHashEmbedder(), 'built-in')));
  if (model !== undefined)
    rows.push(...(await measure(set, cachedEmbedder(model, values.cache), 'with model')));
}
await model?.close();
console.table(rows);
if (values.json) writeFileSync('memory-retrieval.json', JSON.stringify(rows, undefined, 2));
