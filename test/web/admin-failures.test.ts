import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { type AdminUi, adminUi } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { openSession } from '../kit/mcp.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

// Failures inside a response with status 200, and warnings that are not the cause of a failure.

const { browserTest } = sharedBrowser('test/web/admin-failures.test.ts');

let ui: AdminUi;
beforeAll(async () => {
  ui = await adminUi();
});
afterAll(() => ui[Symbol.asyncDispose]());

const trace = (page: Page) => page.getByRole('article', { name: 'Trace' });

browserTest('a failing tool call counts as an error on every page', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  const session = await openSession(`${ui.gate.url}/mcp`);
  await page.goto(`${ui.url}/trace`);
  await page.getByRole('button', { name: 'Trace the next request' }).click();
  await until(() => ui.gate.running.traceSubscribers.active);
  await session.request('tools/call', { name: 'files_fail', arguments: {} });
  const verdict = trace(page).getByText('200, the tool reported an error (isError), answered by stdio:files');
  await verdict.waitFor();
  expect(await verdict.getAttribute('class')).toBe('bad');
  await session.request('tools/call', {
    name: 'notes_fail',
    arguments: { code: -32000, message: 'not now' },
  });

  await page.goto(`${ui.url}/requests?status=errors`);
  await page.getByText('2 of 4 requests').waitFor();
  expect(await page.getByRole('row', { name: /✗ 200 failed/ }).count()).toBe(2);
  await expectAccessible(page);
  await page.goto(`${ui.url}/`);
  await page.locator('.tiles').getByText('✗ 2').waitFor();
  await page.getByRole('link', { name: '4 requests, ✗ 2 errors' }).waitFor();
  await page.goto(`${ui.url}/usage`);
  const route = page.getByRole('row', { name: /^tools/ });
  await route.waitFor();
  expect(await route.innerText()).toContain('✗ 2');
});

browserTest(
  'a missing price is not shown as the problem of a request, and long JSON does not overflow the page',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/trace`);
    const usage = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`tokens_${index}`, index]));
    const events = [
      { eventEnd: 0, severity: 'info', message: { type: 'requestStarted' } },
      { eventEnd: 8, severity: 'info', message: { type: 'requestFinished', status: 200, error: null } },
      {
        eventEnd: 9,
        severity: 'warn',
        message: { type: 'policyEvent', kind: 'llm_cost', details: { status: 'noCatalog', usage } },
      },
    ];
    await page.getByLabel('Open a saved trace').setInputFiles({
      name: 'llm.jsonl',
      mimeType: 'text/plain',
      buffer: Buffer.from(events.map((event) => `${JSON.stringify(event)}\n`).join('')),
    });
    const step = trace(page).getByRole('region', { name: /^Step/ });
    await step.getByRole('heading', { name: /^done/ }).waitFor();
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('!');
    await step.getByRole('heading', { name: /^done/ }).waitFor();
    await trace(page)
      .getByRole('button', { name: /llm_cost/ })
      .click();
    await step.getByRole('heading', { name: /^policy/ }).waitFor();
    for (const width of [390, 1200]) {
      await page.setViewportSize({ width, height: 780 });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    }
  },
);
