import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES, type AdminUi, adminUi } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { freePort } from '../kit/ports.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-requests.test.ts');

/** Markup, a script, a bidirectional override and a bell character. */
const HOSTILE =
  '=1+1<img src=x onerror="document.title=1">\u202e\u0007</table><script>document.title=1</script>';

let ui: AdminUi;
beforeAll(async () => {
  ui = await adminUi();
  await ui.traffic();
});
afterAll(() => ui[Symbol.asyncDispose]());

browserTest(
  'a row of the requests page names what was asked, of whom, by whom, and why it failed',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/requests`);
    const row = (name: RegExp) => page.getByRole('row', { name });
    await row(/initialize POST \/mcp 127\.0\.0\.1 tools$/).waitFor();
    await row(/acme-mini POST \/v1\/chat\/completions openai 127\.0\.0\.1 llm 12 → 7 \$0\.000024$/).waitFor();
    await row(/403 .* GET \/private\/b 127\.0\.0\.1 private authorization failed: .*x-team/).waitFor();
    await page.setViewportSize({ width: 820, height: 900 });
    await row(/403 .*GET \/private\/b \d+ ms authorization failed: .*x-team/).waitFor();
  },
);

browserTest(
  'the requests page shows requests live and can filter, pause, open and export them',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, ui.gate.admin);
    await page.goto(`${ui.url}/requests`);
    await page.getByText('8 of 8 requests').waitFor();
    await ui.get('/files/live.txt');
    await page.getByRole('row', { name: /live\.txt/ }).waitFor();

    await page.getByLabel('Status').selectOption('4');
    await page.getByText('2 of 9 requests').waitFor();
    await page.getByLabel('Text in any field').fill('BLUE');
    await page.getByText('1 of 9 requests').waitFor();
    expect(new URL(page.url()).search).toBe('?status=4&text=BLUE');
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export JSON Lines' }).click(),
    ]);
    const lines = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { 'http.path': '/private/b', 'http.status': 403 },
    ]);

    const [table] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).click(),
    ]);
    const [head = '', line = '', ...none] = readFileSync(await table.path(), 'utf8').split('\r\n');
    expect(line.split(',')[head.split(',').indexOf('http.path')]).toBe('/private/b');
    expect([head.split(',')[0], none]).toEqual(['time', ['']]);

    await page.getByLabel('Status').selectOption('');
    await page.getByLabel('Text in any field').fill('');
    await page.getByRole('button', { name: 'Pause' }).click();
    await ui.get('/files/unseen.txt');
    await page.getByRole('button', { name: 'Resume (1 new)' }).waitFor();
    expect(await page.getByRole('row', { name: /unseen\.txt/ }).count()).toBe(0);
    await page.getByRole('button', { name: 'Resume (1 new)' }).click();
    await page.getByRole('row', { name: /unseen\.txt/ }).waitFor();

    await page.getByRole('row', { name: /chat\/completions/ }).click();
    const drawer = page.getByRole('dialog', { name: 'POST /v1/chat/completions' });
    const cell = (name: string): Promise<string> =>
      drawer
        .getByRole('row', { name: new RegExp(`^${name}`) })
        .getByRole('cell')
        .innerText();
    expect(await cell('gen_ai.usage.input_tokens')).toBe('12');
    expect(await cell('gw.ai.usage.cost.total')).toBe('0.000024');
    expect(await cell('error')).toBe('–');
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'hidden' });
    expect(problems).toEqual([]);
  },
);

browserTest('the requests page can be used by keyboard alone', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  await page.goto(`${ui.url}/`);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await page.keyboard.press('g');
  await page.keyboard.press('r');
  await page.getByRole('row', { name: /chat\/completions/ }).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  const second = await dialog.getByRole('heading').innerText();
  await page.keyboard.press('k');
  const first = await dialog.getByRole('heading').innerText();
  expect([first, second]).not.toEqual([second, first]);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await page.keyboard.press('/');
  await page.keyboard.type('gjk');
  expect(await page.getByLabel('Text in any field').inputValue()).toBe('gjk');
});

browserTest('the requests page shows client input as text', async (browser) => {
  const { page, problems } = await watchedPage(browser, ui.gate.admin);
  const chat = { model: HOSTILE, messages: [{ role: 'user', content: 'Hi' }] };
  await fetch(`http://127.0.0.1:${ui.gate.ports[1]}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(chat),
  });
  for (const path of ['/', '/usage', '/requests?text=onerror']) {
    await page.goto(`${ui.url}${path}`);
    await page.locator('td, th').getByText('=1+1<img src=x').first().waitFor();
  }
  const [table] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Export CSV' }).click(),
  ]);
  // A spreadsheet must not evaluate client input as a formula.
  expect(readFileSync(await table.path(), 'utf8')).toContain(',"\'=1+1<img src=x onerror=""document');
  await page.getByRole('row', { name: /onerror/ }).click();
  await page.getByRole('dialog').getByText('⟨U+202E⟩␇').first().waitFor();
  expect(await page.locator('img, main script').count()).toBe(0);
  expect(await page.title()).toBe('Requests · agctl');
  expect(problems).toEqual([]);
});

