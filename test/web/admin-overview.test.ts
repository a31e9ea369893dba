import { hostname } from 'node:os';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { openSession, toolCall } from '../kit/mcp.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-overview.test.ts');

const KEY = 'overview-key-123456';

let gate: TestGateway;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
  gate = await gateway(config(), { admin: true, folder: folder.path, webApp: ADMIN_PAGES });
  const get = (path: string, headers = {}) => send(`${gate.url}${path}`, { headers });
  const known = { authorization: `Bearer ${KEY}` };
  await get('/closed', known);
  await get('/closed', { authorization: 'Bearer wrong' });
  await get('/closed', { authorization: 'Bearer wrong' });
  await get('/closed');
  await get('/private', known);
  await get('/limited');
  await get('/limited');
  await get('/nowhere');
  await get('/gone');
  const session = await openSession(`${gate.url}/mcp`);
  await session.send(toolCall(1, 'echo'));
  await session.send(toolCall(2, 'erase'));
});
afterAll(async () => {
  await gate.close();
  await folder[Symbol.asyncDispose]();
});

function config(): string {
  const at = (path: string): object[] => [{ path: { pathPrefix: path } }];
  const apiKey = { mode: 'strict', keys: [{ key: KEY, metadata: { name: 'ann-laptop', user: 'ann' } }] };
  const ok = { directResponse: { body: 'ok' } };
  const limit = [{ maxTokens: 1, tokensPerFill: 1, fillInterval: '1h' }];
  const routes = [
    { name: 'closed', matches: at('/closed'), policies: { apiKey, ...ok } },
    {
      name: 'private',
      matches: at('/private'),
      policies: { apiKey, authorization: { rules: ['false'] }, ...ok },
    },
    { name: 'limited', matches: at('/limited'), policies: { localRateLimit: limit, ...ok } },
    {
      name: 'tools',
      matches: at('/mcp'),
      policies: { mcpAuthorization: { rules: ['mcp.tool.name == "echo"'] } },
      backends: [{ mcp: { targets: [chaos('files', '--tools=echo,erase')] } }],
    },
    { name: 'more', matches: at('/more'), backends: [{ mcp: { targets: [chaos('notes')] } }] },
  ];
  return JSON.stringify({
    config: { adminAddr: 'off', database: { url: 'sqlite://./agctl.db' } },
    gateways: { default: { port: 0, routes }, spare: { port: 0 } },
    routes: [
      {
        name: 'gone',
        gateways: ['default', 'spare'],
        matches: at('/gone'),
        backends: [{ host: '127.0.0.1:9' }],
      },
    ],
  });
}

browserTest(
  'the overview counts refused requests apart from errors, with their reasons and callers',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/`);
    // Of 401, 403, 404, 429 and an MCP call that rules do not allow; the unreachable server is the only error.
    await tile(page, 'Refused').getByText('! 7').waitFor();
    await tile(page, 'Errors').getByText('✗ 1').waitFor();
    const refused = page.getByRole('region', { name: 'Refused requests' });
    const rows = await refused.getByRole('row').allInnerTexts();
    expect(rows.slice(1).map((row) => row.split(/\t/))).toEqual(
      expect.arrayContaining([
        ['! 401', 'APIKeyAuth: api key authentication failure: invalid credentials', '2', '127.0.0.1'],
        ['! 401', 'APIKeyAuth: api key authentication failure: no API Key found', '1', '127.0.0.1'],
        ['! 403', 'Authorization: authorization failed', '1', 'ann-laptop (ann)'],
        ['! 404', 'NotFound: route not found', '1', '127.0.0.1'],
        ['! 429', 'RateLimit: rate limit exceeded', '1', '127.0.0.1'],
        ['! 200', 'Authorization: the rules do not allow the MCP call', '1', '127.0.0.1'],
      ]),
    );
    const chart = page.getByRole('region', { name: /^Requests per/ });
    await chart.getByRole('tab', { name: 'Table' }).click();
    const heads = await chart.getByRole('columnheader').allInnerTexts();
    expect(heads).toEqual(['Time', 'answered', 'refused', 'errors']);
    const sum = (await chart.getByRole('row').allInnerTexts())
      .slice(1)
      .map((row) => row.split(/\t/).slice(1).map(Number))
      .reduce((all, one) => all.map((value, at) => value + (one[at] ?? 0)));
    expect(sum.slice(1)).toEqual([7, 1]);
    await page.getByRole('region', { name: 'Gateway default' }).getByText('! 3 refused').waitFor();
    // Behind a load balancer, any replica may answer.
    const host = hostname().replaceAll('.', '\\.');
    await page.getByText(new RegExp(`^agctl .* on ${host}, up \\d+`)).waitFor();
    // A request belongs to the gateway that it was sent to.
    await page.getByRole('region', { name: 'Gateway spare' }).getByText('no requests yet').waitFor();
    await page.getByRole('link', { name: '1 request, ✗ 1 error' }).waitFor();
    // The rate is that of the time since the start, which is less than the chosen period.
    const [, requests, rate, unit] =
      /(\d+) ([\d.]+) per (s|min)/.exec((await tile(page, 'Requests').innerText()).replace(/\s+/g, ' ')) ??
      [];
    expect(Number(rate) * (unit === 's' ? 60 : 1)).toBeGreaterThan(Number(requests) / 5);
    await expectAccessible(page);
    await refused.getByRole('link', { name: 'Show them' }).click();
    await page.getByText(/^7 of \d+ requests/).waitFor();
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the overview counts refused requests of a recorded period from the database',
  async (browser) => {
    const { page } = await watchedPage(browser, gate.admin);
    await until(async () => {
      const answer = await fetch(`${gate.admin}/api/usage?by=day&since=6h`);
      const { total } = (await answer.json()) as { total: { refused: number; errors: number } };
      return total.refused === 7 && total.errors === 1;
    });
    await page.goto(`${gate.admin}/ui/?span=6h`);
    await tile(page, 'Refused').getByText('! 7').waitFor();
    const refused = page.getByRole('region', { name: 'Refused requests' });
    await refused
      .getByRole('row', { name: '! 403 Authorization: authorization failed 1 ann-laptop (ann)' })
      .waitFor();
    await refused
      .getByRole('row', { name: /^! 200 Authorization: the rules do not allow the MCP call 1/ })
      .waitFor();
    expect(await refused.getByRole('row').count()).toBe(7);
    await refused.getByRole('link', { name: 'Refused requests of the record' }).click();
    await page.getByRole('button', { name: /GET \/limited/ }).waitFor();
    expect(await page.getByRole('button', { name: /GET \/gone/ }).count()).toBe(0);
  },
);

browserTest(
  'the overview shows figures first, then problems of one kind as one line that opens',
  async (browser) => {
    const { page } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/`);
    await tile(page, 'Requests').waitFor();
    const warnings = page.getByRole('region', { name: 'Warnings' });
    const line = warnings.getByText(/AGW0312, 2 places/);
    await line.waitFor();
    const top = async (name: string): Promise<number> =>
      (await page.getByRole('region', { name }).boundingBox())?.y ?? 0;
    expect(await top('Activity')).toBeLessThan(await top('Warnings'));
    expect(await top('Warnings')).toBeLessThan(await top('Over time'));
    const place = warnings.getByRole('link').first();
    expect(await place.isVisible()).toBe(false);
    await line.click();
    await place.waitFor();
    expect(await warnings.getByRole('listitem').filter({ visible: true }).count()).toBe(2);
  },
);

