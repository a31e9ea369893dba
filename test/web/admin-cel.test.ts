import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const YAML = `config: {adminAddr: off}
gateways:
  edge:
    port: 0
    routes:
      - policies:
          authorization: {rules: ['request.headers["x-team"] == "blue"']}
          directResponse: {body: hello}
`;

const { browserTest } = sharedBrowser('test/web/admin-cel.test.ts');

let running: TestGateway;
beforeAll(async () => {
  running = await gateway(YAML, { admin: true, webApp: ADMIN_PAGES });
});
afterAll(() => running.close());

const result = (page: Page) => page.getByRole('region', { name: 'Result' });

browserTest(
  'the CEL page evaluates an expression by keyboard alone and marks the position of an error',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin);
    await page.goto(`${running.admin}/ui/`);
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    await page.getByRole('heading', { level: 1, name: 'CEL' }).waitFor();
    // The first field must be there, or Tab reaches something else.
    await until(() =>
      page.locator('label', { hasText: 'Expression' }).locator('textarea, input').isEditable(),
    );
    // A page takes the focus after it is drawn.
    await page.locator('h1:focus').waitFor();
    await page.keyboard.press('Tab');
    await page.locator('label:focus-within', { hasText: 'Expression' }).waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('jwt.sub + "!"');
    await page.keyboard.press('Control+Enter');
    await result(page).getByText('"alice!"').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('jwt.sub ++ nothing');
    await page.keyboard.press('Control+Enter');
    await result(page).getByText('AGW0201').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('request.path == nothing');
    await page.keyboard.press('Control+Enter');
    await result(page).locator('mark', { hasText: 'nothing' }).waitFor();
    await page.getByRole('button', { name: 'Go to the position' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.type('"/mcp"');
    await page.keyboard.press('Control+Enter');
    await result(page).getByText('bool true').waitFor();
    await expectAccessible(page);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the CEL page offers examples and samples, reports invalid JSON, shows results as text and fits a phone screen',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin, {
      viewport: { width: 390, height: 780 },
    });
    await page.goto(`${running.admin}/ui/cel`);
    await page.getByRole('button', { name: /from the private network/ }).click();
    await result(page).getByText('bool false').waitFor();
    await page.getByLabel('Variables, JSON').fill('{"request": {"path": "<img src=x onerror=alert(1)>"}}');
    await page.getByLabel('Expression').fill('request.path');
    await page.keyboard.press('Control+Enter');
    await result(page).getByText('<img src=x').waitFor();
    expect(await page.locator('img').count()).toBe(0);
    await page.getByLabel('Variables, JSON').fill('{');
    await page.keyboard.press('Control+Enter');
    await result(page).getByText('not valid JSON').waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest('a trace step opens the CEL page with its expression and variables', async (browser) => {
  const { page } = await watchedPage(browser, running.admin);
  await page.goto(`${running.admin}/ui/trace`);
  await page.getByRole('button', { name: 'Trace the next request' }).click();
  await page.getByText('Waiting for a request.').waitFor();
  await send(running.url, { headers: { 'x-team': 'red' } });
  await page
    .getByRole('button', { name: /x-team/ })
    .first()
    .click();
  await page.getByRole('button', { name: 'Open in the CEL page' }).click();
  await page.getByRole('heading', { level: 1, name: 'CEL' }).waitFor();
  expect(await page.getByLabel('Expression').inputValue()).toBe('request.headers["x-team"] == "blue"');
  await page.getByRole('button', { name: 'Evaluate' }).click();
  await result(page).getByText('bool false').waitFor();
});
