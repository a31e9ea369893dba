import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHashEmbedder } from '../../src/adapter/memory/embed/hash-embedder.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { memoryAdapter } from '../kit/memory-adapter.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';
import { DOCUMENTS, HOSTILE } from '../kit/memory-documents.ts';
import { until } from '../kit/until.ts';
import { covers } from '../kit/verifies.ts';
import { expectAccessible, MEMORY_PAGES, watchedPage } from '../kit/web-page.ts';

covers('memory.service.6', 'memory.service.6.resync');

const { browserTest } = sharedBrowser('test/web/memory.test.ts');

let backend: TestBackend;
/** While it is set, documents with this word wait to be embedded. */
let gate: Promise<void> | undefined;

beforeAll(async () => {
  const embedder = createHashEmbedder();
  backend = await memoryBackend({
    docs: { ...DOCUMENTS, 'hostile.md': `# ${HOSTILE}\n\nHarmful words: ${HOSTILE}\n` },
    pages: MEMORY_PAGES,
    embedder: {
      ...embedder,
      embed: async (texts, signal) => {
        if (texts.some((text) => text.includes('patience'))) await gate;
        return embedder.embed(texts, signal);
      },
    },
  });
  for (const content of ['Which port is it?', HOSTILE])
    await backend.post('chat', { sessionId: 'chat-1', role: 'user', content });
});
afterAll(() => backend[Symbol.asyncDispose]());

