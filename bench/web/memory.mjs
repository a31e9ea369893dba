// The memory dashboard: a graph of 1,000 and one of 5,000 entities during the layout.
import { join } from 'node:path';
import { memoryBackend } from '../../test/kit/memory-backend.ts';
import { root } from '../harness/processes.mjs';
import { median } from '../harness/rounds.mjs';

const PAGES = join(root, 'dist/web/memory');

export const memory = {
  async open() {
    const backend = await memoryBackend({ docs: { 'a.md': '# A\n\nText.\n' }, pages: PAGES });
    return {
      url: backend.url,
      start: { path: '/ui/', shows: 'readiness' },
      close: () => backend[Symbol.asyncDispose](),
      more: async (browser) => [await graph(browser, 1_000), await graph(browser, 5_000)],
    };
  },
};

async function graph(browser, nodes) {
  const backend = await memoryBackend({ pages: PAGES });
  await fill(backend, nodes);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  // The times at which the browser draws frames while the layout is running.
  await page.addInitScript(() => {
    globalThis.frames = [];
    let isDrawn = false;
    const frame = (now) => {
      const box = document.querySelector('.graph');
      if (box?.dataset.settled === 'false') {
        isDrawn = true;
        globalThis.frames.push(now);
      } else if (isDrawn) return;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await page.goto(`${backend.url}/ui/graph`);
  await page.locator('.graph[data-settled=true]').waitFor({ timeout: 60_000 });
  const frames = await page.evaluate(() => globalThis.frames);
  await context.close();
  await backend[Symbol.asyncDispose]();
  const gaps = frames.slice(1).map((time, index) => time - frames[index]);
  const seconds = (frames.at(-1) - frames[0]) / 1000;
  return `Graph of ${nodes} entities: ${(gaps.length / seconds).toFixed(0)} frames/s while it settles (${seconds.toFixed(1)} s); between frames ${median(gaps).toFixed(0)} ms, at most ${Math.max(...gaps).toFixed(0)} ms`;
}

/** A tree with ten children per node, and as many relations across. */
async function fill({ memory: { store, embedder } }, nodes) {
  const id = (index) => `node-${String(index).padStart(6, '0')}`;
  const entities = Array.from({ length: nodes }, (_none, index) => ({
    id: id(index),
    name: `Entity ${index}`,
    type: ['workspace', 'doc_file', 'doc_chunk', 'chat_message'][index === 0 ? 0 : 1 + (index % 3)],
    content: '',
    metadata: {},
    embedding: undefined,
    searchText: '',
  }));
  const relations = entities.slice(1).flatMap((_entity, offset) => [
    { fromId: id(offset + 1), toId: id(Math.floor(offset / 10)), relationType: 'BELONGS_TO', weight: 1 },
    { fromId: id(offset + 1), toId: id((offset * 7919) % nodes), relationType: 'REFERENCES', weight: 0.5 },
  ]);
  for (let start = 0; start < nodes; start += 500)
    await store.putEntities(entities.slice(start, start + 500), [], embedder.id);
  for (let start = 0; start < relations.length; start += 500)
    await store.putEntities([], relations.slice(start, start + 500), embedder.id);
}
