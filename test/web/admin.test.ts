import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_PAGES, type AdminUi, adminUi } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { covers } from '../kit/verifies.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

covers('gateway.admin.ui');

const { browserTest } = sharedBrowser('test/web/admin.test.ts');

let ui: AdminUi;
beforeAll(async () => {
  ui = await adminUi();
  await ui.traffic();
});
afterAll(() => ui[Symbol.asyncDispose]());

/** A text that shows that the page has its content. */
const READY: readonly (readonly [path: string, title: string, shown: string])[] = [
  ['/', 'Overview', '/private*'],
  ['/requests', 'Requests', '/private/b'],
  ['/usage', 'Usage', 'By model'],
  ['/trace', 'Trace', 'Nothing has been traced yet'],
  ['/system', 'System', 'in use'],
];

const shows = (page: Page, text: string): Promise<void> => page.getByText(text).first().waitFor();

for (const [path, title, shown] of READY)
  browserTest(
    `${title} opens by its URL, is accessible in both themes, fits a phone screen and contacts no other host`,
    async (browser) => {
      const { page, elsewhere, problems } = await watchedPage(browser, ui.gate.admin);
      await page.goto(`${ui.url}${path}`);
      await shows(page, shown);
      expect(await page.getByRole('heading', { level: 1 }).innerText()).toBe(title);
      expect(await page.title()).toBe(`${title} · agctl`);
      await expectAccessible(page);
      await page.setViewportSize({ width: 390, height: 780 });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
      expect({ elsewhere, problems }).toEqual({ elsewhere: [], problems: [] });
    },
  );

browserTest('the overview page shows what is served, its state and its problems', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/`);
  const gateway = page.getByRole('region', { name: 'Gateway default' });
  await gateway.getByText('tools', { exact: true }).waitFor();
  expect(await gateway.getByText('ready').count()).toBe(2);
  expect(await gateway.getByRole('list', { name: 'Policies' }).last().innerText()).toBe(
    'authorization\ndirectResponse',
  );
  await page.getByRole('region', { name: 'Gateway llm' }).getByText('oaiCompat').waitFor();
  await gateway.getByText(`http://127.0.0.1:${ui.gate.ports[0]}/mcp`).waitFor();
  await page.getByText(`http://127.0.0.1:${ui.gate.ports[1]}/v1`, { exact: true }).waitFor();
  await page
    .getByText(/^Routes and tools: of the last \d+ requests, since .+\. Models: since the start/)
    .waitFor();
  await gateway.getByRole('link', { name: '1 request, ✗ 1 error' }).click();
  await page.getByRole('row', { name: /503/ }).waitFor();
  expect(await page.getByRole('row').count()).toBe(2);
});