test('the first load of the memory dashboard is small', () => {
  const html = readFileSync(join(MEMORY_PAGES, 'index.html'), 'utf8');
  const files = [...html.matchAll(/(?:src|href)="\/ui\/([^"]+)"/g)].map(([, path]) => path as string);
  expect(files.length).toBeGreaterThanOrEqual(2);
  const sizes = ['index.html', ...files].map(
    (path) => gzipSync(readFileSync(join(MEMORY_PAGES, path))).length,
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(120 * 1024);
});

test('pages and files of the memory dashboard are served with a strict content security policy', async () => {
  for (const path of ['/ui', '/ui/', '/ui/graph', '/ui/replay?session=chat-1&turn=2']) {
    const { status, headers, body } = await backend.get(path);
    expect([path, status]).toEqual([path, 200]);
    expect(String(body)).toContain('<div id="root">');
    expect(headers.get('content-security-policy')).toMatch(/default-src 'self'.*frame-ancestors 'none'/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
  const [, script] = /src="(\/ui\/assets\/[^"]+)"/.exec(String((await backend.get('/ui/')).body)) ?? [];
  const { headers } = await backend.get(script ?? '');
  expect(headers.get('content-type')).toContain('javascript');
  expect(headers.get('cache-control')).toContain('immutable');
  expect((await backend.get('/ui/assets/..%2f..%2f..%2fpackage.json')).status).not.toBe(200);
});

browserTest('the memory overview page counts the stored entities', async (browser) => {
  const { page, problems } = await watchedPage(browser, backend.url);
  await page.goto(`${backend.url}/ui/`);
  await page.getByRole('row', { name: 'doc_file 4' }).waitFor();
  await page.getByRole('row', { name: 'turns 2' }).waitFor();
  await page.getByRole('row', { name: 'REFERENCES 3' }).waitFor();
  await page.getByText('✓ ready').waitFor();
  await page.getByText('hash-v2/128').waitFor();
  await page.getByText('4 added').waitFor();
  expect(problems).toEqual([]);
});

browserTest('the memory overview page lists the latest sessions, without deleted ones', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  const sessions = page.getByRole('region', { name: 'Latest sessions' });
  for (let n = 2; n <= 11; n += 1)
    await backend.post('chat', {
      sessionId: `chat-${n}`,
      agentId: 'helpdesk',
      role: 'user',
      content: 'Thanks.',
    });
  await page.goto(`${backend.url}/ui/`);
  await sessions.getByRole('row', { name: 'chat-2 helpdesk 1' }).waitFor();
  // Ten of eleven, and the line above them.
  expect(await sessions.getByRole('row').count()).toBe(11);
  await sessions.getByRole('link', { name: 'chat-11' }).click();
  await page.getByText('Turn 1 of 1').waitFor();
  await page.getByRole('button', { name: 'Delete session …' }).click();
  await page.getByRole('region', { name: 'Delete session' }).getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('link', { name: 'Overview' }).click();
  await sessions.getByRole('row', { name: 'chat-10 helpdesk 1' }).waitFor();
  expect(await sessions.getByRole('link', { name: 'chat-11' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Undo' }).click();
  await sessions.getByRole('link', { name: 'chat-11' }).waitFor();
  for (let n = 2; n <= 11; n += 1) await backend.memory.store.erase({ sessions: [`chat-${n}`] }, {});
});

browserTest(
  'a sync started by the button, a tool or a request is shared, and every page shows it',
  async (browser) => {
    await using adapter = await memoryAdapter(backend.url);
    const { page } = await watchedPage(browser, backend.url);
    const { page: other } = await watchedPage(browser, backend.url);
    for (const opened of [page, other]) {
      await opened.goto(`${backend.url}/ui/`);
      await opened.getByRole('button', { name: 'Re-sync Docs' }).waitFor();
    }
    writeFileSync(join(backend.docs, 'auth/tokens.md'), '# Tokens\n\nWith patience.\n');
    writeFileSync(join(backend.docs, 'big.md'), 'x'.repeat(2 * 1024 * 1024 + 1));
    const before = ended();
    let open = (): void => undefined;
    gate = new Promise((resolve) => {
      open = resolve;
    });
    await page.getByRole('button', { name: 'Re-sync Docs' }).click();
    for (const opened of [page, other]) {
      const button = opened.getByRole('button', { name: 'Syncing…' });
      await button.waitFor();
      expect(await button.getAttribute('aria-disabled')).toBe('true');
      await opened.getByRole('progressbar').waitFor();
    }
    const request = backend.post('ingest/docs');
    const call = adapter.call('ingest_document', { title: 'Note', content: 'A note.' });
    // The note is stored before its call joins the sync.
    await until(async () => (await backend.get('stats')).body.documents === 5);
    open();
    gate = undefined;
    const [{ body }, { result }] = await Promise.all([request, call]);
    for (const { sync } of [body, result.structuredContent])
      expect(sync).toMatchObject({ state: 'done', updated: 1, unchanged: 3, failed: 1 });
    for (const opened of [page, other]) {
      await opened.getByText('3 unchanged, 1 updated, 1 failed').waitFor();
      await opened.getByRole('listitem').filter({ hasText: 'big.md' }).waitFor();
    }
    expect(ended() - before).toBe(1);
    rmSync(join(backend.docs, 'big.md'));
  },
);

const ended = (): number => backend.log.filter((line) => line.includes('documents are up to date')).length;

browserTest(
  'the memory playground says which results give way to another document, and which the limit cuts off',
  async (browser) => {
    // Long enough for one passage each.
    const section = (name: string): string => `## ${name}\n\n${'The port of the backend. '.repeat(60)}\n\n`;
    const ports = `# Ports\n\n${section('First')}${section('Second')}`;
    await using two = await memoryBackend({
      docs: {
        'ports.md': ports,
        'keys.md': '# Keys\n\nA key of the backend.\n',
        'copy/keys.md': '# Keys\n\nA key of the backend.\n',
        'sun.md': '# Sun\n\nShines.\n',
      },
      pages: MEMORY_PAGES,
    });
    const { page } = await watchedPage(browser, two.url);
    await page.goto(`${two.url}/ui/playground`);
    await page.getByLabel('Query').fill('port of the backend');
    await page.keyboard.press('Enter');
    await page.getByLabel('minScore').fill('0');
    await page.getByLabel('limit').fill('2');
    await page.getByText('2 results at minScore 0.00').waitFor();
    const standings = (await page.evaluate(
      "[...document.querySelectorAll('.result')].map((one) => one.querySelector('.standing')?.textContent ?? 'given')",
    )) as string[];
    expect(standings.slice(0, 3)).toEqual(['given', 'same document as a better result', 'given']);
    expect(new Set(standings.slice(3))).toEqual(new Set(['beyond the limit']));
    await page.getByText('Almost the same text: copy/keys.md').waitFor();
    await page.getByRole('link', { name: 'copy/keys.md' }).click();
    await page.waitForURL(/\/browser\?id=[0-9a-f]{24}$/);
  },
);

browserTest('the memory playground applies the threshold in the page', async (browser) => {
  const { page } = await watchedPage(browser, backend.url);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: backend.url });
  await page.goto(`${backend.url}/ui/playground`);
  let searches = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/search')) searches += 1;
  });
  await page.getByLabel('Query').waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('how many requests may a client send');
  await page.keyboard.press('Enter');
  const given = page.locator('.result.given');
  await given.first().getByText('Rate limits').first().waitFor();
  await given.first().locator('mark', { hasText: 'requests' }).first().waitFor();
  const { body } = await backend.post('search', { query: 'how many requests may a client send' });
  expect(await given.count()).toBe(body.count);
  expect(await given.first().innerText()).toContain(body.results[0].score.toFixed(4));
  expect(await given.first().innerText()).toContain('guide/limits.md');
  await given.first().getByText('Why this score').click();
  const cosine = body.results[0].cosine.toFixed(4);
  await given
    .first()
    .getByRole('row', { name: `cosine ${cosine}` })
    .waitFor();

  await page.getByLabel('minScore').fill('0.99');
  await page.getByText('0 results at minScore 0.99').waitFor();
  expect(await page.locator('.result.below').count()).toBeGreaterThan(body.count);
  await page.getByLabel('minScore').fill('0');
  await page.getByLabel('limit').fill('2');
  await page.getByText('2 results at minScore 0.00').waitFor();
  expect(searches).toBe(1);

  await page.getByRole('button', { name: 'Copy MCP tool call' }).click();
  await page.getByText('Copied').waitFor();
  const copied = JSON.parse(String(await page.evaluate('navigator.clipboard.readText()')));
  expect(copied.params).toEqual({
    name: 'search_knowledge',
    arguments: { query: 'how many requests may a client send', limit: 2, minScore: 0 },
  });
  await given.first().getByRole('link').click();
  await page.getByRole('heading', { level: 1, name: 'Memory browser' }).waitFor();
  await page.getByRole('heading', { name: /Rate limits/ }).waitFor();
});

