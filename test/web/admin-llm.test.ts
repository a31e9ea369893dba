import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { type HttpUpstream, httpUpstream } from '../kit/upstream.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-llm.test.ts');

let running: TestGateway;
let guard: HttpUpstream;
beforeAll(async () => {
  guard = await httpUpstream((_request, response, { body }) => {
    const action = body.includes('secret')
      ? { body: 'not this', status_code: 403, reason: 'it names a secret' }
      : { reason: 'fine' };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ action }));
  });
  const costs = { providers: { echo: { models: { small: { rates: { input: '0.6', output: '2.4' } } } } } };
  const config = {
    config: { adminAddr: 'off', modelCatalog: [{ inline: JSON.stringify(costs) }] },
    llm: {
      port: 0,
      models: [
        {
          name: 'small',
          provider: 'echo',
          transformation: { temperature: '0.5' },
          guardrails: { request: [{ webhook: { target: { host: guard.address } } }] },
        },
        { name: 'plain', provider: 'echo' },
      ],
    },
  };
  running = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
});
afterAll(async () => {
  await running.close();
  await guard.close();
});

browserTest(
  'the LLM page streams a response and shows tokens, price and applied policies',
  async (browser) => {
    const { page, problems, elsewhere } = await watchedPage(browser, running.admin);
    await page.goto(`${running.admin}/ui/llm`);
    expect(await page.getByRole('combobox', { name: 'Model' }).inputValue()).toBe('small');
    await page.getByLabel('Message').fill('hello <b>there</b>');
    await page.keyboard.press('Control+Enter');
    const log = page.getByRole('log', { name: 'Conversation' });
    await log.locator('.assistant').getByText('hello <b>there</b>').waitFor();
    const outcome = page.getByRole('region', { name: 'Outcome' });
    await outcome.getByText('$0.000006').waitFor();
    await outcome.getByText('temperature set to 0.5').waitFor();
    await page.getByRole('article', { name: 'Trace' }).getByText('model=small').first().waitFor();
    await page.getByRole('button', { name: 'Copy as curl' }).waitFor();
    await expectAccessible(page);
    expect({ problems, elsewhere }).toEqual({ problems: [], elsewhere: [] });
  },
);

browserTest(
  'the LLM page shows a guardrail rejection, also without a stream, and fits a phone screen',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin, {
      viewport: { width: 390, height: 780 },
    });
    await page.goto(`${running.admin}/ui/llm`);
    await page.getByLabel('Message').fill('good evening');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.assistant').getByText('good evening').waitFor();
    // The parameters are closed, so that an answer leaves the next message in view.
    const send = await page.getByRole('button', { name: 'Send' }).boundingBox();
    const scrolled = Number(await page.evaluate('scrollY'));
    expect((send?.y ?? Infinity) + (send?.height ?? 0) + scrolled).toBeLessThanOrEqual(780);
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByText('Parameters').focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('stream').uncheck();
    await page.getByLabel('Message').fill('good morning');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.locator('.assistant').getByText('good morning').waitFor();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.getByLabel('Message').fill('the secret');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('alert').getByText('403').waitFor();
    await page.getByRole('region', { name: 'Outcome' }).getByText('✗').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the LLM page sends one prompt to two models and shows the results side by side',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin);
    await page.goto(`${running.admin}/ui/llm`);
    await page.getByLabel('compare two models').check();
    const model = (side: string) =>
      page.getByRole('region', { name: side }).getByRole('combobox', { name: 'Model' }).inputValue();
    expect([await model('First model'), await model('Second model')]).toEqual(['small', 'plain']);
    await page.getByLabel('Message').fill('the secret');
    await page.getByRole('button', { name: 'Send' }).click();
    // The rejection of one model does not affect the other.
    await page.getByRole('alert').getByText('403').waitFor();
    const second = page.getByRole('log', { name: 'Conversation, second model' });
    await second.locator('.assistant').getByText('the secret').waitFor();
    await page.getByRole('region', { name: 'Outcome, second model' }).getByText('no price known').waitFor();
    await page.getByRole('region', { name: 'Outcome, first model' }).getByText('✗').first().waitFor();
    const request = page.getByRole('group', { name: 'Request, second model' });
    await request.getByRole('button', { name: 'Copy as curl' }).waitFor();
    await expectAccessible(page);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await page.getByLabel('compare two models').uncheck();
    await second.waitFor({ state: 'hidden' });
    expect(problems).toEqual([]);
  },
);

browserTest('the LLM page without prices says how to add them', async (browser) => {
  const config = {
    config: { adminAddr: 'off' },
    llm: { port: 0, models: [{ name: '*', provider: 'echo' }] },
  };
  await using free = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
  await fetch(`${free.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hi' }] }),
  });
  const { page } = await watchedPage(browser, free.admin);
  await page.goto(`${free.admin}/ui/usage`);
  await page.getByText('No prices are configured').waitFor();
  expect(await page.getByLabel('Since the gateway started').innerText()).toContain('Cost\nnot known');
  await page.getByRole('link', { name: 'config.modelCatalog' }).waitFor();
});
