import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { entity } from '../adapter/memory/records.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';
import { DOCUMENTS } from '../kit/memory-documents.ts';
import { covers } from '../kit/verifies.ts';
import { MEMORY_PAGES, watchedPage } from '../kit/web-page.ts';

covers('memory.service.6');

const { browserTest } = sharedBrowser('test/web/memory-graph.test.ts');

let backend: TestBackend;
beforeAll(async () => {
  backend = await memoryBackend({ docs: DOCUMENTS, pages: MEMORY_PAGES });
});
afterAll(() => backend[Symbol.asyncDispose]());

const settled = (page: Page): Promise<void> => page.locator('.graph[data-settled=true]').waitFor();

browserTest(
  'the graph page shows folders, documents and entities, then the neighbourhood of one',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, backend.url);
    await page.goto(`${backend.url}/ui/graph`);
    await settled(page);
    const { body } = await backend.get('graph?limit=500&types=workspace,doc_file,entity');
    await page
      .getByText(`Graph of ${body.nodes.length} entities and ${body.edges.length} relations`)
      .first()
      .waitFor();
    expect(await inks(page)).toBeGreaterThan(3);

    await page.keyboard.press('/');
    await page.keyboard.type('guide/limits.md');
    await page.getByLabel('Depth').selectOption('1');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('heading', { level: 2, name: 'Rate limits' }).waitFor();
    expect(page.url()).toContain('entity=guide%2Flimits.md&depth=1');
    const walk = (await backend.get('graph?entityId=guide/limits.md&maxDepth=1')).body;
    await page.getByText(`Graph of ${walk.nodes.length} entities`).first().waitFor();
    await page.getByRole('complementary').getByText('docs_dir').waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the graph page shows passages when their type is chosen, and says how many it leaves out',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, backend.url);
    await page.goto(`${backend.url}/ui/graph`);
    await settled(page);
    const all = (await backend.get('graph?limit=500')).body;
    const passages = all.nodes.filter(({ type }: { type: string }) => type === 'doc_chunk').length;
    await page.getByText(`Not shown: ${passages} doc_chunks.`).waitFor();
    await page.getByRole('checkbox', { name: 'doc_chunk' }).click();
    await page
      .getByText(`Graph of ${all.nodes.length} entities and ${all.edges.length} relations`)
      .first()
      .waitFor();
    await page.getByRole('list', { name: 'Legend' }).getByText('doc_chunk').waitFor();
    // Only what agents have written: there is none.
    for (const type of ['workspace', 'doc_file', 'doc_chunk'])
      await page.getByRole('checkbox', { name: type }).click();
    await page.getByText(/There is nothing of these types, and .*doc_files/).waitFor();
    await page.getByRole('link', { name: 'Show everything' }).click();
    await page.getByText(`Graph of ${all.nodes.length} entities`).first().waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest('the graph page reports an unknown entity and links to similar names', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/graph?entity=Rate%20limit&depth=2`);
  await page.getByRole('alert').getByText('No entity is called “Rate limit”').waitFor();
  await page.getByRole('alert').getByRole('link', { name: 'Rate limits', exact: true }).click();
  await page.getByRole('heading', { level: 2, name: 'Rate limits' }).waitFor();
  await page.getByRole('list', { name: 'Legend' }).getByText('doc_file').waitFor();
});

browserTest('the graph page lets the user choose between entities with the same name', async (browser) => {
  await using twins = await memoryBackend({
    docs: { 'a/one.md': '# Same name\n\nFirst.\n', 'b/two.md': '# Same name\n\nSecond.\n' },
    pages: MEMORY_PAGES,
  });
  const { page } = await watchedPage(browser, twins.url);
  await page.goto(`${twins.url}/ui/graph?entity=Same%20name&depth=1`);
  const { body } = await twins.get('graph?entityId=Same%20name');
  const others = page.getByRole('navigation', { name: 'Others with this name' }).getByRole('link');
  await others.first().waitFor();
  expect(await others.count()).toBe(body.ambiguous.length);
  await others.first().click();
  await page.getByRole('complementary').getByText(body.ambiguous[0].id).waitFor();
});

browserTest(
  'the graph page and the browser show the text of a document without the marks of Markdown',
  async (browser) => {
    const text = '# Ports\n\nThe **backend** listens\non `3006`.\n';
    await using one = await memoryBackend({ docs: { 'ports.md': text }, pages: MEMORY_PAGES });
    const { page } = await watchedPage(browser, one.url);
    await page.goto(`${one.url}/ui/graph?entity=ports.md&depth=1`);
    await settled(page);
    await page.getByRole('complementary').getByText('The backend listens on 3006.').waitFor();
    const { body } = await one.get('graph?limit=10');
    const { id } = body.nodes.find(({ type }: { type: string }) => type === 'doc_chunk');
    await page.goto(`${one.url}/ui/browser?id=${id}`);
    await page.getByRole('region', { name: 'Ports' }).getByText('The backend listens on 3006.').waitFor();
  },
);

browserTest('the graph page navigates through neighbours by keyboard alone', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/graph?entity=Rate%20limits&depth=1`);
  await settled(page);
  await tabTo(page, 'graph');
  const names = new Set<string>();
  for (const key of ['ArrowRight', 'ArrowDown', 'ArrowLeft', 'ArrowUp', 'ArrowUp', 'ArrowRight']) {
    await page.keyboard.press(key);
    names.add(await page.getByRole('complementary').getByRole('heading', { level: 2 }).innerText());
  }
  expect(names.size).toBeGreaterThan(1);
  const chosen = await page.getByRole('complementary').locator('code').first().innerText();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.searchParams.get('entity') === chosen);
  await settled(page);
  await tabTo(page, 'graph');
  await page.keyboard.press('Escape');
  expect(await page.evaluate('document.activeElement.name')).toBe('entity');
});

