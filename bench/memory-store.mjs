// npm run bench memory-store [-- --entities 100000 --postgres URL]
// The stores: search, durable writes, graph. Bar: a search of 100,000 × 128 at most 15 ms at the median.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openPostgresStore } from '../src/adapter/memory/postgres/open.ts';
import { openSqliteStore } from '../src/adapter/memory/sqlite/open.ts';

const EMBEDDER = 'bench/128';
const PER_DOCUMENT = 100;
const CLUSTERS = 1_000;
const WORDS = Array.from({ length: 5_000 }, (_, n) => `word${n.toString(36)}`);
const log = Object.fromEntries(
  ['error', 'warn', 'info', 'debug', 'trace'].map((level) => [level, () => undefined]),
);

/** The same numbers in every run. */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function vectorNear(centre, random) {
  const vector = centre.map((value) => value + (random() - 0.5) * 0.12);
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

function* documents(count, centres, random) {
  for (let number = 0; number * PER_DOCUMENT < count; number++) {
    const id = (part) => `bench:${number}:${part}`;
    const file = {
      id: id('file'),
      name: `doc ${number}`,
      type: 'doc_file',
      content: '',
      metadata: {},
      searchText: '',
    };
    const chunks = Array.from({ length: PER_DOCUMENT }, (_, part) => {
      // Squared: few words are common, most are rare, as in prose.
      const text = Array.from({ length: 80 }, () => WORDS[Math.floor(random() ** 2 * WORDS.length)]).join(
        ' ',
      );
      const embedding = vectorNear(centres[Math.floor(random() * CLUSTERS)], random);
      const metadata = { source: `doc ${number}`, ordinal: part };
      return {
        id: id(part),
        name: `doc ${number} > ${part}`,
        type: 'doc_chunk',
        content: text,
        metadata,
        searchText: text,
        embedding,
      };
    });
    const other = () =>
      `bench:${Math.floor((random() * count) / PER_DOCUMENT)}:${Math.floor(random() * PER_DOCUMENT)}`;
    const relations = chunks.flatMap(({ id: fromId }) => [
      { fromId, toId: file.id, relationType: 'BELONGS_TO', weight: 1 },
      ...[0.9, 0.6, 0.3].map((weight) => ({ fromId, toId: other(), relationType: 'REFERENCES', weight })),
    ]);
    yield {
      key: `doc ${number}`,
      origin: 'ingest',
      hash: `${number}`,
      embedder: EMBEDDER,
      entities: [file, ...chunks],
      relations,
    };
  }
}

async function timed(times, task) {
  const taken = [];
  for (let n = 0; n < times; n++) {
    const started = performance.now();
    await task(n);
    taken.push(performance.now() - started);
  }
  taken.sort((a, b) => a - b);
  const at = (share) => taken[Math.min(taken.length - 1, Math.floor(taken.length * share))].toFixed(2);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

/** Breadth first, a query a level, as the backend walks: 500 nodes and 2,000 edges at most. */
async function walk(store, root, depth) {
  const seen = new Set([root]);
  let level = [root];
  for (let n = 0; n < depth && level.length > 0 && seen.size < 500; n++) {
    const edges = await store.edges(level, 'both', 2_000);
    level = [...new Set(edges.flatMap(({ fromId, toId }) => [fromId, toId]))]
      .filter((id) => !seen.has(id))
      .slice(0, 500);
    for (const id of level) seen.add(id);
  }
  return seen.size;
}

function residentMegabytes() {
  return Math.round(
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? 0) / 1024,
  );
}

async function measure(name, store, count) {
  const random = randomFrom(7);
  const centres = Array.from({ length: CLUSTERS }, () =>
    vectorNear(
      new Float32Array(128).map(() => random() - 0.5),
      random,
    ),
  );
  const say = (what, result) => print(`${name.padEnd(9)} ${what.padEnd(46)} ${result}`);
  let started = performance.now();
  let edges = 0;
  for (const document of documents(count, centres, random)) {
    await store.putDocument(document);
    edges += document.relations.length;
  }
  const seconds = (performance.now() - started) / 1000;
  say(`load ${count} entities, ${edges} edges`, `${(count / seconds).toFixed(0)} entities/s`);
  const queries = Array.from({ length: 50 }, () =>
    vectorNear(centres[Math.floor(random() * CLUSTERS)], random),
  );
  started = performance.now();
  await store.nearest(queries[0], EMBEDDER, { limit: 5 });
  say('first search (reads the vectors)', `${(performance.now() - started).toFixed(0)} ms`);
  say(
    `search, best 5 of ${count}`,
    await timed(300, (n) => store.nearest(queries[n % 50], EMBEDDER, { limit: 5 })),
  );
  const threeWords = () => [0, 1, 2].map(() => WORDS[Math.floor(random() * WORDS.length)]);
  say('search by three words, best 50', await timed(100, () => store.lexical(threeWords(), { limit: 50 })));
  const root = () =>
    `bench:${Math.floor((random() * count) / PER_DOCUMENT)}:${Math.floor(random() * PER_DOCUMENT)}`;
  say('graph, depth 2, both directions', await timed(100, () => walk(store, root(), 2)));
  const turn = (n) => ({
    sessionId: `s${n % 20}`,
    agentId: 'bench',
    role: 'user',
    content: `turn ${n} ${'x'.repeat(200)}`,
  });
  say('durable turn, one caller', await timed(500, (n) => store.appendTurn(turn(n))));
  started = performance.now();
  await Promise.all(
    Array.from({ length: 32 }, async (_, caller) => {
      for (let n = 0; n < 100; n++) await store.appendTurn(turn(caller));
    }),
  );
  say('durable turns, 32 callers', `${(3_200 / ((performance.now() - started) / 1000)).toFixed(0)}/s`);
  say(
    'memory of this process; on disk',
    `${residentMegabytes()} MB; ${Math.round((await store.stats()).bytes / 2 ** 20)} MB`,
  );
}

const print = (line) => void process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    entities: { type: 'string', default: '100000' },
    postgres: { type: 'string', default: '' },
  },
});
const entities = Number(values.entities);

async function sqlite(folder) {
  const path = join(folder, 'store.db');
  let store = await openSqliteStore({ path, log });
  await measure('sqlite', store, entities);
  await store.close();
  const started = performance.now();
  store = await openSqliteStore({ path, log });
  print(`sqlite    opened again${' '.repeat(34)} ${(performance.now() - started).toFixed(0)} ms`);
  await store.close();
}

async function postgres(url) {
  if (url === '') return print('postgres  SKIPPED: no --postgres URL of an empty database');
  const store = await openPostgresStore({ url, log });
  await measure('postgres', store, entities);
  await store.close();
}

const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-memory-'));
try {
  await sqlite(folder);
  await postgres(values.postgres);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