browserTest('the overview says that the database does not answer', async (browser) => {
  await using lost = await gateway(
    JSON.stringify({
      config: { adminAddr: 'off', database: { url: 'postgres://u:hunter22@127.0.0.1:1/db' } },
      gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    }),
    { admin: true, webApp: ADMIN_PAGES },
  );
  const { page } = await watchedPage(browser, lost.admin);
  await page.goto(`${lost.admin}/ui/`);
  const problems = page.getByRole('region', { name: 'Problems' });
  await problems.getByText('The database does not answer').click();
  await problems.getByText(/PostgreSQL at 127\.0\.0\.1:1\/db refuses connections, since \d+:/).waitFor();
  await expectAccessible(page);
});

/** A figure by its name. */
const tile = (page: Page, name: string) =>
  page.locator('.tiles > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) });

browserTest('the overview and health pages show 10,000 requests without delay', async (browser) => {
  const { page } = await watchedPage(browser, gate.admin, { isOwn: true });
  const time = new Date().toISOString();
  // Each with a caller and a reason of its own: clients choose how many there are.
  const entries = Array.from({ length: 10_000 }, (_, index) => {
    const fields = {
      'http.method': 'GET',
      'http.path': `/file/${index}`,
      'http.status': index % 2 === 0 ? 401 : 200,
      error: `no such key ${index}`,
      reason: 'APIKeyAuth',
      'caller.key': `key-${index}`,
      'mcp.target': 'files',
      duration: '1ms',
    };
    return `event: request\ndata: ${JSON.stringify({ id: index + 1, time, fields })}\n\n`;
  });
  await page.route(
    '**/api/requests',
    (route) => route.fulfill({ contentType: 'text/event-stream', body: entries.join('') }),
    { times: 1 },
  );
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
  /** Seconds of processor time that the page has used. */
  const busy = async (): Promise<number> => {
    const { metrics } = await devtools.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
  };
  await page.goto(`${gate.admin}/ui/`);
  await tile(page, 'Refused').getByText('! 5,000').waitFor();
  await page.getByText(/^Of the last 10,000 requests of this gateway, which begin at/).waitFor();
  const refused = page.getByRole('region', { name: 'Refused requests' });
  expect(await refused.getByRole('row').count()).toBe(13);
  await refused.getByText('and 4,988 rarer reasons').waitFor();
  const before = await busy();
  await page.getByRole('link', { name: 'Health' }).click();
  await page.getByRole('row', { name: /^files/ }).waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await tile(page, 'Refused').getByText('! 5,000').waitFor();
  expect((await busy()) - before).toBeLessThan(1.5);
});
