import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const YAML = `# what we serve
config: {adminAddr: off}
gateways:
  edge:
    port: 0
    routes:
      - name: hello
        policies:
          directResponse: {body: hello}
          apiKey: {keys: [{key: client-key-123456}]}
`;

const { browserTest } = sharedBrowser('test/web/admin-config.test.ts');

interface Open extends AsyncDisposable {
  readonly page: Page;
  readonly problems: readonly string[];
  readonly file: string;
}

async function open(browser: Browser, { uiWrite = true, width = 1000, query = '' } = {}): Promise<Open> {
  const folder = await temporaryFolder();
  const running = await gateway(YAML, { admin: true, uiWrite, folder: folder.path, webApp: ADMIN_PAGES });
  const { page, problems } = await watchedPage(browser, running.admin, { viewport: { width, height: 780 } });
  await page.goto(`${running.admin}/ui/config${query}`);
  await editorOf(page).waitFor();
  return {
    page,
    problems,
    file: join(folder.path, 'test.yaml'),
    [Symbol.asyncDispose]: async () => {
      await running.close();
      await folder.remove();
    },
  };
}

const editorOf = (page: Page) => page.getByRole('textbox', { name: 'Configuration, YAML' });

/** Clicks at the end of a line and types. */
async function typeAfter(page: Page, line: string, text: string): Promise<void> {
  await editorOf(page).getByText(line, { exact: false }).last().click();
  await page.keyboard.press('End');
  await page.keyboard.type(text);
}

