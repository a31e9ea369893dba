import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { certificatePath, GOOD_TLS } from '../kit/certificates.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { answering, CHAT, chat, llmProvider } from '../kit/llm-provider.ts';
import { openSession, toolCall } from '../kit/mcp.ts';
import { refusingPort } from '../kit/upstream.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-health.test.ts');

/** A working and a failing MCP server, a provider whose calls go to another one, and two certificates. */
async function healthGateway(folder: string, good: string, bad: string): Promise<TestGateway> {
  const model = (name: string, provider: string, address: string): object => ({
    name,
    provider: { custom: { providerOverride: provider, formats: [{ type: 'completions' }] } },
    params: { baseUrl: `http://${address}/v1` },
    guardrails: { request: [{ regex: { action: 'reject', rules: [{ pattern: 'forbidden' }] } }] },
  });
  const targets = [
    chaos('files', '--tools=echo,fail'),
    { name: 'gone', mcp: { host: `http://127.0.0.1:${await refusingPort()}/mcp` } },
  ];
  const failover = { targets: [{ model: 'first' }, { model: 'second', priority: 1 }] };
  const config = {
    config: {
      adminAddr: 'off',
      database: { url: 'sqlite://./agctl.db' },
      connectionTerminationDeadline: '100ms',
    },
    gateways: {
      edge: { port: 0, routes: [{ name: 'tools', backends: [{ mcp: { targets } }] }] },
      secure: {
        port: 0,
        protocol: 'HTTPS',
        tls: GOOD_TLS,
        routes: [{ policies: { directResponse: { body: 'ok' } } }],
      },
      old: {
        port: 0,
        protocol: 'HTTPS',
        tls: { cert: certificatePath('expired.crt'), key: certificatePath('server.key') },
        routes: [{ policies: { directResponse: { body: 'ok' } } }],
      },
    },
    llm: {
      port: 0,
      models: [model('first', 'alpha', bad), model('second', 'beta', good)],
      virtualModels: [{ name: 'safe', routing: { failover } }],
    },
  };
  return gateway(JSON.stringify(config), { admin: true, folder, webApp: ADMIN_PAGES });
}

const row = (page: Page, table: string, name: string) =>
  page.getByRole('region', { name: table }).getByRole('row', { name: new RegExp(`^${name}`) });

/** The Health page of such a gateway after two calls of a tool, of which one failed, and one of a model. */
async function healthPage(browser: Browser) {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const good = stack.use(await llmProvider());
  const bad = stack.use(await llmProvider(answering('{"error":{}}', 500)));
  const gate = stack.use(await healthGateway(folder.path, good.address, bad.address));
  const session = await openSession(`${gate.url}/mcp`);
  await session.send(toolCall(1, 'files_echo'));
  await session.send(toolCall(2, 'files_fail'));
  const models = { url: `http://127.0.0.1:${gate.ports.at(-1)}` };
  expect((await chat(models, { ...CHAT, model: 'safe' })).status).toBe(200);
  // What the gateway refuses is not a call of the provider.
  const messages = [{ role: 'user', content: 'forbidden' }];
  expect((await chat(models, { model: 'second', messages })).status).toBe(403);
  const { page, problems } = await watchedPage(browser, gate.admin);
  const url = `${gate.admin}/ui/health`;
  await page.goto(url);
  const files = row(page, 'MCP targets', 'files');
  await files.getByText('✗ 1').waitFor();
  const open = stack.move();
  return { page, problems, url, files, session, [Symbol.asyncDispose]: () => open.disposeAsync() };
}

