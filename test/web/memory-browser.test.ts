import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { createHashEmbedder } from '../../src/adapter/memory/embed/hash-embedder.ts';
import { AppError } from '../../src/core/errors.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';
import { DOCUMENTS, HOSTILE } from '../kit/memory-documents.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, MEMORY_PAGES, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/memory-browser.test.ts');

let backend: TestBackend;
beforeAll(async () => {
  backend = await memoryBackend({ docs: DOCUMENTS, pages: MEMORY_PAGES });
});
afterAll(() => backend[Symbol.asyncDispose]());

/** Entities of agents, with names that only one test uses. */
async function store(name: string, observations: readonly string[], friend?: string): Promise<void> {
  const { status } = await backend.post('graph', {
    createEntities: [{ name, entityType: 'person', observations }],
    ...(friend === undefined
      ? {}
      : { createRelations: [{ from: name, to: friend, relationType: 'works with' }] }),
  });
  expect(status).toBe(200);
}

async function stored(name: string): Promise<readonly string[] | undefined> {
  const { entities } = (await backend.post('graph/read', { names: [name] })).body;
  return entities[0]?.observations;
}

/** Opens an entity from the list, by keyboard alone. */
async function openEntity(page: Page, name: string): Promise<void> {
  await page.goto(`${backend.url}/ui/browser`);
  await page.getByRole('link', { name }).first().waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
  await page.getByText('1 by name').waitFor();
  // Focus and key in one step: a list that is read again meanwhile has other elements.
  await page.getByRole('link', { name }).press('Enter');
  await page.getByRole('heading', { level: 2, name }).waitFor();
}

const isSent = (method: string, part: string) => (request: { method(): string; url(): string }) =>
  request.method() === method && request.url().includes(part);