browserTest('the requests page reports an unreachable gateway and reconnects to it', async (browser) => {
  const port = await freePort();
  const first = await adminUi({ port });
  const { page } = await watchedPage(browser, first.gate.admin);
  await first.get('/files/before.txt');
  await page.goto(`${first.url}/requests`);
  await page.getByRole('row', { name: /before\.txt/ }).waitFor();
  // The other pages are loaded before they are opened.
  await until(() =>
    page.evaluate(
      "performance.getEntriesByType('resource').some(({ name }) => name.includes('/assets/system-'))",
    ),
  );
  await first[Symbol.asyncDispose]();
  await page.getByText(`The gateway does not answer at http://127.0.0.1:${port}`).waitFor();
  await page.getByRole('link', { name: 'Trace' }).click();
  await page.getByText('Nothing has been traced yet').waitFor();
  await page.goBack();
  await using second = await adminUi({ port });
  await page.getByText('The gateway does not answer at').waitFor({ state: 'hidden' });
  await second.get('/files/after.txt');
  await page.getByRole('row', { name: /after\.txt/ }).waitFor();
  // Ids restart, but the earlier requests are kept.
  expect(await page.getByRole('row', { name: /before\.txt/ }).count()).toBe(1);
});

browserTest(
  'the requests page closes its stream in the background and catches up when it is visible again',
  async (browser) => {
    const { page } = await watchedPage(browser, ui.gate.admin, { isOwn: true });
    await page.clock.install();
    await page.goto(`${ui.url}/requests`);
    await page
      .getByRole('row', { name: /readme\.txt/ })
      .first()
      .waitFor();
    const look = (state: string): Promise<void> =>
      page.evaluate(`
      Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    `);
    const streams = async (): Promise<number | undefined> => {
      const { bounds } = (await (await fetch(`${ui.gate.admin}/memory`)).json()) as {
        bounds: { name: string; used: number }[];
      };
      return bounds.find(({ name }) => name === 'admin.streams')?.used;
    };
    const open = await streams();
    await look('hidden');
    await page.clock.fastForward(31_000);
    await until(async () => (await streams()) === (open ?? 0) - 1);
    await ui.get('/files/meanwhile.txt');
    await look('visible');
    await page.getByRole('row', { name: /meanwhile\.txt/ }).waitFor();
    expect(await page.getByRole('row', { name: /meanwhile\.txt/ }).count()).toBe(1);
  },
);

browserTest('the requests page without requests shows a command for the first one', async (browser) => {
  await using fresh = await adminUi();
  const { page } = await watchedPage(browser, fresh.gate.admin);
  await page.goto(`${fresh.url}/requests`);
  await page.getByText(`curl -sS ${fresh.gate.url}/mcp`).waitFor();
  await expectAccessible(page);
  await page.route('**/api/requests', (route) => route.abort());
  await page.reload();
  await page.getByText('Requests appear here when the gateway answers.').waitFor();
});

browserTest('the requests page scrolls and filters 50,000 requests without delay', async (browser) => {
  const { page } = await watchedPage(browser, ui.gate.admin);
  // Only once: a fulfilled response ends, and the page would reconnect repeatedly.
  await page.route(
    '**/api/requests',
    (route) => route.fulfill({ contentType: 'text/event-stream', body: manyRequests(50_000) }),
    { times: 1 },
  );
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  /** Seconds of processor time that the page has used. */
  const busy = async (): Promise<number> => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
  };
  await page.goto(`${ui.url}/requests`);
  await page.getByText('50,000 of 50,000 requests').waitFor();
  expect(await page.getByRole('row').count()).toBeLessThan(100);
  const before = await busy();
  await page.keyboard.press('j');
  await page.locator('[data-row]:focus').waitFor();
  await page.keyboard.press('End');
  const focused = page.locator('tr:has([data-row]:focus)');
  await focused.getByText('GET /file/1', { exact: true }).waitFor();
  await page.keyboard.press('ArrowUp');
  await focused.getByText('GET /file/2', { exact: true }).waitFor();
  await page.getByLabel('Text in any field').fill('/file/4242');
  await page.getByText('11 of 50,000 requests').waitFor();
  expect((await busy()) - before).toBeLessThan(1.5);
});

function manyRequests(count: number): string {
  const time = new Date().toISOString();
  return Array.from({ length: count }, (_, index) => {
    const fields = {
      'http.method': 'GET',
      'http.path': `/file/${index + 1}`,
      'http.status': 200,
      duration: '1ms',
    };
    return `event: request\ndata: ${JSON.stringify({ id: index + 1, time, fields })}\n\n`;
  }).join('');
}

const KEY = 'requests-key-123456';
/** Longer than a line of any screen. */
const RULE = `request.headers["x-team"] in [${Array.from({ length: 12 }, (_, at) => `"team-${at}-of-many"`).join(', ')}]`;