browserTest(
  'the Health page shows state, errors, latency and failovers of targets and providers, and certificates',
  async (browser) => {
    await using health = await healthPage(browser);
    const { page, problems, url, files } = health;
    expect(await files.getByRole('cell').allInnerTexts()).toEqual([
      '! answers, with errors',
      '',
      '2',
      '✗ 1',
      expect.stringMatching(/^\d+ ms$/),
    ]);
    // The calls may be on both sides of a border between parts.
    await files.getByRole('img', { name: /^errors in 1 of [12] parts? of the period with calls$/ }).waitFor();
    await files.getByTitle(/: [12] calls?, 1 error, p95 \d+ ms$/).waitFor();
    const gone = row(page, 'MCP targets', 'gone');
    await gone.getByText('✗ failing').waitFor();
    await gone.getByText(/refused/).waitFor();
    await gone.getByRole('img', { name: 'no calls in this period' }).waitFor();
    // The first provider was tried in vain; its failure is no error of the call, which the second one answered.
    await row(page, 'Providers of models', 'alpha').getByText('! 1').waitFor();
    expect(
      (await row(page, 'Providers of models', 'beta').getByRole('cell').allInnerTexts()).slice(2),
    ).toEqual(['1', '0', expect.stringMatching(/^\d+ ms$/), '0']);
    await page.getByRole('list', { name: 'Over time' }).getByText('no calls').waitFor();
    // A period between two times.
    await page.getByText('Other period …').click();
    await page.getByLabel('From').fill('2020-01-02T00:00');
    await page.getByLabel('To', { exact: true }).fill('2020-01-01T00:00');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByText('The period must begin before it ends.').waitFor();
    await page.getByLabel('To', { exact: true }).fill('2020-01-04T00:00');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('button', { name: 'Whole period' }).waitFor();
    expect(new URL(page.url()).searchParams.get('span')).toBe('30d');
    await expectAccessible(page);
    await page.goto(url);
    const certificates = page.getByRole('region', { name: 'Certificates' });
    await certificates.getByRole('row', { name: /expired\.crt.*✗ expired/ }).waitFor();
    await certificates.getByRole('row', { name: /good\.crt.*✓ [\d,]+ days/ }).waitFor();
    await expectAccessible(page);
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the Health page shows long periods, and more calls than the gateway keeps as requests',
  async (browser) => {
    await using health = await healthPage(browser);
    const { page, problems, url, files, session } = health;
    // Of long periods, the gateway has counted latency and failovers, and the database has the calls.
    for (const span of ['6 h', '24 h', '7 d', '30 d', '1 h', '15 min']) {
      await page.getByRole('radio', { name: span, exact: true }).check();
      await files.getByText('✗ 1').waitFor();
      await files.getByTitle(/: [12] calls?, 1 error, p95 \d+ ms$/).waitFor();
      expect((await files.getByRole('cell').allInnerTexts()).slice(2)).toEqual([
        '2',
        '✗ 1',
        expect.stringMatching(/^\d+ ms$/),
      ]);
      await row(page, 'Providers of models', 'alpha').getByText('! 1').waitFor();
      const beta = row(page, 'Providers of models', 'beta').getByRole('cell');
      expect((await beta.allInnerTexts()).slice(2, 4)).toEqual(['1', '0']);
    }
    // Models have the names that clients asked for, also in the figures of a short period, which are not those of the database.
    for (const span of ['15min', '24h']) {
      await page.goto(`${url.replace('health', 'usage')}?span=${span}`);
      const models = page.locator('h2:text-is("By model") + * tbody th');
      await models.nth(1).waitFor();
      expect((await models.allInnerTexts()).toSorted()).toEqual(['safe', 'second']);
    }
    await page.goto(url);
    await files.waitFor();
    // More calls than the page and the gateway keep as requests.
    const calls = LIMITS.recentRequests + 100;
    for (let id = 3; id < 3 + calls; id += 50)
      await Promise.all(Array.from({ length: 50 }, (_, at) => session.send(toolCall(id + at, 'files_echo'))));
    await page.getByRole('radio', { name: '1 h', exact: true }).check();
    await files.getByText((calls + 2).toLocaleString('en'), { exact: true }).waitFor();
    await page.getByText(/^Since the gateway's start/).waitFor();
    await page.getByRole('radio', { name: '24 h' }).check();
    await page.getByText(/^Calls and errors from the database; latency and failovers since/).waitFor();
    expect(problems).toEqual([]);
  },
);