browserTest(
  'the memory browser searches entities of all types, and says where each came from',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, backend.url);
    await page.goto(`${backend.url}/ui/browser`);
    await page.getByLabel('Type').selectOption('doc_file');
    await page.getByText('3 by name').waitFor();
    await page.getByRole('link', { name: 'Rate limits' }).click();
    await page.getByText('The document guide/limits.md, in the docs folder.').waitFor();
    await page.getByLabel('Type').selectOption('doc_chunk');
    await page.getByLabel('Search in names and texts').fill('tokens');
    await page.keyboard.press('Enter');
    await page.getByRole('navigation', { name: 'Entities' }).getByRole('link').first().click();
    await page.getByText('A part of the document').waitFor();
    expect(await page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
    await page
      .getByRole('region', { name: /relation/ })
      .getByRole('link')
      .first()
      .click();
    await page.getByText('The document').first().waitFor();
    await page.getByLabel('Search in names and texts').fill('nothing has this');
    await page.keyboard.press('Enter');
    await page.getByText('Nothing matches.').waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest(
  'observations and relations of an entity are added, changed and deleted by keyboard',
  async (browser) => {
    await store('Ada', ['likes tea', HOSTILE], 'Grace');
    const { page, problems } = await watchedPage(browser, backend.url);
    await openEntity(page, 'Ada');
    await page.getByText('2 observations').waitFor();
    await page.getByLabel('New observation').focus();
    await page.keyboard.type('lives in London');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('3 observations').waitFor();
    await page.getByRole('button', { name: 'Edit likes tea' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('likes coffee');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Edit likes coffee' }).waitFor();
    expect(await stored('Ada')).toEqual([HOSTILE, 'lives in London', 'likes coffee']);
    // Not stored without its end.
    await page.getByLabel('New observation').fill('long '.repeat(4_000));
    await page.getByRole('button', { name: 'Add' }).first().click();
    await page.getByRole('alert').getByText('16384 characters').waitFor();
    await page.getByLabel('New observation').fill('');
    await page.getByLabel('New relation').fill('teaches');
    await page.getByLabel('To entity (name)').fill('Charles');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Charles' }).waitFor();
    await expectAccessible(page);

    await page.getByRole('button', { name: 'Delete lives in London' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('2 observations').waitFor();
    await page.getByRole('heading', { level: 1 }).focus();
    await page.keyboard.press('u');
    await page.getByText('3 observations').waitFor();
    expect(await stored('Ada')).toContain('lives in London');
    // Of a double click, the second one hits what has moved up.
    await page.getByRole('button', { name: 'Delete lives in London' }).dblclick();
    await page.getByText('2 observations').waitFor();
    const sent = page.waitForRequest(isSent('POST', '/graph'));
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await sent;
    await until(async () => (await stored('Ada'))?.length === 2);

    await page.getByRole('button', { name: 'Delete relation works with to Grace' }).click();
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await until(async () => {
      const { relations } = (await backend.post('graph/read', { names: ['Ada'] })).body;
      return relations.length === 1 && relations[0].relationType === 'teaches';
    });
    await page.getByRole('heading', { level: 3, name: '1 relation' }).waitFor();
    expect(await page.evaluate('"harmed" in window')).toBe(false);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'a deleted entity comes back with Undo, and is deleted when the tab is closed',
  async (browser) => {
    await store('Linus', ['wrote a kernel']);
    const { page } = await watchedPage(browser, backend.url, { isOwn: true });
    await openEntity(page, 'Linus');
    const remove = async (): Promise<void> => {
      await page.getByRole('button', { name: 'Delete entity' }).click();
      await page.getByText('This deletes 1 entity.').waitFor();
      await page.getByRole('button', { name: 'Delete', exact: true }).click();
      await page.getByText('Deleted, unless you undo it.').waitFor();
    };
    await remove();
    expect(await page.getByRole('link', { name: 'Linus' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('link', { name: 'Linus' }).waitFor();
    await page.getByText('wrote a kernel').waitFor();
    await remove();
    expect(await stored('Linus')).toEqual(['wrote a kernel']);
    await page.close({ runBeforeUnload: true });
    await until(async () => (await stored('Linus')) === undefined);
  },
);

browserTest('a deletion that fails brings back what was hidden, and says why', async (browser) => {
  await store('Dennis', ['wrote a compiler']);
  const { page } = await watchedPage(browser, backend.url, { isOwn: true });
  await openEntity(page, 'Dennis');
  await page.getByRole('button', { name: 'Delete entity' }).click();
  await page.getByText('This deletes 1 entity.').waitFor();
  await store('Ken', [], 'Dennis');
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.route('**/entities/**', (route) => route.abort());
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.getByText('Not deleted: Dennis.').waitFor();
  await page.getByRole('button', { name: 'Delete entity' }).waitFor();
  expect(await stored('Dennis')).toEqual(['wrote a compiler']);
});

browserTest('everything about a name is shown first and deleted after that', async (browser) => {
  await store('Barbara Liskov', ['won a prize']);
  await backend.post('chat', { sessionId: 'liskov-chat', role: 'user', content: 'Who is Barbara Liskov?' });
  const { page } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/forget`);
  for (const about of ['nobody', 'barbara liskov']) {
    await page.getByLabel('Forget everything about').fill(about);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('about') === about);
  }
  await page.getByRole('heading', { name: '1 entity, 1 turn' }).waitFor();
  expect(await page.getByLabel('Forget everything about').count()).toBe(1);
  await page.getByText('Who is Barbara Liskov?').waitFor();
  await page.getByRole('button', { name: 'Forget all of this' }).click();
  await page.getByText('Deleted, unless you undo it').waitFor();
  expect(await stored('Barbara Liskov')).toEqual(['won a prize']);
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.getByText('Nothing stored mentions “barbara liskov”.').waitFor();
  expect(await stored('Barbara Liskov')).toBeUndefined();
  expect((await backend.get('sessions/liskov-chat/turns')).status).toBe(404);
});

browserTest(
  'turns of all sessions are found by words and time, and open in their session',
  async (browser) => {
    for (const content of ['first', 'second about zeppelins', 'third'])
      await backend.post('chat', { sessionId: 'air', role: 'user', content });
    const { page } = await watchedPage(browser, backend.url);
    await page.goto(`${backend.url}/ui/replay`);
    await page.getByLabel('Search all sessions').fill('zeppelin');
    await page.keyboard.press('Enter');
    await page.getByText('1 found').waitFor();
    await page.getByRole('link', { name: 'air' }).click();
    await page.getByText('Turn 2 of 3').waitFor();
    await page.waitForURL(/session=air&turn=2$/);
    await page.goto(`${backend.url}/ui/replay?text=zeppelin&to=2001-01-01T00:00`);
    await page.getByText('No turn matches.').waitFor();
  },
);

browserTest(
  'pages show one namespace, another is chosen in the header, and one is deleted by its name',
  async (browser) => {
    const headers = { 'x-memory-namespace': 'team-b' };
    await backend.post(
      'graph',
      { createEntities: [{ name: 'Only in B', entityType: 'x', observations: [] }] },
      headers,
    );
    const { page, problems } = await watchedPage(browser, backend.url, { isOwn: true });
    await page.goto(`${backend.url}/ui/browser?text=only`);
    await page.getByText('Nothing matches.').waitFor();
    await page.getByLabel('Namespace').selectOption('team-b');
    await page.getByRole('link', { name: 'Only in B' }).waitFor();
    expect(page.url()).not.toContain('text=');
    await page.reload();
    await page.getByRole('link', { name: 'Only in B' }).waitFor();

    await page.goto(`${backend.url}/ui/namespaces`);
    await page.getByRole('row', { name: 'entity 1' }).waitFor();
    await expectAccessible(page);
    const button = page.getByRole('button', { name: 'Delete' });
    await page.getByLabel('Type team-b to confirm').fill('team');
    expect(await button.isDisabled()).toBe(true);
    await page.getByLabel('Type team-b to confirm').fill('team-b');
    await button.and(page.locator(':enabled')).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('The namespace team-b is deleted').waitFor();
    await page.getByText('All pages show this namespace.').waitFor();
    expect(await page.getByLabel('Namespace', { exact: true }).count()).toBe(0);
    const { namespaces } = (await backend.get('namespaces')).body;
    expect(namespaces.map(({ name }: { name: string }) => name)).toEqual(['default']);
    expect(problems).toEqual([]);
  },
);

// 320 pixels are also what is left of a screen at 400 % (WCAG 2.2, 1.4.10).
browserTest(
  'the browser, Forget, found turns and Namespaces fit a phone, break no accessibility rule and show text as text',
  async (browser) => {
    await store('Mallory', [HOSTILE, 'x'.repeat(500)], HOSTILE);
    await backend.post('chat', { sessionId: 'mallory', role: 'user', content: `About mallory: ${HOSTILE}` });
    const { page, elsewhere, problems } = await watchedPage(browser, backend.url, {
      viewport: { width: 320, height: 800 },
    });
    for (const [path, shown] of [
      ['/browser?text=mallory', '2 observations'],
      ['/forget?about=mallory', 'Forget all of this'],
      ['/replay?text=mallory', '1 found'],
      ['/namespaces', 'All pages show this namespace.'],
    ] as const) {
      await page.goto(`${backend.url}/ui${path}`);
      if (path.startsWith('/browser')) await page.getByRole('link', { name: 'Mallory' }).first().click();
      await page.getByText(shown).first().waitFor();
      expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, 320]);
      if (path !== '/namespaces')
        expect(await page.locator('main').innerText()).toContain('<script>window.harmed=1</script>');
      await expectAccessible(page);
    }
    expect(await page.evaluate('"harmed" in window')).toBe(false);
    expect(await page.locator('main img').count()).toBe(0);
    expect(elsewhere).toEqual([]);
    expect(problems).toEqual([]);
  },
);

browserTest('the key of a namespace shows its namespace alone, and offers no other', async (browser) => {
  await using closed = await memoryBackend({
    pages: MEMORY_PAGES,
    key: 'main-key',
    namespaceKeys: { has: () => true, namespaceOf: (token) => (token === 'alice-key' ? 'alice' : undefined) },
  });
  for (const name of ['alice', 'bob'])
    await closed.post(
      'graph',
      { createEntities: [{ name: `Note of ${name}`, entityType: 'note', observations: [] }] },
      { authorization: 'Bearer main-key', 'x-memory-namespace': name },
    );
  const { page } = await watchedPage(browser, closed.url, { isOwn: true });
  const enter = async (key: string): Promise<void> => {
    await page.getByLabel('Key').fill(key);
    await page.keyboard.press('Enter');
  };
  await page.goto(`${closed.url}/ui/browser`);
  await enter('main-key');
  await page.getByLabel('Namespace').selectOption('bob');
  await page.getByRole('link', { name: 'Note of bob' }).waitFor();
  // The tab remembers the namespace of the other key, which this one may not name.
  await page.evaluate("sessionStorage.removeItem('agctl-memory-key')");
  await page.reload();
  await enter('alice-key');
  await page.getByRole('link', { name: 'Note of alice' }).waitFor();
  expect(await page.getByRole('link', { name: 'Note of bob' }).count()).toBe(0);
  expect(await page.getByLabel('Namespace').count()).toBe(0);
  await page.goto(`${closed.url}/ui/namespaces`);
  await page.getByText('The key of this tab belongs to one namespace').waitFor();
});

browserTest('a backend that requires a namespace shows its default one first', async (browser) => {
  await using strict = await memoryBackend({ docs: DOCUMENTS, pages: MEMORY_PAGES, requiresNamespace: true });
  const { page } = await watchedPage(browser, strict.url, { isOwn: true });
  await page.goto(`${strict.url}/ui/`);
  await page.getByRole('row', { name: 'documents 3' }).waitFor();
});

browserTest('the overview shows texts that wait for an embedder, and why it failed', async (browser) => {
  const away = (): never => {
    throw new AppError('upstream_unreachable', { message: 'the service is away' });
  };
  await using waiting = await memoryBackend({
    docs: DOCUMENTS,
    pages: MEMORY_PAGES,
    embedder: {
      ...createHashEmbedder(),
      id: 'service/128',
      isImmediate: false,
      embed: away,
      embedQuery: away,
    },
  });
  const { page } = await watchedPage(browser, waiting.url);
  await page.goto(`${waiting.url}/ui/`);
  await page.getByRole('row', { name: 'to embed 3, waiting' }).waitFor();
  await page.getByRole('row', { name: /embedder failed.*the service is away/ }).waitFor();
});

browserTest('the overview shows how many of all texts are still to be embedded', async (browser) => {
  const docs = Object.fromEntries(
    Array.from({ length: 70 }, (_, n) => [`${n}.md`, `# Page ${n}\n\nText ${n}.`]),
  );
  await using folder = await temporaryFolder();
  {
    await using _first = await memoryBackend({ docs, data: folder.path });
  }
  const inner = createHashEmbedder();
  await using half = await memoryBackend({
    ...{ docs, data: folder.path, pages: MEMORY_PAGES },
    embedder: {
      ...inner,
      id: 'slow/128',
      isImmediate: false,
      // The first 64 are embedded together; the others wait until the backend is closed.
      embed: (texts, signal) =>
        texts.length === 6
          ? new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
          : inner.embed(texts, signal),
    },
  });
  const { page } = await watchedPage(browser, half.url);
  await page.goto(`${half.url}/ui/`);
  await page.getByRole('row', { name: 'to embed 6 of 70, running' }).waitFor();
});
