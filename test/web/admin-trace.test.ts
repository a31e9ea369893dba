import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { type AdminUi, adminUi } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-trace.test.ts');

let ui: AdminUi;
beforeAll(async () => {
  ui = await adminUi();
});
afterAll(() => ui[Symbol.asyncDispose]());

const watched = (): boolean => ui.gate.running.traceSubscribers.active;
const trace = (page: Page) => page.getByRole('article', { name: 'Trace' });

browserTest(
  'the trace page shows by keyboard alone which policy rejected a request and why',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/`);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.getByRole('heading', { name: 'Trace', level: 1 }).waitFor();
    // The shortcuts of the page work once it has rendered: the key is lost before.
    await until(async () => {
      await page.keyboard.press('/');
      // Not `waitForFunction`, whose later looks the content security policy refuses, which is a problem in the page.
      return page
        .locator('input:focus, textarea:focus')
        .waitFor({ timeout: 1_000 })
        .then(() => true)
        .catch(() => false);
    });
    await page.keyboard.type('request.path.startsWith("/private")');
    await page.keyboard.press('Enter');
    await page.getByText('Waiting for a request.').first().waitFor();
    await page.keyboard.press('Escape');
    await until(() => watched());
    await ui.get('/files/not-this-one');
    await ui.get('/private/b', { 'x-team': 'red' });

    await trace(page).getByText('403, denied by authorization').waitFor();
    const way = await trace(page).getByRole('list', { name: 'Stages of the request' }).innerText();
    expect(way.split('\n')).toEqual(expect.arrayContaining(['✗ authorization', '○ backend']));
    // The deciding step is shown with its rules.
    const step = trace(page).getByRole('region', { name: /^Step/ });
    await step.getByText('✗ false').waitFor();
    await step.getByText('decided').waitFor();
    await expectAccessible(page);

    await page.keyboard.press('Tab');
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('k');
    await step.getByRole('heading', { name: /^cel/ }).waitFor();
    expect(await step.getByRole('table').innerText()).toContain('"red"');
    await page.keyboard.press('e');
    await step.getByText('"type": "cel"').waitFor();
    await page.keyboard.press('.');
    expect(
      await trace(page)
        .getByRole('button', { name: /cel request/ })
        .count(),
    ).toBe(0);
    await page.keyboard.press('!');
    await step.getByRole('heading', { name: /^(authz|done)/ }).waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest('the trace page shows why other routes did not match and what was changed', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await traced(page, '/files/x');
  await trace(page)
    .getByRole('button', { name: /route selected/ })
    .click();
  const step = trace(page).getByRole('region', { name: /^Step/ });
  const other = step.getByRole('row', { name: /private/ });
  expect((await other.innerText()).length).toBeGreaterThan('gateway/default/default/private'.length + 5);
  await trace(page)
    .getByRole('button', { name: /initial request/ })
    .click();
  await step.getByRole('tab', { name: 'Changes' }).click();
  await step.getByRole('row', { name: /request\.method/ }).waitFor();
});

browserTest('the trace page shows the error of an invalid expression next to its field', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/trace`);
  await page.getByText('Only certain requests, or several').click();
  const input = page.getByLabel(/^Which request/);
  await input.fill('request.path ==');
  await input.press('Enter');
  await page.getByText('✗ invalid expression').waitFor();
  expect(await input.getAttribute('aria-invalid')).toBe('true');
});

