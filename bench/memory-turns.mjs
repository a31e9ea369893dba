// Whether a question about earlier conversations finds the turn that answers it, and the latest value first: `npm run
// bench memory-turns`. Recall at five: one of the turns that answer is among the first five. Latest first: of a value
// that changed, the turn with the newest value is found, and none with an older value is before it. `indexed` is with
// MEMORY_INDEX_CHAT. `marked` is, besides, with marks of exactly those turns that the questions say are outdated: the most that a
// language model for extraction can bring. With MEMORY_EXTRACTION_URL and MEMORY_EXTRACTION_MODEL, `extracted` is with the marks of that
// model instead.
//
//   --half NAME         another set of memory/conversations than `held-out`: `work`, which nothing was fitted to either, or
//                       `development` or `people`, which are for trying changes
//   --locomo FOLDER     LoCoMo as well (memory/conversations.mjs); --only A,B: only its files of these names
//   --model FOLDER      an ONNX model, in addition to the built-in embedder; --cache FOLDER keeps its vectors
//   --server-memory     @modelcontextprotocol/server-memory as well: an entity for each turn, found with search_nodes
//   --mem0 PYTHON       mem0 as well, in a Python that has the package mem0ai; needs --model
//   --postgres URL      the store in a PostgreSQL with pgvector
//   --misses            lists what was not found
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { indexTurn } from '../src/adapter/memory/chat-index.ts';
import { EmbeddingQueue } from '../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../src/adapter/memory/embed/hash-embedder.ts';
import { createOnnxEmbedder } from '../src/adapter/memory/embed/onnx/onnx-embedder.ts';
import { ExtractionQueue } from '../src/adapter/memory/extract/extraction-queue.ts';
import { extractorFrom } from '../src/adapter/memory/extract/from-environment.ts';
import { chatMessageId } from '../src/adapter/memory/ids.ts';
import { openStore } from '../src/adapter/memory/open-store.ts';
import { search } from '../src/adapter/memory/search/search.ts';
import { searchTurns } from '../src/adapter/memory/search/turns.ts';
import { createLog } from '../src/core/log.ts';
import { root } from './harness/processes.mjs';
import { cachedEmbedder } from './memory/cached-embedder.mjs';
import { connect } from './memory/client.mjs';
import { importedTurns, locomo, ownConversations } from './memory/conversations.mjs';
import { mem0Rankings } from './memory/mem0.mjs';

const LIMIT = 5;
const HOUR = 3_600_000;
const BATCH = 200;
const NAMESPACE = 'bench-turns';
const { values } = parseArgs({
  options: {
    half: { type: 'string', default: 'held-out' },
    locomo: { type: 'string' },
    only: { type: 'string' },
    model: { type: 'string' },
    cache: { type: 'string' },
    postgres: { type: 'string' },
    mem0: { type: 'string' },
    'server-memory': { type: 'boolean', default: false },
    misses: { type: 'boolean', default: false },
  },
});
const say = (line) => void process.stdout.write(`${line}\n`);
const log = createLog({ write: () => undefined }, 'error', 'text');

class Tally {
  asked = 0;
  found = 0;
  first = 0;
  changed = 0;
  latest = 0;
  empty = 0;

  /** @param labels of the results, best first */
  count(labels, { answers, replaced }) {
    const five = labels.slice(0, LIMIT);
    const rank = five.findIndex((label) => answers.includes(label));
    this.asked += 1;
    this.empty += labels.length === 0;
    this.found += rank !== -1;
    this.first += rank === 0;
    if (replaced.length === 0) return rank !== -1;
    this.changed += 1;
    const old = five.findIndex((label) => replaced.includes(label));
    const isLatest = rank !== -1 && (old === -1 || rank < old);
    this.latest += isLatest;
    return isLatest;
  }

  row() {
    const share = (count, of) => (of === 0 ? '' : (count / of).toFixed(3));
    return {
      questions: this.asked,
      'recall@5': share(this.found, this.asked),
      first: share(this.first, this.asked),
      'latest first': share(this.latest, this.changed),
      empty: this.empty,
    };
  }
}

/** Plain FTS5 over the turns: ranked by BM25, or only turns with all words, the newest first. */
function createReference(turns) {
  const database = new DatabaseSync(':memory:');
  database.exec("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'porter unicode61')");
  const insert = database.prepare('INSERT INTO words (rowid, text) VALUES (?, ?)');
  for (const [row, { content }] of turns.entries()) insert.run(row, content);
  const ranked = database.prepare('SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT 50');
  const newest = database.prepare('SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 50');
  const ask = (statement, question, operator) => {
    const terms = [...new Set(question.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [])];
    return statement
      .all(terms.map((term) => `"${term}"`).join(operator))
      .map(({ rowid }) => turns[rowid].label);
  };
  return {
    FTS5: (question) => ask(ranked, question, ' OR '),
    'FTS5, all words, newest first': (question) => ask(newest, question, ' AND '),
  };
}

