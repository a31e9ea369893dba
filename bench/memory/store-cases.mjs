// The measurements of one store.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createDocsSync } from '../../src/adapter/memory/docs-sync.ts';
import { createHashEmbedder } from '../../src/adapter/memory/embed/hash-embedder.ts';
import { walkGraph } from '../../src/adapter/memory/graph.ts';
import { search } from '../../src/adapter/memory/search/search.ts';
import { MEMORY_STORE_LIMITS } from '../../src/core/memory-limits.ts';
import { EMBEDDER, StoreData } from './store-data.mjs';

const PROGRESS = 5_000;
const WARM_UP = 200;

/** Wall-clock time, and CPU time of this process: on a busy machine, only the latter can be compared. */
async function timed(times, task) {
  const taken = [];
  const before = process.cpuUsage();
  for (let n = 0; n < times; n++) {
    const started = performance.now();
    await task(n);
    taken.push(performance.now() - started);
  }
  const { user, system } = process.cpuUsage(before);
  taken.sort((a, b) => a - b);
  const at = (share) => taken[Math.min(taken.length - 1, Math.floor(taken.length * share))].toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, CPU ${((user + system) / 1000 / times).toFixed(2)} ms`;
}

async function duration(task) {
  const started = performance.now();
  await task();
  return performance.now() - started;
}

/** Reports progress at intervals; starts again with the first item. */
function progress(name, what, total) {
  let started = 0;
  let next = 0;
  return (done) => {
    const now = performance.now();
    if (done <= 1) {
      started = now;
      next = now + PROGRESS;
    }
    if (now < next) return;
    next = now + PROGRESS;
    const rate = done / ((now - started) / 1000);
    const left = `${((total - done) / rate).toFixed(0)} s left`;
    process.stderr.write(`${name}: ${what} ${done} of ${total}, ${rate.toFixed(0)}/s, ${left}\n`);
  };
}

/** Several documents concurrently, as in a sync. In seconds, including the generation of the documents. */
async function fill(name, store, data) {
  const report = progress(name, 'entities', data.count);
  report(0);
  let next = 0;
  let done = 0;
  const lane = async () => {
    while (next < data.documentCount) {
      await store.putDocument(data.document(next++));
      done += data.perDocument;
      report(done);
    }
  };
  const lanes = () => Array.from({ length: MEMORY_STORE_LIMITS.syncConcurrency }, lane);
  return (await duration(() => Promise.all(lanes()))) / 1000;
}

/** The built-in embedder, whose vector of every query is this one. */
const withVector = (vector) => ({
  ...createHashEmbedder(),
  id: EMBEDDER,
  embedQuery: async () => vector,
  embed: async () => [vector],
});

/**
 * The docs folder, still empty: the first sync records the embedder, so that later ones embed nothing that is already
 * stored.
 */
async function docsFolder(name, store, { files, folder }) {
  const docs = join(folder, 'docs');
  mkdirSync(docs);
  const report = progress(name, 'documents', files);
  const sync = createDocsSync(
    { store, embedder: { ...createHashEmbedder(), id: EMBEDDER } },
    { folder: docs, progress: ({ scanned }) => report(scanned) },
  );
  await sync.run();
  return { docs, sync };
}

async function syncs({ docs, sync }, data, files, say) {
  for (let n = 0; n < files; n++) writeFileSync(join(docs, `file-${n}.md`), data.markdown(n));
  for (const what of ['new', 'unchanged']) {
    const { state, added, unchanged, durationMs, embedded } = await sync.run();
    if (state !== 'done' || added + unchanged !== files) throw new Error(`the sync ended as ${state}`);
    const rate = ((files / durationMs) * 1000).toFixed(0);
    say(`docs folder, ${files} ${what} documents, ${embedded} chunks`, `${rate} documents/s`);
  }
}

function residentMegabytes() {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0;
  return Math.round(Number(kilobytes) / 1024);
}

async function turns(store, say) {
  const turn = (n) => ({
    sessionId: `s${n % 20}`,
    agentId: 'bench',
    role: 'user',
    content: `turn ${n} ${'x'.repeat(200)}`,
  });
  say('durable turn, one caller', await timed(500, (n) => store.appendTurn(turn(n))));
  const taken = await duration(() =>
    Promise.all(
      Array.from({ length: 32 }, async (_, caller) => {
        for (let n = 0; n < 100; n++) await store.appendTurn(turn(caller));
      }),
    ),
  );
  say('durable turns, 32 callers', `${(3_200 / (taken / 1000)).toFixed(0)}/s`);
}

async function searches(store, data, say) {
  const queries = Array.from({ length: 50 }, () => data.vector());
  const first = await duration(() => store.nearest(queries[0], EMBEDDER, { limit: 5 }));
  say('first search by vector (SQLite reads them)', `${first.toFixed(0)} ms`);
  const byVector = (n) => store.nearest(queries[n % 50], EMBEDDER, { limit: 5 });
  say(`search by vector, best 5 of ${data.count}`, await timed(300, byVector));
  const words = () => [0, 1, 2].map(() => data.word());
  say('search by three words, best 50', await timed(100, () => store.lexical(words(), { limit: 50 })));
  const embedder = (n) => withVector(queries[n % 50]);
  const whole = (n) =>
    search({ store, embedder: embedder(n) }, { query: words().join(' '), limit: 5, minScore: 0 });
  say('first search_knowledge (learns from a sample)', `${(await duration(() => whole(0))).toFixed(0)} ms`);
  // For the compiler and the statements' plans, as in a service that runs.
  await timed(WARM_UP, whole);
  say('search_knowledge, three words, best 5', await timed(400, whole));
}

/** Prints one line per figure. */
export async function measureStore(name, store, size) {
  const data = new StoreData(size.entities, size.perDocument);
  const say = (what, result) => process.stdout.write(`${name.padEnd(9)} ${what.padEnd(52)} ${result}\n`);
  const empty = residentMegabytes();
  const folder = await docsFolder(name, store, size);
  const seconds = await fill(name, store, data);
  say(
    `insert ${size.entities} entities, ${4 * size.entities} relations, ${size.perDocument} a commit`,
    `${(size.entities / seconds).toFixed(0)} entities/s`,
  );
  await searches(store, data, say);
  const walk = () => walkGraph(store, { entityId: data.chunkId(), maxDepth: 2 });
  say('query_graph, depth 2, at most 200 nodes', await timed(100, walk));
  await turns(store, say);
  await syncs(folder, data, size.files, say);
  const { bytes } = await store.stats();
  say(
    'memory of this process before and now; on disk',
    `${empty}, ${residentMegabytes()} MB; ${Math.round(bytes / 2 ** 20)} MB`,
  );
}

/**
 * Two namespaces with as many entities each, searched in turn, so that neither stays in the processor's caches alone.
 * Goals: a median of at most 10 ms on SQLite and 5 ms on PostgreSQL. `bulk` may prepare for many insertions.
 */
export async function measureNamespaces(name, store, size, bulk = (task) => task()) {
  const say = (what, result) => process.stdout.write(`${name.padEnd(9)} ${what.padEnd(52)} ${result}\n`);
  const spaces = [];
  for (const namespace of ['one', 'two']) {
    const data = new StoreData(size.entities, size.perDocument);
    const space = store.namespace(namespace);
    // The namespace and its indexes come into being with the first document.
    await space.putDocument(data.document(0));
    await bulk(() => fill(`${name} ${namespace}`, space, data));
    spaces.push({ space, data, queries: Array.from({ length: 50 }, () => data.vector()) });
  }
  const turn = (n) => spaces[n % 2];
  const byVector = (n) => turn(n).space.nearest(turn(n).queries[n % 50], EMBEDDER, { limit: 5 });
  for (let n = 0; n < 10; n++) await byVector(n);
  say(`two namespaces of ${size.entities}: search by vector`, await timed(300, byVector));
  const words = (n) => [0, 1, 2].map(() => turn(n).data.word());
  const whole = (n) =>
    search(
      {
        store: turn(n).space,
        embedder: withVector(turn(n).queries[n % 50]),
      },
      { query: words(n).join(' '), limit: 5, minScore: 0 },
    );
  // For the compiler and the statements' plans, as in a service that runs.
  await timed(WARM_UP, whole);
  say('two namespaces: search_knowledge, three words', await timed(400, whole));
  const started = performance.now();
  await store.removeNamespace('one');
  say('deletion of a namespace', `${(performance.now() - started).toFixed(0)} ms`);
}