const PAGES = ['/', '/graph', '/playground', '/replay?session=chat-1&turn=2'];

browserTest(
  'the memory dashboard breaks no accessibility rule in the light or dark theme',
  async (browser) => {
    const { page } = await watchedPage(browser, backend.url);
    for (const path of PAGES) {
      await page.goto(`${backend.url}/ui${path}`);
      await filled(page, path);
      await expectAccessible(page);
    }
    await page.keyboard.press('?');
    await page.getByRole('dialog').waitFor();
    await expectAccessible(page);
  },
);

async function filled(page: Page, path: string): Promise<void> {
  if (path === '/') await page.getByText('readiness').waitFor();
  if (path === '/graph') {
    await page.locator('.graph[data-settled=true]').waitFor();
    await page.getByRole('button', { name: 'Table' }).click();
    await page.getByRole('button', { name: 'Getting started', exact: true }).first().click();
    await page.getByText('Metadata').waitFor();
  }
  if (path === '/playground') {
    await page.getByLabel('Query').fill('harmful words');
    await page.keyboard.press('Enter');
    await page.locator('.result').first().waitFor();
  }
  if (path.startsWith('/replay')) await page.getByText('Turn 2 of 2').waitFor();
}

browserTest('on a phone, palette, namespace and theme of the dashboard are in one line', async (browser) => {
  await using several = await memoryBackend({ pages: MEMORY_PAGES });
  const entities = { createEntities: [{ name: 'Ann', entityType: 'person', observations: [] }] };
  await several.post('graph', entities, { 'x-memory-namespace': 'team-red' });
  const { page } = await watchedPage(browser, several.url, { viewport: { width: 390, height: 800 } });
  await page.goto(`${several.url}/ui/`);
  const theme = page.getByRole('combobox', { name: 'Theme' });
  const controls = [
    page.getByRole('button', { name: 'Find' }),
    page.getByRole('combobox', { name: 'Namespace' }),
    theme,
  ];
  const tops = await Promise.all(controls.map(async (each) => (await each.boundingBox())?.y));
  expect(new Set(tops).size).toBe(1);
  await expectAccessible(page);
  await theme.selectOption('dark');
  expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
});

