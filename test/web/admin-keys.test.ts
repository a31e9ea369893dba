import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { budgetGateway, spending } from '../kit/budgets.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { CHAT, chat, llmProvider } from '../kit/llm-provider.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-keys.test.ts');

browserTest(
  'the Keys page creates a key that works, shows its use of budgets, and revokes it after a question',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const budgets = [
      { name: 'everybody', limit: '1000000tokens/day' },
      { name: 'teams', limit: '1000000tokens/day', key: 'apiKey.team' },
    ];
    await using gate = await budgetGateway(
      provider,
      folder.path,
      { apiKey: { mode: 'strict', virtualKeys: {} }, budgets },
      { options: { admin: true, webApp: ADMIN_PAGES } },
    );
    const { page, problems } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/keys`);
    await page.getByText('There is no key yet.').waitFor();
    await page.getByLabel('Name').fill('ann laptop');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByText('expected 1 to 64 letters').waitFor();
    await page.getByLabel('Name').fill('ann-laptop');
    await page.getByLabel('Models (').fill('acme-*, other');
    await page.getByLabel('Budgets (').fill('1000tokens/day');
    await page.getByRole('button', { name: 'Create' }).dblclick();
    await page.getByText('It is not shown again').waitFor();
    // It stays until there is another one.
    await page.getByLabel('Name').fill('ann-laptop');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('alert').getByText('exists').waitFor();
    const secret = await page.locator('.command pre').innerText();
    const authorization = `Bearer ${secret}`;
    expect((await chat(gate, { ...CHAT, max_tokens: 20 }, { authorization })).status).toBe(200);
    const row = page.getByRole('region', { name: 'Keys' }).getByRole('row', { name: /^ann-laptop/ });
    await row.getByText('19 tokens').waitFor();
    expect(await row.innerText()).toContain('acme-*, other');
    await page.getByRole('heading', { name: 'everybody' }).waitFor();
    const subjects = page
      .getByRole('region', { name: 'Budgets of the configuration' })
      .locator('.subject strong');
    await subjects.nth(1).waitFor();
    expect(await subjects.allInnerTexts()).toEqual(['all calls', 'callers without a team']);
    await expectAccessible(page);
    await page.reload();
    await row.waitFor();
    expect(await page.content()).not.toContain(secret.slice(0, -4));
    await row.getByRole('button', { name: 'Revoke' }).click();
    const dialog = page.getByRole('dialog', { name: 'Revoke ann-laptop' });
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect((await chat(gate, { ...CHAT, max_tokens: 20 }, { authorization })).status).toBe(200);
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('1 revoked key not shown').waitFor();
    expect(await row.count()).toBe(0);
    await page.getByLabel('Show revoked keys').check();
    await row.getByText('revoked').waitFor();
    expect((await chat(gate, CHAT, { authorization })).status).toBe(401);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest('pages of a gateway that is read-only say so, and have no form for keys', async (browser) => {
  await using folder = await temporaryFolder();
  await using provider = await llmProvider();
  await using gate = await budgetGateway(
    provider,
    folder.path,
    { apiKey: { mode: 'strict', virtualKeys: {} } },
    { options: { admin: true, webApp: ADMIN_PAGES, env: { UI_READ_ONLY: 'true' } } },
  );
  // As another replica does, whose admin server may change keys.
  await spending(gate).keys.create({ name: 'ann', metadata: {}, budgets: [] });
  const { page, problems } = await watchedPage(browser, gate.admin);
  await page.goto(`${gate.admin}/ui/keys`);
  await page.getByText(/Keys cannot be created or revoked from here: .*UI_READ_ONLY/).waitFor();
  await page.getByRole('row', { name: /^ann/ }).waitFor();
  expect(await page.getByRole('button', { name: /Create|Revoke/ }).count()).toBe(0);
  await expectAccessible(page);
  await page.goto(`${gate.admin}/ui/config`);
  await page.getByText(/Cannot be saved from here: .*UI_READ_ONLY/).waitFor();
  expect(problems).toEqual([]);
});

browserTest('pages that need a database say how to add one', async (browser) => {
  const config = {
    config: { adminAddr: 'off' },
    llm: { port: 0, models: [{ name: 'a', provider: 'echo' }] },
  };
  await using running = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
  const { page } = await watchedPage(browser, running.admin);
  for (const path of ['keys', 'conversations']) {
    await page.goto(`${running.admin}/ui/${path}`);
    await page.getByText('url: sqlite://./agctl.db').waitFor();
    await expectAccessible(page);
  }
});

browserTest('the Keys page creates a key with its team and metadata, and shows both', async (browser) => {
  await using folder = await temporaryFolder();
  await using provider = await llmProvider();
  await using gate = await budgetGateway(
    provider,
    folder.path,
    { apiKey: { mode: 'strict', virtualKeys: {} } },
    { options: { admin: true, webApp: ADMIN_PAGES } },
  );
  const { page, problems } = await watchedPage(browser, gate.admin);
  await page.goto(`${gate.admin}/ui/keys`);
  await page.getByLabel('Name').fill('ann-laptop');
  await page.getByRole('textbox', { name: 'Team' }).fill('red');
  await page.getByLabel('Metadata').fill('{"user": ');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('Metadata: expected a JSON object').waitFor();
  await page.getByLabel('Metadata').fill('{"user": "ann", "team": "blue"}');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').getByText('another team').waitFor();
  await page.getByLabel('Metadata').fill('{"user": "ann", "note": "<img src=x>"}');
  await page.getByLabel('Budgets (').fill('10USD/day');
  await page.getByRole('button', { name: 'Create' }).click();
  const secret = await page.locator('.command pre').innerText();
  const row = page.getByRole('region', { name: 'Keys' }).getByRole('row', { name: /^ann-laptop/ });
  await row.getByText(/^red/).waitFor();
  await row.getByText('note: <img src=x>').waitFor();
  // 19 tokens of a call at a thousandth of a dollar, written as on the other pages.
  expect((await chat(gate, { ...CHAT, max_tokens: 20 }, { authorization: `Bearer ${secret}` })).status).toBe(
    200,
  );
  await row.getByText('$0.019').waitFor();
  await row.getByText('of $10.00/day').waitFor();
  // Calls are counted under the team.
  await page.getByRole('combobox', { name: /^By/ }).selectOption('group');
  await until(async () => {
    await page.reload();
    await page.getByRole('combobox', { name: /^By/ }).selectOption('group');
    return page
      .getByRole('row', { name: /^red \$0\.019/ })
      .waitFor({ timeout: 1_000 })
      .then(() => true)
      .catch(() => false);
  });
  expect(await page.locator('img').count()).toBe(0);
  expect(problems).toEqual([]);
});

browserTest(
  'the Keys page shows the spend of the month by key, team and model, and what the month will cost at this rate',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(
      provider,
      folder.path,
      { apiKey: { mode: 'strict', virtualKeys: {} } },
      { options: { admin: true, webApp: ADMIN_PAGES } },
    );
    const { page } = await watchedPage(browser, gate.admin, { isOwn: true });
    // Fifteen of thirty days are over.
    await page.clock.setFixedTime('2026-11-16T00:00:00Z');
    const sums = { requests: 10, errors: 0, refused: 0, inputTokens: 100, outputTokens: 50 };
    const row = (group: object, costUsd: string) => ({ group, ...sums, costUsd });
    const asked: URLSearchParams[] = [];
    const days = [row({ day: '2026-11-02' }, '6.5'), row({ day: '2026-11-15' }, '5.5')];
    await page.route('**/api/usage?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      asked.push(query);
      const rows: Record<string, object[]> = {
        day: query.get('group') === 'red' ? days.slice(0, 1) : days,
        'day,group': [
          row({ day: '2026-11-02', group: 'red' }, '6.5'),
          row({ day: '2026-11-15', group: '' }, '3'),
        ],
        key: [row({ key: 'ann-laptop' }, '12'), row({ key: '' }, '0')],
        group: [row({ group: 'red' }, '6.5'), row({ group: '' }, '3')],
        model: [row({ model: 'acme-mini' }, '12')],
      };
      const total = { ...sums, costUsd: query.get('group') === 'red' ? '6.5' : '12' };
      return route.fulfill({ json: { rows: rows[query.get('by') ?? ''] ?? [], total, isCut: false } });
    });
    await page.goto(`${gate.admin}/ui/keys`);
    const spend = page.getByRole('region', { name: 'Spend in November 2026' });
    const fact = (name: string) => spend.locator('.tiles > div', { hasText: name }).locator('dd');
    await fact('Cost so far').getByText('$12.00').waitFor();
    expect(await fact('Month at this rate').innerText()).toBe('$24.00');
    await spend.getByRole('row', { name: 'ann-laptop $12.00 $24.00 150 10' }).waitFor();
    await spend.getByRole('row', { name: 'calls without a key $0 $0 150 10' }).waitFor();
    expect(asked[0]?.get('from')).toBe('2026-11-01T00:00:00.000Z');
    const chart = spend.getByRole('region', { name: 'Cost per day' });
    await chart.getByRole('tab', { name: 'Table' }).click();
    expect(await chart.getByRole('row').allInnerTexts()).toEqual([
      'Time\tUS dollars',
      '2026-11-02\t$6.50',
      '2026-11-15\t$5.50',
    ]);
    await spend.getByRole('combobox', { name: /^By/ }).selectOption('group');
    await spend.getByRole('button', { name: 'red' }).click();
    await fact('Cost so far').getByText('$6.50').waitFor();
    expect(await fact('Month at this rate').innerText()).toBe('$13.00');
    await spend.getByRole('button', { name: /show all/ }).click();
    await spend.getByRole('button', { name: 'callers without a team' }).click();
    await fact('Cost so far').getByText('$3.00').waitFor();
    await expectAccessible(page);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    // The first hours of a month tell nothing of the rest.
    await page.clock.setFixedTime('2026-11-01T05:00:00Z');
    await page.reload();
    await fact('Cost so far').getByText('$12.00').waitFor();
    expect(await fact('Month at this rate').innerText()).toBe('–');
  },
);

browserTest('ten thousand keys are found by name and team, and shown in pages', async (browser) => {
  await using folder = await temporaryFolder();
  await using provider = await llmProvider();
  await using gate = await budgetGateway(
    provider,
    folder.path,
    { apiKey: { mode: 'strict', virtualKeys: {} } },
    { options: { admin: true, webApp: ADMIN_PAGES } },
  );
  const { database } = gate.live.served.runtime;
  const settings = (at: number): string =>
    JSON.stringify({ metadata: { team: at === 77 ? 'night' : 'day' }, budgets: ['10USD/day'] });
  await database?.transaction([
    ...Array.from({ length: 10_000 }, (_, at) => ({
      sql: 'INSERT INTO agctl_keys (id, name, hash, hint, settings, created_at, revoked_at) VALUES (?, ?, ?, ?, ?, ?, ?)',
      values: [`id${at}`, `key-${at}`, `hash${at}`, 'abcd', settings(at), at, at % 10 === 0 ? at : null],
    })),
    { sql: 'UPDATE agctl_key_changes SET count = count + 1 WHERE id = 1' },
  ]);
  const list = async (query: string) => send(`${gate.admin}/api/keys${query}`);
  const { page, problems } = await watchedPage(browser, gate.admin);
  await page.goto(`${gate.admin}/ui/keys`);
  await page.getByText('1–50 of 9,000 keys; 1,000 revoked keys not shown').waitFor();
  const rows = page.getByRole('region', { name: 'Keys', exact: true }).locator('tbody tr');
  expect(await rows.count()).toBe(50);
  expect(await rows.first().innerText()).toContain('key-9999');
  expect(Number(await page.evaluate('document.querySelectorAll("*").length'))).toBeLessThan(3_000);
  await page.getByRole('button', { name: 'Older' }).click();
  await page.getByText('51–100 of 9,000 keys').waitFor();
  await page.getByRole('button', { name: 'Newer' }).click();
  await page.getByText('1–50 of 9,000 keys').waitFor();
  await page.getByLabel('Search').fill('NIGHT');
  await page.getByText('1–1 of 1 key').waitFor();
  expect(await rows.first().innerText()).toContain('key-77');
  await expectAccessible(page);
  await page.getByLabel('Search').fill('key-10');
  await page.getByLabel('Show revoked keys').check();
  await page.getByText('1–50 of 111 keys').waitFor();
  await page.getByRole('combobox', { name: /^By/ }).selectOption('model');
  // A link shows the same to others.
  expect(new URL(page.url()).search).toBe('?search=key-10&revoked=1&by=model');
  await page.reload();
  await page.getByText('1–50 of 111 keys').waitFor();
  expect([
    await page.getByLabel('Search').inputValue(),
    await page.getByLabel('Show revoked keys').isChecked(),
    await page.getByRole('combobox', { name: /^By/ }).inputValue(),
  ]).toEqual(['key-10', true, 'model']);
  expect(problems).toEqual([]);
  // The command line lists all, oldest first; what is asked for is checked.
  const all = JSON.parse((await list('')).text);
  expect([all.keys.length, all.keys[0].name, all.next]).toEqual([10_000, 'key-0', null]);
  const pages = [JSON.parse((await list('?limit=500&search=key-9')).text)];
  while (pages.at(-1).next !== null)
    pages.push(JSON.parse((await list(`?limit=500&search=key-9&after=${pages.at(-1).next}`)).text));
  expect(pages.map(({ keys }) => keys.length)).toEqual([500, 500, 111]);
  expect(new Set(pages.flatMap(({ keys }) => keys.map(({ id }: { id: string }) => id))).size).toBe(1_111);
  for (const wrong of [
    '?limit=501',
    '?limit=0',
    '?after=id1',
    '?limit=5&after=none',
    '?limit=5&revoked=no',
    '?page=2',
  ])
    expect([wrong, (await list(wrong)).status]).toEqual([wrong, 400]);
});