browserTest('the graph page shows the same data as a sortable and filterable table', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/graph`);
  await page.getByRole('button', { name: 'Table' }).click();
  const entities = page.getByRole('table', { name: /^Entities/ });
  const first = () => entities.getByRole('row').nth(1).getByRole('cell').first().innerText();
  await entities.getByRole('button', { name: /^Name/ }).click();
  const ascending = await first();
  await entities.getByRole('button', { name: /^Name/ }).click();
  expect((await first()).localeCompare(ascending)).toBe(1);
  expect(await entities.getByRole('columnheader', { name: /^Name/ }).getAttribute('aria-sort')).toBe(
    'descending',
  );
  await page.getByLabel('Filter').fill('references');
  await page.getByText('Relations: 3').waitFor();
  await page.getByText('Entities: 0').waitFor();
});

browserTest(
  'the graph page draws five thousand entities while it stays responsive, and says that the rest is omitted',
  async (browser) => {
    await using large = await memoryBackend({ pages: MEMORY_PAGES });
    await fill(large, 6_000);
    const { page } = await watchedPage(browser, large.url, { reducedMotion: 'no-preference' });
    await page.goto(`${large.url}/ui/graph`);
    await page.getByText(/5,000 of 6,000 entities are shown/).waitFor();
    await page.evaluate(`new Promise((done) => { const drawn = setInterval(() => {
    if (document.querySelector('.graph canvas')?.width > 0) { clearInterval(drawn); done(); }
  }, 20); })`);
    // The longest time that the main thread was blocked while the layout runs concurrently.
    const longest = await page.evaluate(`new Promise((done) => {
    let before = performance.now(), longest = 0, frames = 0;
    const frame = (now) => {
      longest = Math.max(longest, now - before); before = now; frames += 1;
      if (frames < 20) requestAnimationFrame(frame); else done(longest);
    };
    requestAnimationFrame(frame);
  })`);
    expect(longest).toBeLessThan(2_000);
    expect(await page.locator('.graph').getAttribute('data-settled')).toBe('false');
    await page.getByRole('button', { name: 'Table' }).click();
    await page.getByText('Entities: 5,000').waitFor();
  },
);

/** Entities in a tree, ten to each. */
async function fill({ memory }: TestBackend, count: number): Promise<void> {
  const id = (index: number): string => `node-${String(index).padStart(6, '0')}`;
  for (let start = 0; start < count; start += 500) {
    const indices = Array.from({ length: Math.min(500, count - start) }, (_none, offset) => start + offset);
    await memory.store.putEntities(
      indices.map((index) => entity({ id: id(index), name: id(index) })),
      indices
        .filter((index) => index > 0)
        .map((index) => ({
          fromId: id(index),
          toId: id(Math.floor((index - 1) / 10)),
          relationType: 'BELONGS_TO',
          weight: 1,
        })),
      memory.embedder.id,
    );
  }
}

/** How many colours the drawing has. */
async function inks(page: Page): Promise<number> {
  return (await page.evaluate(`(() => {
    const canvas = document.querySelector('.graph canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  })()`)) as number;
}

async function tabTo(page: Page, className: string): Promise<void> {
  for (let presses = 0; presses < 40; presses += 1) {
    if (await page.evaluate(`document.activeElement.classList.contains('${className}')`)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not come to .${className}`);
}