// 320 pixels are also what is left of a screen at 400 % (WCAG 2.2, 1.4.10).
browserTest(
  'the memory dashboard fits a phone screen, contacts no other host and shows hostile content as text',
  async (browser) => {
    const { page, elsewhere, problems } = await watchedPage(browser, backend.url, {
      viewport: { width: 320, height: 800 },
    });
    for (const path of PAGES) {
      await page.goto(`${backend.url}/ui${path}`);
      await filled(page, path);
      const wide = await page.evaluate('document.documentElement.scrollWidth');
      expect([path, wide]).toEqual([path, 320]);
      if (path === '/playground' || path.startsWith('/replay')) {
        const text = await page.locator('main').innerText();
        expect(text).toContain('<script>window.harmed=1</script>');
        expect(text).toContain('⟨U+202E⟩gnp.exe␇');
      }
    }
    expect(await page.evaluate('"harmed" in window')).toBe(false);
    expect(await page.locator('main img').count()).toBe(0);
    expect(elsewhere).toEqual([]);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'keyboard shortcuts of the memory dashboard open every page, are listed and can be turned off',
  async (browser) => {
    const { page } = await watchedPage(browser, backend.url);
    await page.goto(`${backend.url}/ui/`);
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
    await heading('Overview');
    for (const [key, name] of [
      ['t', 'Graph topology'],
      ['p', 'RAG playground'],
      ['b', 'Memory browser'],
      ['e', 'Episodic replay'],
      ['f', 'Forget'],
      ['n', 'Namespaces'],
      ['o', 'Overview'],
    ] as const) {
      await page.keyboard.press('g');
      await page.keyboard.press(key);
      await heading(name);
    }
    await page.keyboard.press('?');
    await page.getByRole('row', { name: '? this list' }).waitFor();
    await page.getByLabel('Single-key shortcuts are on').uncheck();
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await page.keyboard.press('?');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await heading('Overview');
  },
);

browserTest(
  'the memory dashboard asks once for the key of a backend and keeps it out of the URL',
  async (browser) => {
    await using closed = await memoryBackend({ docs: DOCUMENTS, pages: MEMORY_PAGES, key: 'right-key' });
    const { page } = await watchedPage(browser, closed.url);
    const addresses: string[] = [];
    page.on('request', (request) => void addresses.push(request.url()));
    await page.goto(`${closed.url}/ui/`);
    await page.getByLabel('Key').fill('wrong-key');
    await page.keyboard.press('Enter');
    await page.getByText('the bearer token is wrong').waitFor();
    await expectAccessible(page);
    await page.getByLabel('Key').fill('right-key');
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: 'documents 3' }).waitFor();
    await page.reload();
    await page.getByRole('row', { name: 'documents 3' }).waitFor();
    expect(addresses.filter((address) => address.includes('right-key'))).toEqual([]);
  },
);

browserTest(
  'a refused state of the sync is asked for again when the page is shown again',
  async (browser) => {
    const { page } = await watchedPage(browser, backend.url, { isOwn: true });
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const times = (name: string): number => asked.filter((path) => path.endsWith(name)).length;
    await page.clock.install();
    await page.goto(`${backend.url}/ui/`);
    await page.getByText('✓ ready').waitFor();
    await page.route('**/ingest/status', (route) => route.fulfill({ status: 401, body: 'another key' }));
    await page.clock.fastForward(10_000);
    await page.getByText('The key was rejected').waitFor();
    const refused = times('/ingest/status');
    for (let round = 0; round < 2; round += 1) {
      const known = times('/stats');
      await page.clock.fastForward(10_000);
      await until(() => times('/stats') > known);
    }
    expect(times('/ingest/status')).toBe(refused);
    await page.unrouteAll();
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText('The key was rejected').waitFor({ state: 'hidden' });
  },
);

browserTest('every page with data of the memory says that the backend does not answer', async (browser) => {
  const { page } = await watchedPage(browser, backend.url, {});
  await page.route('**/api/memory/**', (route) => route.abort());
  for (const path of [
    '',
    'browser',
    'browser?id=x',
    'graph',
    'replay',
    'replay?session=x',
    'replay?text=x',
    'forget?about=x',
    'namespaces',
  ]) {
    await page.goto(`${backend.url}/ui/${path}`);
    await page
      .getByRole('alert')
      .getByText(`The memory backend at ${backend.url} does not answer`)
      .first()
      .waitFor();
  }
  await page.goto(`${backend.url}/ui/playground`);
  await page.getByLabel('Query').fill('port');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('does not answer').first().waitFor();
});

browserTest(
  'an empty memory shows which tools to call, and an unreachable backend is shown with its address',
  async (browser) => {
    const empty = await memoryBackend({ pages: MEMORY_PAGES });
    const { page } = await watchedPage(browser, empty.url);
    await page.goto(`${empty.url}/ui/graph`);
    await page.getByText(`curl ${empty.url}/api/memory/ingest/docs`).waitFor();
    await page.goto(`${empty.url}/ui/replay`);
    await page.getByText('"name": "store_episodic"').waitFor();
    await page.goto(`${empty.url}/ui/`);
    await page.getByText('Nothing is stored yet').waitFor();
    await empty[Symbol.asyncDispose]();
    const alert = page.getByRole('alert');
    await alert.getByText(`The memory backend at ${empty.url} does not answer`).waitFor();
    await alert.getByText('agctl memory-backend serve').waitFor();
  },
);
