import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { openSession, toolCall } from '../kit/mcp.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-sessions.test.ts');

const KEY = 'sessions-key-123456';
const HOSTILE = '<img src=x onerror="document.title=1">';

function config(): string {
  const apiKey = { mode: 'strict', keys: [{ key: KEY, metadata: { name: 'ann-laptop', user: 'ann' } }] };
  const prices = { providers: { echo: { models: { small: { rates: { input: '1000', output: '1000' } } } } } };
  const tools = [chaos('files', '--tools=echo,fail')];
  return JSON.stringify({
    config: {
      adminAddr: 'off',
      database: { url: 'sqlite://./agctl.db' },
      modelCatalog: [{ inline: JSON.stringify(prices) }],
    },
    frontendPolicies: {
      accessLog: { database: { payloads: 'full', add: { session: 'request.headers["x-conversation"]' } } },
    },
    gateways: {
      edge: {
        port: 0,
        routes: [{ name: 'tools', policies: { apiKey }, backends: [{ mcp: { targets: tools } }] }],
      },
    },
    llm: {
      port: 0,
      policies: { apiKey },
      models: [
        { name: 'small', provider: 'echo' },
        { name: 'free', provider: 'echo' },
      ],
    },
  });
}

/** Two turns of one agent, each with a call of a model and one of a tool. */
async function talk(gate: TestGateway, conversation: string): Promise<void> {
  const known = { authorization: `Bearer ${KEY}`, 'x-conversation': conversation };
  const ask = async (model: string, content: string): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${gate.ports[1]}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...known, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content }] }),
    });
    await answer.text();
  };
  const session = await openSession(`${gate.url}/mcp`, known);
  await ask('small', 'Which files are there?');
  await session.send(toolCall(1, 'echo', { message: 'in the folder' }));
  await ask('free', 'And now?');
  await session.send(toolCall(2, 'fail'));
}

async function recorded(gate: TestGateway, query: string, count: number): Promise<void> {
  await until(async () => {
    const answer = await fetch(`${gate.admin}/api/records?${query}`);
    return ((await answer.json()) as { records: unknown[] }).records.length >= count;
  });
}

/** A sum of the conversation by its name. */
const fact = (page: Page, name: string) =>
  page
    .locator('.tiles > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) })
    .locator('dd');

browserTest(
  'the Sessions page shows calls of models and tools of one conversation in order, with what they cost',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await gateway(config(), { admin: true, folder: folder.path, webApp: ADMIN_PAGES });
    await talk(gate, HOSTILE);
    await recorded(gate, `session=${encodeURIComponent(HOSTILE)}&contents=true`, 4);
    const { page, problems } = await watchedPage(browser, gate.admin, {
      viewport: { width: 1440, height: 900 },
    });
    await page.goto(`${gate.admin}/ui/sessions`);
    const found = page.getByRole('row', { name: /session <img src…/ });
    expect(await found.innerText()).toMatch(/^Which files are there\?/);
    await found.getByRole('link').click();
    await page.getByRole('row', { name: /chat small/ }).waitFor();
    const calls = (await page.locator('.virtual tbody tr').allInnerTexts()).filter((row) =>
      /chat|tools\/call/.test(row),
    );
    expect(calls.map((row) => /[✓✗!] (\S+ \S+)/.exec(row)?.[1])).toEqual([
      'chat small',
      'tools/call echo',
      'chat free',
      'tools/call fail',
    ]);
    expect(await fact(page, 'Calls').innerText()).toContain('2 of models, 2 of tools');
    expect(await fact(page, 'Errors').innerText()).toBe('✗ 1');
    // One call has no price, which is not free: the sum says that it is missing.
    expect(await fact(page, 'Cost').innerText()).toMatch(/^\$0\.\d+\s+! without 1 call of unknown price$/);
    // Bars follow each other from left to right.
    const bars = await page.evaluate(
      "[...document.querySelectorAll('.bar-of-call')].map((bar) => bar.getBoundingClientRect().x)",
    );
    expect((bars as number[]).toSorted((a, b) => a - b)).toEqual(bars);
    await expectAccessible(page);
    await page.getByRole('row', { name: /chat small/ }).click();
    const drawer = page.getByRole('dialog', { name: 'chat small' });
    await drawer.getByText('Which files are there?').first().waitFor();
    await page.keyboard.press('j');
    while (!(await page.getByRole('dialog', { name: 'tools/call echo' }).isVisible()))
      await page.keyboard.press('j');
    await page.getByText('in the folder').first().waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Conversation by').selectOption('key');
    await page.getByRole('searchbox', { name: 'Name of the key' }).fill('ann-laptop');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('row', { name: /chat free/ }).waitFor();
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(await page.locator('img').count()).toBe(0);
    expect({ problems, title: await page.title() }).toEqual({ problems: [], title: 'Sessions · agctl' });
  },
);