browserTest(
  'the config page shows problems in the gutter and the list while typing, and each links to its position',
  async (browser) => {
    await using ui = await open(browser);
    const { page, problems } = ui;
    await page.getByText(/^! 2 warnings/).waitFor();
    await typeAfter(page, 'port: 0', '\nprot: 1');
    await page.getByText(/^✗ 1 error/).waitFor();
    await page.locator('.cm-lint-marker-error').waitFor();
    const item = page.getByRole('button', { name: /AGW0101 line 6/ });
    await item.click();
    // The cursor is at the key.
    await page.keyboard.press('Delete');
    await page.keyboard.type('x');
    await editorOf(page).getByText('xrot').waitFor();
    // Undo, all of it.
    for (let count = 0; count < 6; count += 1) await page.keyboard.press('Control+z');
    await page.getByText(/^! 2 warnings/).waitFor();
    expect(await editorOf(page).innerText()).not.toContain('rot');
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the config page shows a diff, writes the file with its secrets and comments, and asks for a restart',
  async (browser) => {
    await using ui = await open(browser);
    const { page, file, problems } = ui;
    expect(await editorOf(page).innerText()).not.toContain('client-key');
    expect(await page.getByRole('button', { name: 'Save …' }).isDisabled()).toBe(true);
    await typeAfter(page, '# what we serve', ', and more');
    await page.getByRole('button', { name: 'Save …' }).click();
    const review = page.getByRole('dialog', { name: 'What changes' });
    await review.getByText(', and more').waitFor();
    await expectAccessible(page);
    expect(readFileSync(file, 'utf8')).toBe(YAML);
    await review.getByRole('button', { name: 'Write the file' }).click();
    await page.getByText('Configuration written successfully').waitFor();
    expect(readFileSync(file, 'utf8')).toBe(YAML.replace('what we serve', 'what we serve, and more'));
    await page.getByRole('button', { name: 'Compare loaded and file' }).click();
    await page
      .getByRole('region', { name: 'Changes from the loaded configuration to the file' })
      .getByText(', and more')
      .waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the config page does not overwrite changes that another user made in the meantime',
  async (browser) => {
    await using ui = await open(browser);
    const { page, file } = ui;
    await typeAfter(page, '# what we serve', ', and more');
    // What is not saved is still there after a look at another page.
    await page.getByRole('link', { name: 'CEL' }).click();
    await page.getByRole('heading', { name: 'CEL', level: 1 }).waitFor();
    await page.goBack();
    await editorOf(page).getByText('# what we serve, and more').waitFor();
    writeFileSync(file, `${YAML}# theirs\n`);
    await page.getByRole('button', { name: 'Save …' }).click();
    await page.getByRole('button', { name: 'Write the file' }).click();
    await page.getByRole('alert').getByText('has changed').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Reload the file' }).click();
    await editorOf(page).getByText('# theirs').waitFor();
    expect(readFileSync(file, 'utf8')).toBe(`${YAML}# theirs\n`);
  },
);

browserTest('the overview page links a route to its line on the config page', async (browser) => {
  await using ui = await open(browser);
  const { page } = ui;
  await page.goto(page.url().replace('/config', '/'));
  await page.getByRole('link', { name: 'line 7' }).click();
  await editorOf(page).waitFor();
  await until(() => page.evaluate("document.activeElement.closest('.code') !== null"));
  await page.keyboard.type('@');
  await editorOf(page).getByText('@').waitFor();
  expect((await editorOf(page).innerText()).split('\n').findIndex((line) => line.includes('@'))).toBe(6);
});

browserTest(
  'without --ui-write the config page explains how to enable writing, is accessible and fits a phone screen',
  async (browser) => {
    await using ui = await open(browser, { uiWrite: false, width: 390 });
    const { page, problems } = ui;
    await page.getByText(/Cannot be saved from here.*--ui-write/).waitFor();
    await page.getByText(/^! 2 warnings/).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await expectAccessible(page);
    // Tab is not caught by the editor.
    await editorOf(page).focus();
    await page.keyboard.press('Tab');
    await until(() => page.evaluate("document.activeElement.closest('.code') === null"));
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the config page fixes a problem with a button, and its outline links to each section',
  async (browser) => {
    await using ui = await open(browser);
    const { page, problems } = ui;
    await typeAfter(page, 'name: hello', '\n  hostnmes: [a.example]\nmatchs: []');
    await page.getByRole('button', { name: 'Fix all 2' }).waitFor();
    await page.getByRole('button', { name: 'Fix: write hostnames' }).click();
    await editorOf(page).getByText('hostnames').waitFor();
    await page.keyboard.press('Control+z');
    await editorOf(page).getByText('hostnmes').waitFor();
    const outline = page.getByRole('group').filter({ hasText: 'Outline' });
    expect(await outline.getByRole('listitem').allInnerTexts()).toEqual([
      'gateways',
      'edge',
      'routes',
      'hello',
      'policies',
    ]);
    await outline.getByRole('button', { name: 'hello' }).click();
    await page.keyboard.type('@');
    await editorOf(page).getByText('@').waitFor();
    expect((await editorOf(page).innerText()).split('\n')[6]).toContain('@');
    await expectAccessible(page);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the config editor completes keys and values from the schema and describes keys',
  async (browser) => {
    await using opened = await open(browser);
    const { page, problems } = opened;
    const option = (name: string) => page.getByRole('option', { name });
    await typeAfter(page, 'directResponse', '\n');
    await page.keyboard.type('co');
    await option('cors').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Enter');
    await page.keyboard.type('allow');
    await option('allowOrigins').waitFor();
    await option('allowCredentials').click();
    await page.keyboard.type('t');
    await option('true').click();
    await editorOf(page).getByText('allowCredentials: true').waitFor();
    // A key that the mapping has already is not offered again.
    await typeAfter(page, 'allowCredentials: true', '\n');
    await page.keyboard.press('Control+Space');
    await option('allowOrigins').waitFor();
    expect(await option('allowCredentials').count()).toBe(0);
    await page.keyboard.press('Escape');
    await editorOf(page).getByText('port').hover();
    await page.getByText('Port to listen on.').waitFor();
    expect(problems).toEqual([]);
  },
);

/** Where the parts of a wrapped line begin: the left edges of its text on each visual line, the first one first. */
const EDGES = `(() => {
  const line = [...document.querySelector('.code').shadowRoot.querySelectorAll('.cm-line')].find((each) =>
    each.textContent.includes('rules: '),
  );
  const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
  const lefts = new Map();
  while (texts.nextNode()) {
    const { data } = texts.currentNode;
    for (let at = 0; at < data.length; at += 1) {
      if (data[at] === ' ') continue;
      const range = document.createRange();
      range.setStart(texts.currentNode, at);
      range.setEnd(texts.currentNode, at + 1);
      const { left, top } = range.getBoundingClientRect();
      const row = Math.round(top / 10);
      lefts.set(row, Math.min(left, lefts.get(row) ?? Infinity));
    }
  }
  return [...lefts].sort(([a], [b]) => a - b).map(([, left]) => left);
})()`;

browserTest('wrapped lines of the config page keep their indentation', async (browser) => {
  await using opened = await open(browser);
  const { page, problems } = opened;
  const rule = 'request.headers["x-team"] in ["red", "green", "blue", "violet"] && request.method != "PUT"';
  await typeAfter(page, 'directResponse', `\nauthorization: {rules: ['${rule}']}`);
  for (const width of [390, 700]) {
    await page.setViewportSize({ width, height: 780 });
    await until(async () => ((await page.evaluate(EDGES)) as number[]).length > 1);
    const [first = 0, ...others] = (await page.evaluate(EDGES)) as number[];
    for (const left of others) expect(left).toBeGreaterThanOrEqual(first - 1);
  }
  // Keys of pages, such as `g r`, are letters here.
  expect(new URL(page.url()).pathname).toBe('/ui/config');
  expect(problems).toEqual([]);
});

browserTest('texts of the config page have code instead of backticks', async (browser) => {
  await using opened = await open(browser);
  const { page, problems } = opened;
  await typeAfter(page, 'port: 0', '\nnowhere: 1');
  await page.getByRole('region', { name: 'Problems' }).getByText('nowhere').first().waitFor();
  await page.locator('.cm-lintRange-error').first().hover();
  const tooltip = page.locator('.cm-tooltip');
  await tooltip.locator('code').first().waitFor();
  expect(await tooltip.first().innerText()).not.toContain('`');
  // Descriptions of keys, too.
  await page.mouse.move(0, 0);
  await tooltip.first().waitFor({ state: 'hidden' });
  await typeAfter(page, '# what we serve', '\nui: 1');
  await page.keyboard.press('Escape');
  await editorOf(page).getByText('ui', { exact: true }).hover();
  await tooltip.locator('.about code').first().waitFor();
  expect(await tooltip.allInnerTexts()).not.toContainEqual(expect.stringContaining('`'));
  expect(await page.getByRole('main').innerText()).not.toContain('`');
  expect(problems).toEqual([]);
});