/** The reference server finds entities that contain the whole query. */
async function measureServerMemory({ name, turns, questions }, tallies) {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-turns-'));
  const script = join(root, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js');
  const server = await connect([script], { MEMORY_FILE_PATH: join(folder, 'memory.jsonl') });
  try {
    await server.call('create_entities', {
      entities: turns.map(({ content }, index) => ({
        name: String(index),
        entityType: 'turn',
        observations: [content],
      })),
    });
    const key = `${name}\0server-memory`;
    const tally = tallies.get(key) ?? tallies.set(key, new Tally()).get(key);
    for (const asked of questions) {
      const { content } = await server.call('search_nodes', { query: asked.question });
      tally.count(
        JSON.parse(content[0].text).entities.map((entity) => turns[Number(entity.name)].label),
        asked,
      );
    }
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureMem0(set, embedder, tallies) {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-turns-'));
  try {
    const key = `${set.name}\0mem0 with model`;
    const tally = tallies.get(key) ?? tallies.set(key, new Tally()).get(key);
    const rankings = await mem0Rankings(set, embedder, values.mem0, folder);
    for (const [index, asked] of set.questions.entries())
      tally.count(
        rankings[index].map((turn) => set.turns[turn].label),
        asked,
      );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure({ name, turns, questions }, embedder, label, tallies) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agctl-turns-'));
  const opened = await openStore({ dataDir, databaseUrl: values.postgres, log });
  const store = opened.namespace(NAMESPACE);
  const embeddings = new EmbeddingQueue({ store, embedder, log });
  const searched = { store, embedder, embeddings };
  try {
    const lines = importedTurns(turns);
    for (let start = 0; start < lines.length; start += BATCH)
      await store.importBatch({
        entities: [],
        relations: [],
        documents: [],
        turns: lines.slice(start, start + BATCH),
      });
    const labels = new Map(lines.map(({ id }, index) => [id, turns[index].label]));
    const tally = (ranking) => {
      const key = `${name}\0${ranking}`;
      return tallies.get(key) ?? tallies.set(key, new Tally()).get(key);
    };
    const ask = async (ranking, asked) => {
      const found = await searchTurns(searched, { query: asked.question, limit: LIMIT });
      const isRight = tally(ranking).count(
        found.map(({ id }) => labels.get(id)),
        asked,
      );
      if (values.misses && !isRight) say(missed(asked, found, labels));
      return found.map(({ id }) => labels.get(id));
    };
    if (embedder.isImmediate) {
      const reference = createReference(turns);
      for (const asked of questions) {
        for (const [ranking, rank] of Object.entries(reference))
          tally(ranking).count(rank(asked.question), asked);
        tally(`${label}: ${asked.kind}`).count(await ask(label, asked), asked);
      }
    }
    for (const [index, line] of lines.entries()) await indexTurn(searched, { ...line, seq: index });
    await embeddings.settled(HOUR);
    for (const asked of questions) {
      const asDocuments = async (minScore) => {
        const request = { query: asked.question, limit: LIMIT, minScore, types: ['chat_message'] };
        return (await search(searched, request)).results.map(({ metadata }) => labels.get(metadata.turnId));
      };
      tally(`${label}, indexed, as documents`).count(await asDocuments(0.7), asked);
      const found = await ask(`${label}, indexed`, asked);
      if (!embedder.isImmediate) tally(`${label}, indexed: ${asked.kind}`).count(found, asked);
    }
    const extractor = extractorFrom(process.env);
    if (extractor === undefined) await mark(store, questions, labels);
    else await extracted(searched, extractor);
    for (const asked of questions)
      await ask(`${label}, indexed, ${extractor === undefined ? 'marked' : 'extracted'}`, asked);
  } finally {
    await embeddings.close();
    await opened.removeNamespace(NAMESPACE);
    await opened.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Lets the model read all turns. */
async function extracted(searched, extractor) {
  const queue = new ExtractionQueue({ searched, extractor, log });
  try {
    queue.wake();
    while ((await searched.store.unembeddedCount('extracted')) > 0) await delay(100);
  } finally {
    await queue.close();
    await extractor.close();
  }
}

/** Imports that the turns that answer make those with older values outdated. */
async function mark(store, questions, labels) {
  const ids = new Map([...labels].map(([id, label]) => [label, id]));
  const outdated = new Map();
  for (const { answers, replaced } of questions) {
    const later = chatMessageId(ids.get(answers.at(-1)));
    outdated.set(later, [...(outdated.get(later) ?? []), ...replaced.map((old) => ids.get(old))]);
  }
  const readTexts = new Map([...outdated].map(([id, ones]) => [id, { entities: [], outdated: ones }]));
  await store.importBatch({ entities: [], relations: [], turns: [], documents: [], readTexts });
}

function missed({ kind, question, answers, replaced }, found, labels) {
  const wanted = [answers.join(), ...replaced].join(' > ');
  const lines = found.map(({ seq, id, score, content, supersededBy = '' }) =>
    ['   ', seq, score, supersededBy, labels.get(id) ?? '', content.slice(0, 110)].join(' '),
  );
  return [`missed ${kind}: ${question} [${wanted}]`, ...lines].join('\n');
}

const only = values.only?.split(',');
const sets = [
  ownConversations(values.half),
  ...(values.locomo === undefined ? [] : locomo(values.locomo)).filter(
    ({ name }) => only === undefined || only.includes(name.replace('LoCoMo ', '')),
  ),
];
const model = values.model === undefined ? undefined : await createOnnxEmbedder(values.model);
const tallies = new Map();
for (const set of sets) {
  const shown = set.name.startsWith('LoCoMo') ? { ...set, name: 'LoCoMo' } : set;
  if (values['server-memory']) await measureServerMemory(shown, tallies);
  await measure(shown, createHashEmbedder(), 'built in', tallies);
  if (model === undefined) continue;
  const cached = cachedEmbedder(model, values.cache);
  await measure(shown, cached, 'with model', tallies);
  if (values.mem0 !== undefined) await measureMem0(shown, cached, tallies);
}
await model?.close();
console.table(
  [...tallies].map(([key, tally]) => {
    const [set, ranking] = key.split('\0');
    return { set, ranking, ...tally.row() };
  }),
);