browserTest('the trace page records several requests, each as its own trace', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/trace`);
  await page.getByText('Only certain requests, or several').click();
  await page.getByLabel('How many').fill('3');
  await page.getByRole('button', { name: 'Trace the next request' }).click();
  await until(() => watched());
  await Promise.all([ui.get('/files/1'), ui.get('/files/2'), ui.get('/gone')]);
  const list = page.getByRole('navigation', { name: 'Traces of this visit' });
  await list.getByText('503').waitFor();
  expect(await list.getByRole('button').count()).toBe(3);
  await until(() => !watched());
  await list.getByRole('button', { name: /files\/1/ }).click();
  await trace(page).getByRole('heading', { name: 'GET /files/1' }).waitFor();
});

browserTest('traces saved by the trace page open in the terminal, and vice versa', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await using folder = await temporaryFolder();
  await traced(page, '/private/b');
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    trace(page).getByRole('button', { name: 'Save' }).click(),
  ]);
  expect(file.suggestedFilename()).toMatch(/^trace-\d{8}-\d{6}\.jsonl$/);
  const saved = join(folder.path, 'browser.jsonl');
  await file.saveAs(saved);
  const shown = await cli(['proxy', 'trace', '--file', saved]);
  expect(shown.code).toBe(0);
  expect(shown.stdout).toContain('/private/b');
  expect(shown.stdout).toMatch(/authorization +.*deni/i);

  const admin = new URL(ui.gate.admin).host;
  const other = join(folder.path, 'terminal.jsonl');
  const running = cli(['proxy', 'trace', '--admin', admin, '--save', other]);
  await until(() => watched());
  await ui.get('/files/from-terminal');
  expect((await running).code).toBe(0);
  await page.getByLabel('Open a saved trace').setInputFiles(other);
  await trace(page).getByRole('heading', { name: 'GET /files/from-terminal' }).waitFor();
  expect(readFileSync(other, 'utf8').trimEnd().split('\n').length).toBe(
    await trace(page).locator('[data-step]').count(),
  );

  const none = join(folder.path, 'none.jsonl');
  writeFileSync(none, 'not a trace\n');
  await page.getByLabel('Open a saved trace').setInputFiles(none);
  await page.getByText('none.jsonl contains no trace').waitFor();
});

browserTest('the trace page opens files with unexpected contents and shows them as text', async (browser) => {
  const { page, problems } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/trace`);
  const markup = '<img src=x onerror="document.title=1">\u202e';
  // Fields of unexpected types.
  const odd: readonly unknown[] = [
    markup,
    7,
    null,
    [],
    {},
    [markup, 3],
    { error: markup },
    { type: 'skip', reason: 1 },
  ];
  const types = [
    'requestSnapshot',
    'cel',
    'routeSelection',
    'policySelection',
    'policy',
    'authorizationResult',
    markup,
  ];
  const names = [
    'expr',
    'parts',
    'result',
    'rules',
    'skippedRoutes',
    'effectivePolicy',
    'requestState',
    'status',
  ];
  const events = types.flatMap((type) =>
    odd.map((value) => ({
      eventStart: value,
      eventEnd: value,
      scope: value,
      message: { type, ...Object.fromEntries(names.map((name) => [name, value])) },
    })),
  );
  const lines = events.map((event) => JSON.stringify(event)).join('\n');
  await page.getByLabel('Open a saved trace').setInputFiles({
    name: 'odd.jsonl',
    mimeType: 'text/plain',
    buffer: Buffer.from(`${lines}\nnot JSON\n{"half":`),
  });
  await trace(page).getByText('no end seen').waitFor();
  const steps = trace(page).locator('[data-step]');
  expect(await steps.count()).toBe(events.length);
  for (const view of ['v', 's', 'd']) {
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press(view);
    for (let step = 0; step < events.length; step += 1) await page.keyboard.press('k');
    for (let step = 0; step < events.length; step += 1) await page.keyboard.press('j');
  }
  expect(await page.getByText('This page has failed').count()).toBe(0);
  expect(await page.locator('img, main script').count()).toBe(0);
  expect(await page.title()).toBe('Trace · agctl');
  expect(problems).toEqual([]);
});

browserTest(
  'the trace page reports a gateway that stops while it waits and keeps what it has received',
  async (browser) => {
    const other = await adminUi();
    const { page } = await watchedPage(browser, other.gate.admin);
    await page.goto(`${other.url}/trace`);
    await page.getByRole('button', { name: 'Trace the next request' }).click();
    await page.getByText('Waiting for a request.').first().waitFor();
    await other[Symbol.asyncDispose]();
    await page.getByText('The connection to the gateway was lost while this page waited').waitFor();
  },
);

browserTest(
  'the trace page has one button, and opens recent requests and traces the next one like them',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, ui.gate.admin);
    await ui.get('/private/b', { 'x-team': 'red' });
    await page.goto(`${ui.url}/trace`);
    // What else can be chosen is closed.
    await page.getByRole('button', { name: 'Trace the next request' }).waitFor();
    expect(await page.getByLabel(/^Which request/).isVisible()).toBe(false);
    expect(await page.getByRole('main').innerText()).not.toMatch(/\barm/i);
    const recent = page.getByRole('region', { name: 'Recent requests' });
    const row = recent.getByRole('listitem').filter({ hasText: '/private/b' }).first();
    await row.getByText('authorization failed').waitFor();
    await row.getByRole('button').click();
    const drawer = page.getByRole('dialog', { name: 'GET /private/b' });
    await drawer.getByRole('row', { name: /^error\.detail/ }).waitFor();
    await expectAccessible(page);
    await drawer.getByRole('link', { name: 'Trace the next one like this' }).click();
    await drawer.waitFor({ state: 'hidden' });
    await page.getByText('Waiting for a request.').waitFor();
    await until(() => watched());
    // A reload does not wait again.
    expect(new URL(page.url()).searchParams.has('start')).toBe(false);
    await ui.get('/files/another');
    await ui.get('/private/b', { 'x-team': 'red' });
    await trace(page).getByText('403, denied by authorization').waitFor();
    await row.getByRole('link', { name: 'Trace the next one like this' }).click();
    await page.getByRole('button', { name: 'Stop waiting' }).click();
    await until(() => !watched());
    await page.getByRole('button', { name: 'Trace the next such request' }).waitFor();
    expect(problems).toEqual([]);
  },
);

/** Asks for a trace, sends a request, and waits for its trace. */
async function traced(page: Page, path: string): Promise<void> {
  await page.goto(`${ui.url}/trace`);
  await page.getByRole('button', { name: 'Trace the next request' }).click();
  await page.getByText('Waiting for a request.').first().waitFor();
  await ui.get(path);
  await trace(page)
    .getByRole('heading', { name: `GET ${path}` })
    .waitFor();
  await trace(page).getByRole('button', { name: /done/ }).waitFor();
}