browserTest(
  'the Sessions page titles calls by their tools, and divides those of a key or user by pauses',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await gateway(config(), { admin: true, folder: folder.path, webApp: ADMIN_PAGES });
    const { page } = await watchedPage(browser, gate.admin);
    const MINUTE = 60_000;
    const now = Date.now();
    const chat = {
      protocol: 'llm',
      operation: 'chat',
      path: '/v1/chat/completions',
      status: 200,
      model: 'small',
    };
    const refused = { protocol: 'llm', operation: 'POST', path: '/v1/chat/completions', status: 401 };
    const tool = { protocol: 'mcp', operation: 'tools/call', path: '/mcp', status: 200, target: 'files' };
    // With tracing, the gateway begins a trace for each request that has none.
    const calls = [
      { ...chat, minutesAgo: 1, user: 'bob', preview: 'And now?', traceId: 't1' },
      { ...chat, minutesAgo: 2, user: 'bob', preview: 'What else?', traceId: 't2' },
      {
        ...tool,
        minutesAgo: 3,
        tool: 'read',
        session: 's1',
        user: 'ann',
        userAgent: 'claude-code/2.1 (cli)',
        preview: '{}',
      },
      {
        ...tool,
        minutesAgo: 4,
        tool: 'echo',
        session: 's1',
        user: 'ann',
        userAgent: 'claude-code/2.1 (cli)',
        preview: '{}',
      },
      { ...chat, minutesAgo: 90, user: 'bob', preview: 'Good morning', traceId: 't3' },
      { ...chat, minutesAgo: 95, preview: 'nobody', traceId: 't4' },
      // Refused before its call began: nobody is known to have called, and no model. The client sends one trace with all.
      { ...refused, minutesAgo: 96, traceId: 't5' },
      { ...refused, minutesAgo: 97, traceId: 't5' },
      { ...refused, minutesAgo: 97, traceId: 't2' },
    ];
    const asked: string[] = [];
    await page.route('**/api/records?*', (route) => {
      asked.push(new URL(route.request().url()).search);
      const records = calls.map(({ minutesAgo, ...call }, id) => ({
        ...call,
        id,
        time: new Date(now - minutesAgo * MINUTE).toISOString(),
      }));
      return route.fulfill({ json: { records, next: null } });
    });
    await page.goto(`${gate.admin}/ui/sessions`);
    const rows = page.locator('main tbody tr th');
    await rows.first().waitFor();
    expect((await rows.allInnerTexts()).map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
      'files: echo, files: read ann · claude-code · session s1',
      'What else? small · bob · user bob',
      'Good morning small · bob · user bob',
    ]);
    await page.getByRole('link', { name: 'What else?' }).click();
    await page
      .getByRole('row', { name: /chat small/ })
      .first()
      .waitFor();
    const query = new URLSearchParams(asked.at(-1));
    expect(query.get('user')).toBe('bob');
    expect(Date.parse(query.get('from') ?? '')).toBe(now - 2 * MINUTE);
    await page.getByRole('button', { name: /show other times/ }).click();
    await page.getByLabel('Time').waitFor();
    await expectAccessible(page);
  },
);

browserTest(
  'the Sessions page joins an MCP session with the calls of models that its key made meanwhile',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await gateway(config(), { admin: true, folder: folder.path, webApp: ADMIN_PAGES });
    // No conversation is named: calls of models have no session.
    await talk(gate, '');
    await recorded(gate, 'key=ann-laptop&contents=true', 4);
    const { page } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/sessions`);
    const rows = page.locator('main tbody tr');
    await rows.first().waitFor();
    // What belongs together for sure comes first.
    expect(await rows.first().innerText()).toContain('session ');
    await page.getByLabel('Order').selectOption('cost');
    expect(await rows.first().innerText()).toContain('key ann-laptop');
    await page
      .getByRole('row', { name: / session / })
      .getByRole('link')
      .click();
    await page.getByRole('row', { name: /tools\/call echo/ }).waitFor();
    expect(await page.getByRole('row', { name: /chat (small|free) same key/ }).count()).toBe(2);
    await page.getByLabel('with model calls of the same key').uncheck();
    await page.getByRole('row', { name: /tools\/call echo/ }).waitFor();
    await page.getByText('same key', { exact: true }).first().waitFor({ state: 'hidden' });
    expect(await page.getByRole('row', { name: /chat/ }).count()).toBe(0);
  },
);

// BerriAI/litellm#11929, #21376: sums of the first page of results alone.
browserTest(
  'the Sessions page reads all pages of a long conversation, and says when it does not show all of it',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await gateway(config(), { admin: true, folder: folder.path, webApp: ADMIN_PAGES });
    const { page } = await watchedPage(browser, gate.admin);
    let total = 1_200;
    const HOUR = 3_600_000;
    const call = (id: number): object => ({
      id,
      // A pause of hours in the middle.
      time: new Date(1e12 + id * 1_000 + (id > total / 2 ? 5 * HOUR : 0)).toISOString(),
      durationMs: 400,
      protocol: 'llm',
      operation: 'chat',
      path: '/v1/chat/completions',
      status: 200,
      model: 'small',
      inputTokens: 1,
      outputTokens: 1,
      costUsd: '0.01',
    });
    await page.route('**/api/records?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      const from = Number((query.get('after') ?? '0-0').split('-')[0]);
      const size = Number(query.get('limit'));
      const ids = Array.from({ length: Math.min(size, total - from) }, (_, at) => total - from - at);
      const next = from + ids.length < total ? `${from + ids.length}-1` : null;
      return route.fulfill({ json: { records: ids.map(call), next } });
    });
    await page.goto(`${gate.admin}/ui/sessions?trace=abc`);
    await fact(page, 'Calls').getByText('1,200').first().waitFor();
    expect(await fact(page, 'Cost').innerText()).toBe('$12.00');
    expect(await fact(page, 'Time').innerText()).toMatch(/^5 h|^3\d\d min/);
    await page.getByText('Times in which nothing ran are drawn shorter').waitFor();
    expect(await page.getByText('There are more calls').count()).toBe(0);
    // Only what is in sight exists.
    expect(await page.getByRole('row').count()).toBeLessThan(100);
    total = 10_000;
    await page.goto(`${gate.admin}/ui/sessions?trace=abcd`);
    await page.getByText('There are more calls: these are the newest 2,000').waitFor();
    await page.locator('[data-row]').first().focus();
    await page.keyboard.press('End');
    await page.locator('tr:has([data-row]:focus)').getByText('chat small').waitFor();
  },
);
