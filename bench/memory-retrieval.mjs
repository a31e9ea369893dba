// Quality of search: `npm run bench memory-retrieval`. Questions are taken from documents by stated rules, and the page
// that a question was taken from should be among the first five results at the default `minScore`; forty questions about
// other subjects should find nothing. Reference rankings of the same chunks stand beside it (memory/reference.mjs).
//
//   --corpus FOLDER --questions FILE
//                       any folder of texts, with `[[question, [page, …]], …]` (memory/corpus.mjs); both repeatable, and
//                       then nothing else is measured
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
import { corpusSet } from './memory/corpus.mjs';
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
    corpus: { type: 'string', multiple: true, default: [] },
    questions: { type: 'string', multiple: true, default: [] },
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

/** Figures of one ranking: of questions that have an answer, and of those that have none. */
class Tally {
  asked = 0;
  found = 0;
  reciprocal = 0;
  empty = 0;
  unanswerable = 0;
  answered = 0;

  /** @param files of the results, best first */
  count(files, expected) {
    this.asked += 1;
    this.empty += files.length === 0;
    const rank = files.slice(0, LIMIT).findIndex((file) => expected.includes(file));
    if (rank === -1) return false;
    this.found += 1;
    this.reciprocal += 1 / (rank + 1);
    return true;
  }

  countOffTopic(files) {
    this.unanswerable += 1;
    this.answered += files.length > 0;
  }

  row() {
    const share = (count) => (count / this.asked).toFixed(3);
    return {
      'recall@5': share(this.found),
      MRR: share(this.reciprocal),
      empty: `${this.empty} of ${this.asked}`,
      'off topic, with results': this.unanswerable === 0 ? '' : `${this.answered} of ${this.unanswerable}`,
    };
  }
}

/** Rows of all rankings. */
async function measure({ name, pages, questions, offTopic = OFF_TOPIC }, embedder, label) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agctl-retrieval-'));
  const opened = await openStore({ dataDir, databaseUrl: values.postgres, log });
  const store = opened.namespace(NAMESPACE);
  const embeddings = new EmbeddingQueue({ store, embedder, log });
  try {
    for (const { file, title, rest } of pages)
      await ingestDocument({ store, embedder }, { title, content: rest, source: file });
    await embeddings.settled(HOUR);
    const chunks = await chunksOf(store);
    await addVectors(chunks, embedder);
    const reference = createReference(chunks);
    const tallies = new Map();
    const tally = (key) => tallies.get(key) ?? tallies.set(key, new Tally()).get(key);
    const times = [];
    const ask = async (query, minScore) =>
      search({ store, embedder, embeddings }, { query, limit: LIMIT, minScore });
    const pagesOf = ({ results }) => results.map(({ metadata }) => metadata.source);
    const referencePages = async (question, use) => {
      const vector = await embedder.embedQuery(question);
      for (const [ranking, rank] of Object.entries(reference.rankings))
        use(
          tally(ranking),
          rank(question, vector).map((row) => chunks[row].file),
        );
    };
    const kinds = new Set(questions.map(({ kind }) => kind));
    for (const { kind, question, files } of questions) {
      await referencePages(question, (one, found) => one.count(found, files));
      const reply = await ask(question, MIN_SCORE);
      times.push(reply.tookMs);
      const isFound = tally(label).count(pagesOf(reply), files);
      if (kinds.size > 1) tally(`${label}: ${kind}`).count(pagesOf(reply), files);
      tally(`${label} without minScore`).count(pagesOf(await ask(question, 0)), files);
      if (values.misses && !isFound)
        say(`missed  ${kind} ${question.slice(0, 100)} [${files}] ${reply.hint ?? pagesOf(reply)}`);
    }
    for (const question of offTopic) {
      await referencePages(question, (one, found) => one.countOffTopic(found));
      const reply = await ask(question, MIN_SCORE);
      tally(label).countOffTopic(pagesOf(reply));
      if (values.misses && reply.count > 0)
        say(`leaked  ${question}: ${reply.results[0].score} ${reply.results[0].name}`);
    }
    reference.close();
    times.sort((a, b) => a - b);
    return [...tallies].map(([ranking, figures]) => ({
      set: name,
      chunks: chunks.length,
      ranking,
      ...figures.row(),
      'ms p50': ranking === label ? times[times.length >> 1] : '',
    }));
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

if (values.corpus.length !== values.questions.length)
  throw new Error('--corpus and --questions belong together: give each corpus its questions');
const sets = [
  ...values.corpus.map((folder, index) => corpusSet(folder, values.questions[index], OFF_TOPIC)),
  ...values.docs.map((given) => documentationSet(...given.split('='))),
  ...(values['only-docs'] || values.corpus.length > 0 ? [] : installedSets()),
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
