import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { type AdminUi, adminUi } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-charts.test.ts');

let ui: AdminUi;
beforeAll(async () => {
  ui = await adminUi();
  await ui.traffic();
});
afterAll(() => ui[Symbol.asyncDispose]());

const chart = (page: Page, name: RegExp) => page.getByRole('region', { name });

async function open(page: Page, path: string): Promise<void> {
  await page.goto(`${ui.url}${path}`);
  await chart(page, /^Requests per/)
    .locator('canvas')
    .waitFor();
}

browserTest(
  'a chart names the period and the values of a bucket, under the pointer and for the arrow keys',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, ui.gate.admin);
    await open(page, '/');
    const requests = chart(page, /^Requests per 30 s/);
    const slider = requests.getByRole('slider');
    await slider.focus();
    // Of the requests in one of the newest buckets, the one that nobody answers failed.
    await until(async () => {
      if (/, answered \d, refused \d, errors 1$/.test((await slider.getAttribute('aria-valuetext')) ?? ''))
        return true;
      await page.keyboard.press('ArrowLeft');
      return false;
    });
    await page.keyboard.press('Home');
    expect(await slider.getAttribute('aria-valuenow')).toBe('0');
    expect(await slider.getAttribute('aria-valuetext')).toMatch(/, answered 0, refused 0, errors 0$/);
    await page.keyboard.press('ArrowRight');
    expect(await slider.getAttribute('aria-valuenow')).toBe('1');
    await requests.getByText(/\d\d:\d\d:\d\d – \d\d:\d\d:\d\d/).waitFor();
    const box = await slider.boundingBox();
    if (box === null) throw new Error('the chart is not displayed');
    let x = box.x + box.width - 16;
    await until(async () => {
      x -= 8;
      await page.mouse.move(x, box.y + 40);
      return (await requests.locator('.key .bad').innerText()).endsWith('errors 1');
    });
    await expectAccessible(page);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'a period selected in a chart is shown by all charts, and its requests can be listed',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await open(page, '/usage');
    await chart(page, /^Requests per 30 s/)
      .getByRole('slider')
      .focus();
    await page.keyboard.press('End');
    await page.keyboard.press('Shift+ArrowLeft');
    await page.keyboard.press('Shift+ArrowLeft');
    await page.keyboard.press('Enter');
    await chart(page, /^Requests per 3 s/).waitFor();
    await page.getByRole('button', { name: 'Whole period' }).waitFor();
    await page.reload();
    await chart(page, /^Requests per 3 s/).waitFor();
    await page.getByRole('link', { name: 'Requests of this period' }).click();
    await page.getByText('8 of 8 requests').waitFor();
    expect(new URL(page.url()).searchParams.get('from')).toMatch(/^\d{4}-/);
    await page.getByRole('button', { name: 'show any time' }).click();
    expect(new URL(page.url()).search).toBe('');
  },
);

browserTest(
  'a period can be selected with the pointer, and Escape shows the whole period',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await open(page, '/usage');
    const slider = chart(page, /^Requests per 30 s/).getByRole('slider');
    // Waits until the chart no longer moves.
    await slider.hover();
    const box = await slider.boundingBox();
    if (box === null) throw new Error('the chart is not displayed');
    await page.mouse.move(box.x + box.width * 0.4, box.y + 60);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.6, box.y + 60, { steps: 5 });
    await page.mouse.up();
    await page.getByText('There was no request in this period.').waitFor();
    await page.keyboard.press('Escape');
    await chart(page, /^Requests per 30 s/).waitFor();
  },
);

browserTest('the overview shows rate, errors, latency, tokens and cost', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await open(page, '/');
  const activity = page.getByRole('region', { name: 'Activity' });
  expect((await activity.locator('.tiles').innerText()).replaceAll(/\s+/g, ' ')).toMatch(
    /^Requests 8 [\d.]+ per (?:min|s) Errors ✗ 1 13 % Refused ! 2 25 % Latency p95 \d+ ms Tokens 19 12 in, 7 out Cost \$0\.000024 Open/,
  );
  expect(await page.getByRole('region', { name: 'Over time' }).locator('canvas').count()).toBe(4);
});

browserTest(
  'rows of requests name tool, model and target on a phone, and columns are as wide as their content',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin, { viewport: { width: 390, height: 780 } });
    await page.goto(`${ui.url}/requests`);
    await page.getByRole('cell', { name: 'acme-mini · openai' }).waitFor();
    await page.getByRole('cell', { name: 'GET /private/b' }).waitFor();
    await page.setViewportSize({ width: 1920, height: 1000 });
    await page.getByRole('columnheader', { name: 'Target' }).waitFor();
    const cut = await page.evaluate(
      `[...document.querySelectorAll('.virtual td, .virtual th')].filter((cell) => cell.scrollWidth > cell.clientWidth).length`,
    );
    expect(cut).toBe(0);
  },
);
