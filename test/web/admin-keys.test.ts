import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { budgetGateway, spending } from '../kit/budgets.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { CHAT, chat, llmProvider } from '../kit/llm-provider.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-keys.test.ts');

browserTest(
  'the Keys page creates a key that works, shows its use of budgets, and revokes it after a question',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const budgets = [{ name: 'everybody', limit: '1000000tokens/day' }];
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
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByText('It is not shown again').waitFor();
    const secret = await page.locator('.command pre').innerText();
    const authorization = `Bearer ${secret}`;
    expect((await chat(gate, { ...CHAT, max_tokens: 20 }, { authorization })).status).toBe(200);
    const row = page.getByRole('row', { name: /^ann-laptop/ });
    await row.getByText('19 tokens').waitFor();
    expect(await row.innerText()).toContain('acme-*, other');
    await page.getByRole('heading', { name: 'everybody' }).waitFor();
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