browserTest('the usage page shows tokens, cost and errors in charts and tables', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/usage`);
  const model = page.getByRole('row', { name: /^acme-mini/ });
  await model.waitFor();
  // 12 tokens at 0.6 and 7 at 2.4 dollars a million.
  expect((await model.innerText()).split(/\s+/).slice(0, 7)).toEqual([
    'acme-mini',
    '1',
    '0',
    '0',
    '12',
    '7',
    '$0.000024',
  ]);
  const gone = page.getByRole('row', { name: /^gone/ });
  expect(await gone.innerText()).toContain('✗ 1');
  const tokens = page.getByRole('region', { name: 'Tokens' });
  await tokens.getByRole('tab', { name: 'Table' }).click();
  expect((await tokens.getByRole('row').nth(1).innerText()).split(/\s+/).slice(1)).toEqual(['12', '7']);
});

describe('the system page', () => {
  browserTest('the system page changes a log level temporarily and resets it', async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/system`);
    const before = ui.gate.directives.current;
    await page.getByRole('combobox', { name: 'Level', exact: true }).selectOption('trace');
    await page.getByLabel('How long').selectOption('1m');
    await page.getByRole('button', { name: 'Change' }).click();
    await page.getByText(/The log level is .*trace for 1 minute/).waitFor();
    expect(ui.gate.directives.current).toMatch(/\btrace$/);
    await page.getByRole('button', { name: 'Undo' }).click();
    await until(() => ui.gate.directives.current === before);
  });

  browserTest(
    'the system page opens limits that are nearly reached, but not those of what keeps the latest',
    async (browser) => {
      const { page } = await watchedPage(browser, ui.gate.admin);
      const bounds = [
        { name: 'admin.recentRequests', used: 1000, max: 1000, keepsLatest: true },
        { name: 'admin.streams', used: 1, max: 32 },
        { name: 'cel.patterns', used: 500, max: 500, keepsLatest: true },
        { name: 'mcp.sessions', used: 90, max: 100 },
      ];
      await page.route('**/memory', async (route) => {
        const answer = await route.fetch();
        await route.fulfill({ json: { ...((await answer.json()) as object), bounds } });
      });
      await page.goto(`${ui.url}/system`);
      const parts = page.locator('.kind-of-problem');
      await parts.first().waitFor();
      expect(await parts.locator('summary').allInnerTexts()).toEqual([
        'admin 2 limits, at most 3 % in use',
        'cel 1 limit, keeps the latest',
        'mcp 1 limit, at most 90 % in use',
      ]);
      const open = (await parts.all()).map((part) => part.getAttribute('open'));
      expect(await Promise.all(open)).toEqual([null, null, '']);
      await parts.first().locator('summary').click();
      await page.getByRole('row', { name: 'admin.recentRequests keeps the latest 1,000 1,000' }).waitFor();
      await expectAccessible(page);
    },
  );

  browserTest('what refuses the user is not asked again until the page is shown again', async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin, { isOwn: true });
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const times = (path: string): number => asked.filter((each) => each === path).length;
    const refused = { status: 403, body: 'the role `viewer` is needed' };
    for (const path of ['requests', 'memory'])
      await page.route(`**/${path}`, (route) => route.fulfill(refused));
    await page.clock.install();
    await page.goto(`${ui.url}/system`);
    await page.getByText('The gateway refuses.').waitFor();
    await page.getByText('The memory of the gateway could not be read').waitFor();
    for (let round = 0; round < 3; round += 1) {
      const known = times('/api/overview');
      await page.clock.fastForward(10_000);
      await until(() => times('/api/overview') > known);
    }
    expect([times('/api/requests'), times('/memory')]).toEqual([1, 1]);
    await page.unrouteAll();
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText('Resident').waitFor();
    await page.getByText('The gateway refuses.').waitFor({ state: 'hidden' });
  });

  browserTest('the system page shows an error for an invalid log level', async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/system`);
    await page.getByLabel('Part of the gateway').fill('a=b=c');
    await page.getByRole('button', { name: 'Change' }).click();
    await page.locator('#log-problem').getByText('a=b=c').waitFor();
  });

  browserTest('the system page downloads a heap profile as a file', async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/system`);
    await page.getByLabel('Seconds', { exact: true }).fill('1');
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Record heap profile' }).click(),
    ]);
    expect(file.suggestedFilename()).toBe('heap.pprof');
    const bytes = readFileSync(await file.path());
    expect([...bytes.subarray(0, 2)]).toEqual([0x1f, 0x8b]);
  });

  browserTest(
    'the system page stops the gateway only after the confirmation word is typed',
    async (browser) => {
      await using other = await adminUi();
      const { page } = await watchedPage(browser, other.gate.admin);
      await page.goto(`${other.url}/system`);
      await page.getByRole('button', { name: 'Stop …' }).click();
      const stop = page.getByRole('button', { name: 'Stop it' });
      await page.getByLabel(/^Type shutdown/).fill('shut');
      expect(await stop.isDisabled()).toBe(true);
      expect((await other.get('/files/still-there')).status).toBe(200);
      await page.getByLabel(/^Type shutdown/).fill('shutdown');
      await stop.click();
      await page.getByText('The gateway stops').waitFor();
      await expect(until(async () => (await other.get('/files/gone')).status === 0)).rejects.toThrow(
        // One that comes while the process ends is cut.
        /ECONNREFUSED|ECONNRESET|socket hang up/,
      );
    },
  );
});

browserTest(
  'the admin pages request their data once, while the application is still loading',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const overview = page.waitForRequest('**/api/overview');
    const requests = page.waitForRequest('**/api/requests');
    await page.route('**/assets/app-*', async (route) => {
      await Promise.all([overview, requests]);
      await route.continue();
    });
    await page.goto(`${ui.url}/`);
    await shows(page, '/private*');
    expect(asked.filter((path) => path === '/api/overview')).toHaveLength(1);
  },
);

test('the first load of the admin pages is small', () => {
  const folder = `${ADMIN_PAGES}/assets`;
  const page = readFileSync(`${ADMIN_PAGES}/index.html`, 'utf8');
  const first = readdirSync(folder).filter((name) => page.includes(name));
  expect(first.length).toBeGreaterThan(1);
  const size = first.reduce((sum, name) => sum + gzipSync(readFileSync(`${folder}/${name}`)).length, 0);
  expect(size).toBeLessThan(150 * 1024);
});

test('scripts of the admin pages are sent compressed to clients that accept it', async () => {
  const page = await send(`${ui.url}/`);
  const path = /src="\/ui(\/assets\/[^"]+\.js)"/.exec(page.text)?.[1] ?? '';
  const headersFor = async (encoding: string) =>
    (await send(`${ui.url}${path}`, { headers: { 'accept-encoding': encoding } })).headers;
  expect(await headersFor('gzip, br')).toMatchObject({
    'content-encoding': 'gzip',
    'content-type': expect.stringContaining('javascript'),
    'cache-control': expect.stringContaining('immutable'),
    vary: expect.stringMatching(/accept-encoding/i),
  });
  expect(await headersFor('identity')).not.toHaveProperty('content-encoding');
});