/** A gateway whose routes have no name, the name of a section, and a key. */
async function keyedGateway(): Promise<TestGateway> {
  const apiKey = {
    mode: 'strict',
    keys: [
      { key: KEY, metadata: { name: 'ann-laptop', user: 'ann' } },
      { key: 'another-key-123456', metadata: {} },
    ],
  };
  const routes = [
    { matches: [{ path: { pathPrefix: '/plain' } }], policies: { directResponse: { body: 'ok' } } },
    {
      name: 'keyed',
      matches: [{ path: { pathPrefix: '/keyed' } }],
      policies: { apiKey, authorization: { rules: [RULE] }, directResponse: { body: 'ok' } },
    },
  ];
  const models = [{ name: 'small', provider: 'echo' }];
  const config = { config: { adminAddr: 'off' }, gateways: { edge: { port: 0, routes } } };
  return gateway(JSON.stringify({ ...config, llm: { port: 0, models } }), {
    admin: true,
    webApp: ADMIN_PAGES,
  });
}

browserTest(
  'the requests page shows key and user beside the address, routes as they are called, and no empty column',
  async (browser) => {
    const gate = await keyedGateway();
    try {
      const { page, problems } = await watchedPage(browser, gate.admin, {
        viewport: { width: 1440, height: 900 },
      });
      await fetch(`${gate.url}/plain/a`);
      await page.goto(`${gate.admin}/ui/requests`);
      await page.getByRole('row', { name: /GET \/plain\/a 127\.0\.0\.1 \/plain\*$/ }).waitFor();
      const heads = () => page.getByRole('columnheader').allInnerTexts();
      // Nobody has a key, and nothing was asked of a target or a model.
      expect(await heads()).toEqual(['Time', 'Status', 'Took', 'Request', 'Address', 'Route']);
      await fetch(`${gate.url}/keyed/a`, { headers: { authorization: `Bearer ${KEY}` } });
      await page
        .getByRole('row', { name: /403 .*\/keyed\/a ann-laptop \(ann\) 127\.0\.0\.1 keyed/ })
        .waitFor();
      await fetch(`${gate.url}/keyed/b`, { headers: { authorization: 'Bearer another-key-123456' } });
      await page.getByRole('row', { name: /\/keyed\/b key [0-9a-f]{8} 127/ }).waitFor();
      await fetch(`http://127.0.0.1:${gate.ports[1]}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'Hi' }] }),
      });
      await page
        .getByRole('row', { name: /small POST \/v1\/chat\/completions echo 127\.0\.0\.1 llm/ })
        .waitFor();
      expect(await heads()).toEqual([
        ...['Time', 'Status', 'Took', 'Request', 'Target', 'Caller', 'Address', 'Route', 'Tokens'],
      ]);
      expect(await page.getByLabel('Route').locator('option').allInnerTexts()).toEqual(
        expect.arrayContaining(['any', 'keyed', '/plain*', 'llm']),
      );
      // All columns are in sight, at every width.
      for (const width of [390, 820, 1100, 1440, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        const table = `((box) => box.scrollWidth - box.clientWidth)(document.querySelector('.virtual'))`;
        await until(async () => Number(await page.evaluate(table)) <= 0);
      }
      await page.getByLabel('Caller').selectOption('ann-laptop (ann)');
      await page.getByText('1 of 4 requests').waitFor();
      expect(await page.content()).not.toContain(KEY);
      expect(problems).toEqual([]);
    } finally {
      await gate.close();
    }
  },
);

browserTest(
  'the requests page shows reasons in full on every screen, and any place of a row opens it',
  async (browser) => {
    const gate = await keyedGateway();
    try {
      const { page } = await watchedPage(browser, gate.admin);
      await fetch(`${gate.url}/plain/before`);
      await fetch(`${gate.url}/keyed/a`, { headers: { authorization: `Bearer ${KEY}` } });
      await page.goto(`${gate.admin}/ui/requests`);
      const reason = page.locator('.virtual .detail');
      for (const width of [1920, 1440, 820, 390]) {
        await page.setViewportSize({ width, height: 900 });
        await reason.getByText('team-11-of-many').waitFor();
        const isCut = '(element) => element.scrollHeight > element.clientHeight + 1';
        await until(
          async () => !(await reason.evaluate(`(${isCut})(document.querySelector('.virtual .detail'))`)),
        );
        // The row below is not covered.
        const [text, next] = await Promise.all([
          reason.boundingBox(),
          page.getByRole('row', { name: /plain\/before/ }).boundingBox(),
        ]);
        expect((text?.y ?? 0) + (text?.height ?? 0)).toBeLessThanOrEqual((next?.y ?? 0) + 1);
      }
      await reason.click();
      await page.getByRole('dialog', { name: 'GET /keyed/a' }).waitFor();
      await page.keyboard.press('Escape');
      await page
        .getByRole('row', { name: /plain\/before/ })
        .getByRole('cell')
        .last()
        .click();
      await page.getByRole('dialog', { name: 'GET /plain/before' }).waitFor();
    } finally {
      await gate.close();
    }
  },
);
