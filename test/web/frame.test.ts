import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { type AdminUi, adminUi } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/frame.test.ts');

let ui: AdminUi;
beforeAll(async () => {
  ui = await adminUi();
  await ui.traffic();
});
afterAll(() => ui[Symbol.asyncDispose]());

const background = (page: Page): Promise<string> =>
  page.evaluate('getComputedStyle(document.documentElement).backgroundColor');

browserTest(
  'the theme follows the system until light or dark is chosen, which is remembered',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/`);
    const theme = page.getByRole('combobox', { name: 'Theme' });
    await theme.waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await background(page);
    await page.emulateMedia({ colorScheme: 'light' });
    const light = await background(page);
    expect(light).not.toBe(dark);
    await theme.selectOption('dark');
    expect(await background(page)).toBe(dark);
    await page.reload();
    await theme.waitFor();
    expect(await background(page)).toBe(dark);
    await page.emulateMedia({ colorScheme: 'dark' });
    await theme.selectOption('light');
    expect(await background(page)).toBe(light);
  },
);

browserTest(
  'the command palette opens pages, routes, targets and settings by keyboard, and is accessible',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/`);
    await page.getByText('/private*').first().waitFor();
    await page.keyboard.press('Control+k');
    const input = page.getByRole('combobox', { name: /^Page, route/ });
    await page.getByRole('option', { name: 'notes MCP target' }).waitFor();
    await expectAccessible(page);
    await input.fill('trace');
    expect(await page.getByRole('option').first().innerText()).toMatch(/^Trace/);
    await input.fill('private requests');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/requests\?text=default%2Fprivate/);
    await input.waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    await input.fill('theme: dark');
    await page.keyboard.press('Enter');
    // The shortcut opens the palette only when it is closed.
    await input.waitFor({ state: 'detached' });
    expect(await page.getByRole('combobox', { name: 'Theme' }).inputValue()).toBe('dark');
    await page.keyboard.press('Control+k');
    await input.fill('no such thing');
    await page.getByText('Nothing has this name.').waitFor();
    await page.keyboard.press('Escape');
    await input.waitFor({ state: 'detached' });
    expect(problems).toEqual([]);
  },
);

browserTest('the command palette opens again when its shortcut follows a choice at once', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/`);
  await page.getByText('/private*').first().waitFor();
  await page.keyboard.press('Control+k');
  const input = page.getByRole('combobox', { name: /^Page, route/ });
  await input.fill('theme: dark');
  // Both keys in one task: the dialog's close event comes after the shortcut.
  await page.evaluate(`{
    const press = (target, key, ctrlKey) =>
      target.dispatchEvent(new KeyboardEvent('keydown', { key, ctrlKey, bubbles: true, cancelable: true }));
    press(document.activeElement, 'Enter', false);
    press(document, 'k', true);
  }`);
  await page.evaluate('new Promise((resolve) => setTimeout(resolve))');
  await input.fill('no such thing');
  await page.getByText('Nothing has this name.').waitFor();
});

browserTest('every page uses the width of the window, and none scrolls sideways', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  for (const width of [390, 820, 1920, 3840]) {
    await page.setViewportSize({ width, height: 1000 });
    await page.goto(`${ui.url}/requests`);
    await page.getByText('/private/b').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    const table = await page.locator('.virtual').boundingBox();
    const rest = width >= 1024 ? width - 320 : width - 40;
    expect(table?.width).toBeGreaterThan(rest);
  }
});

browserTest(
  'on a phone, a button opens the links to all pages, and a choice closes them',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, ui.gate.admin, {
      viewport: { width: 390, height: 780 },
    });
    await page.goto(`${ui.url}/`);
    const menu = page.getByRole('button', { name: 'Pages' });
    const link = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'System' });
    expect(await link.isVisible()).toBe(false);
    await menu.click();
    await link.waitFor();
    expect(await menu.getAttribute('aria-expanded')).toBe('true');
    await expectAccessible(page);
    await link.click();
    await page.getByRole('heading', { level: 1, name: 'System' }).waitFor();
    await link.waitFor({ state: 'hidden' });
    await page.setViewportSize({ width: 820, height: 780 });
    await link.waitFor();
    expect(await menu.isVisible()).toBe(false);
    expect(problems).toEqual([]);
  },
);

browserTest('every page says that the gateway does not answer', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin, {});
  await page.route('**/api/requests', (route) => route.abort());
  for (const path of [
    '',
    'requests',
    'usage',
    'trace',
    'mcp',
    'llm',
    'cel',
    'auth',
    'connect',
    'keys',
    'config',
    'system',
    'conversations',
  ]) {
    await page.goto(`${ui.url}/${path}`);
    await page.getByText('✗ The gateway does not answer at').waitFor();
  }
});
