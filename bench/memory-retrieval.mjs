// How well search finds the right page: `npm run bench memory-retrieval`. Pages are the Markdown documents of packages
// that are installed anyway; nothing in the product was fitted to them. The first sentence of a page is taken out of
// it and asked for; the page should be among the first five chunks. Beside that, forty questions about other subjects
// should find nothing. `-- --corpus readmes` runs the corpus that changes may be tried on; `-- --misses` lists what
// was not found.
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ingestDocument } from '../src/adapter/memory/documents.ts';
import { createHashEmbedder } from '../src/adapter/memory/embed/hash-embedder.ts';
import { openStore } from '../src/adapter/memory/open-store.ts';
import { search } from '../src/adapter/memory/search/search.ts';
import { createLog } from '../src/core/log.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const HELD_OUT = {
  fastify: 'node_modules/fastify/docs/**/*.md',
  undici: 'node_modules/undici/docs/**/*.md',
  pino: 'node_modules/pino/docs/*.md',
};
const DEVELOPMENT = { readmes: 'node_modules/**/[Rr][Ee][Aa][Dd][Mm][Ee].md' };
const LIMIT = 5;
const MIN_SCORE = 0.7;
const PAGES = 300;

/** Written down before the first run, and not changed since. */
const OFF_TOPIC = [
  'How long should I boil an egg?',
  'best hiking trails in the Alps',
  'What is the capital of Mongolia?',
  'symptoms of vitamin D deficiency',
  'how to prune an apple tree in winter',
  'Who won the football world cup in 1998?',
  'recipe for sourdough bread',
  'cheap flights from Lisbon to Oslo',
  'how do vaccines work?',
  'difference between a cello and a double bass',
  'When did the Roman Empire fall?',
  'how to remove red wine stains from a carpet',
  'mortgage interest rates this year',
  'What do pandas eat?',
  'exercises against lower back pain',
  'Which planets have rings?',
  'how to write a letter of condolence',
  'learn to play chess openings',
  'tax deduction for working at home',
  'causes of the French Revolution',
  'how to train a puppy to sit',
  'What is the boiling point of ethanol?',
  'wedding speech for a brother',
  'Is it safe to swim after eating?',
  'history of the violin',
  'how to change a flat bicycle tire',
  'What makes the sky blue?',
  'good novels about the sea',
  'how many calories are in an avocado',
  'rules of ice hockey',
  'repairing a leaking kitchen tap',
  'Which mushrooms are poisonous?',
  'how to knit a scarf',
  'population of Brazil',
  'how to apply for a student visa in Canada',
  'why do cats purr?',
  'ingredients of a Greek salad',
  'opening hours of the Louvre',
  'how deep is the Mariana Trench?',
  'treatment of sunburn',
];

const args = process.argv.slice(2);
const isDevelopment = args.includes('--corpus') && args.includes('readmes');
const showsMisses = args.includes('--misses');

function plain(text) {
  return text
    .replace(/!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])?/g, ' ')
    .replace(/\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, '$1')
    .replace(/<[^>]*>/g, ' ')
    .replace(/[`*]/g, '')
    .replace(/\s+/g, ' ')
    .trim();
}

/** The first sentence of prose, and the page without it; undefined for a page that has none. */
function withheld(text) {
  const isProse = (block) => /^[\p{L}`*[_]/u.test(block) && !/^[-*+] /.test(block) && !block.includes('|--');
  const blocks = text.replace(/^---\n.*?\n---\n/s, '').split(/\n{2,}/);
  for (const block of blocks) {
    if (!isProse(block)) continue;
    const [sentence = ''] = block.match(/^[\s\S]+?[.:!?](?=\s|$)/) ?? [];
    const question = plain(sentence);
    if (question.split(' ').length < 6) continue;
    return { question, rest: text.replaceAll(sentence, '') };
  }
  return undefined;
}

function pagesOf(pattern) {
  const pages = [];
  const seen = new Set();
  for (const file of globSync(pattern, { cwd: ROOT }).sort()) {
    const text = readFileSync(join(ROOT, file), 'utf8');
    const cut = withheld(text);
    if (cut === undefined || seen.has(cut.question) || pages.length >= PAGES) continue;
    seen.add(cut.question);
    const name = basename(file);
    pages.push({ file: /^readme/i.test(name) ? join(basename(dirname(file)), name) : file, ...cut });
  }
  return pages;
}

/** Share of the pages found, at the default threshold and without one, and by the cosine alone at 0.7. */
async function measure(name, patterns) {
  const dataDir = mkdtempSync(join(tmpdir(), 'agctl-retrieval-'));
  const log = createLog({ write: () => undefined }, 'error', 'text');
  const store = await openStore({ dataDir, log });
  const embedder = createHashEmbedder();
  try {
    const pages = patterns.flatMap(pagesOf);
    let chunks = 0;
    for (const { file, rest } of pages)
      chunks += (
        await ingestDocument({ store, embedder }, { title: titleOf(rest, file), content: rest, source: file })
      ).chunks;
    const ask = (query, minScore) => search({ store, embedder }, { query, limit: LIMIT, minScore });
    const counts = { found: 0, ranked: 0, cosine: 0, offTopic: 0 };
    const times = [];
    for (const { file, question } of pages) {
      const { results, tookMs } = await ask(question, 0);
      times.push(tookMs);
      const own = results.filter(({ metadata }) => metadata.source === file);
      counts.ranked += own.length > 0;
      counts.found += own.some(({ score }) => score >= MIN_SCORE);
      counts.cosine += own.some(({ cosine }) => cosine >= MIN_SCORE);
      if (showsMisses && !own.some(({ score }) => score >= MIN_SCORE))
        console.log(
          `missed  ${file}: ${question.slice(0, 120)} [${results.map(({ name }) => name.slice(0, 25)).join(' | ')}]`,
        );
    }
    for (const question of OFF_TOPIC) {
      const { count, results } = await ask(question, MIN_SCORE);
      counts.offTopic += count > 0;
      if (showsMisses && count > 0)
        console.log(`leaked  ${question}: ${results[0].score} ${results[0].name}`);
    }
    times.sort((a, b) => a - b);
    const share = (count) => (count / pages.length).toFixed(3);
    return {
      corpus: name,
      pages: pages.length,
      chunks,
      'recall@5': share(counts.found),
      'without threshold': share(counts.ranked),
      'cosine >= 0.7 alone': share(counts.cosine),
      [`off topic of ${OFF_TOPIC.length}`]: counts.offTopic,
      'ms p50': times[times.length >> 1],
    };
  } finally {
    await store.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function titleOf(text, file) {
  return plain(/^#{1,2} (.+)$/m.exec(text)?.[1] ?? '') || file;
}

const corpora = isDevelopment ? DEVELOPMENT : HELD_OUT;
const rows = [];
for (const [name, pattern] of Object.entries(corpora)) rows.push(await measure(name, [pattern]));
if (!isDevelopment) rows.push(await measure('all together', Object.values(corpora)));
console.table(rows);
if (args.includes('--json')) writeFileSync('memory-retrieval.json', JSON.stringify(rows, undefined, 2));
