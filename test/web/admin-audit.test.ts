import { hostname, userInfo } from 'node:os';
import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { GOOD_TLS } from '../kit/certificates.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { client, SECRET, scripted } from '../kit/oidc-site.ts';
import { freePort } from '../kit/ports.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-audit.test.ts');

const start = (folder: string, config: object): Promise<TestGateway> =>
  gateway(
    JSON.stringify({
      config: { adminAddr: 'off', ...config },
      gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    }),
    { admin: true, webApp: ADMIN_PAGES, folder },
  );

const post = (gate: TestGateway, path: string, body = '') =>
  send(`${gate.admin}${path}`, { method: 'POST', body });

browserTest(
  'the Audit page lists who has changed what, filters it, and has older events',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path, { database: { url: 'sqlite://./audit.db' } });
    for (let count = 0; count < 60; count += 1) await post(gate, `/logging?level=mcp%3Ddebug`);
    await post(gate, '/api/keys', JSON.stringify({ name: 'ci' }));
    await post(gate, '/api/keys/revoke', JSON.stringify({ key: 'nobody<b>\u202e' }));
    const { page, problems } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/audit`);
    const rows = page.locator('main tbody tr');
    await page.getByRole('row', { name: /key\.create.*done/ }).waitFor();
    expect(await rows.count()).toBe(50);
    const first = await rows.nth(0).innerText();
    expect(first).toMatch(/key\.revoke/);
    expect(first).toContain('failed');
    expect(first).toContain('nobody<b>');
    expect(first).not.toContain('\u202e');
    expect(first).toContain(`on ${hostname()}/${process.pid} `);
    expect(await rows.nth(1).innerText()).toMatch(
      new RegExp(`${userInfo().username}[\\s\\S]*local[\\s\\S]*127\\.0\\.0\\.1`),
    );
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Show older events' }).click();
    await until(async () => (await rows.count()) === 62);
    expect(await page.getByRole('button', { name: 'Show older events' }).count()).toBe(0);
    await page.getByLabel('Action').fill('key.create');
    await until(async () => (await rows.count()) === 1);
    expect(page.url()).toContain('action=key.create');
    await page.getByLabel('Outcome').selectOption('failed');
    await page.getByText('No such events.').waitFor();
    await page.getByLabel('Action').fill('');
    await page.getByRole('row', { name: /key\.revoke.*failed/ }).waitFor();
    for (const width of [390, 1920]) {
      await page.setViewportSize({ width, height: 780 });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
    }
    await page.emulateMedia({ colorScheme: 'dark' });
    await expectAccessible(page);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the Audit page of a gateway without a database says that its events are not kept',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path, {});
    const { page, problems } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/audit`);
    await page.getByText('These are the last events since the gateway was started.').waitFor();
    await page.getByText('No such events.').waitFor();
    await expectAccessible(page);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'pages say which role they need, and controls that a viewer cannot use are disabled',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using gate = await start(folder.path, {
      database: { url: 'sqlite://./audit.db' },
      adminRoles: { editor: ['e'], local: 'viewer' },
    });
    const { page, problems } = await watchedPage(browser, gate.admin);
    for (const path of ['conversations', 'sessions', 'trace', 'mcp', 'llm', 'auth', 'config', 'audit']) {
      await page.goto(`${gate.admin}/ui/${path}`);
      await page.getByText(/This page needs the role operator\. You have the role viewer/).waitFor();
      await page.getByText('config.adminRoles.local').waitFor();
    }
    await expectAccessible(page);
    await page.goto(`${gate.admin}/ui/keys`);
    await page.getByText(/Keys cannot be created or revoked from here: .*needs the role editor/).waitFor();
    await page.goto(`${gate.admin}/ui/system`);
    await page
      .getByText(/What follows needs the role operator/)
      .first()
      .waitFor();
    for (const name of ['Change', 'Record CPU profile', 'Record heap profile', 'Stop …'])
      expect([name, await page.getByRole('button', { name }).isDisabled()]).toEqual([name, true]);
    await expectAccessible(page);
    for (const path of ['', 'requests', 'usage', 'cel', 'connect']) {
      await page.goto(`${gate.admin}/ui/${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      expect([path, await page.getByText('needs the role').count()]).toEqual([path, 0]);
    }
    // A page that was open for a moment before its role was known has asked the server, which has refused.
    expect(problems.filter((problem) => !/403/.test(String(problem)))).toEqual([]);
  },
);

browserTest(
  'pages behind a sign-in show who uses them and end the session, and what is not there says so',
  async (browser) => {
    await using folder = await temporaryFolder();
    await using provider = await scripted();
    provider.claims = { email: 'bob@example.com', groups: ['staff'] };
    const [port, adminPort] = [await freePort(), await freePort()];
    const url = `http://127.0.0.1:${port}`;
    const oidc = {
      ...client(provider.issuer),
      redirectURI: `${url}/oauth/callback`,
      logout: { path: '/oauth/logout' },
    };
    const config = {
      config: {
        adminAddr: `127.0.0.1:${adminPort}`,
        adminRoles: { claim: 'jwt.groups', viewer: ['staff'], operator: ['oncall'] },
      },
      gateways: { admin: { port }, edge: { port: 0, tls: GOOD_TLS } },
      ui: { gateways: 'admin', policies: { oidc } },
    };
    await using _gate = await gateway(JSON.stringify(config), {
      admin: true,
      adminPort,
      webApp: ADMIN_PAGES,
      folder: folder.path,
      env: SECRET,
    });
    const { page, problems } = await watchedPage(browser, url, { isOwn: true });
    await page.goto(`${url}/ui/health`);
    const account = page.getByRole('region', { name: 'Account' });
    await account.getByText('bob@example.com').waitFor();
    expect(await account.innerText()).toContain('role: viewer');
    await page.getByRole('region', { name: 'Certificates' }).getByText('good.crt').waitFor();
    await page.setViewportSize({ width: 390, height: 780 });
    await page.getByRole('button', { name: 'Pages' }).click();
    await account.getByRole('link', { name: 'Sign out' }).waitFor();
    await expectAccessible(page);
    await page.goto(`${url}/ui/audit`);
    await page.getByText('This page needs the role operator. bob@example.com has the role viewer').waitFor();
    await page.goto(`${url}/ui/usage`);
    await page.getByText('Requests since start').waitFor();
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(`${url}/ui/system`);
    await page.getByText('Not from here').first().waitFor();
    expect(asked.filter((path) => path === '/api/me')).toHaveLength(1);
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
    const stream = await fetch(`${url}/api/requests`, { headers: { cookie, accept: 'text/event-stream' } });
    expect(stream.status).toBe(200);
    for (const name of ['Record CPU profile', 'Record heap profile', 'Stop …'])
      expect([name, await page.getByRole('button', { name }).count()]).toEqual([name, 0]);
    await page.getByRole('button', { name: 'Pages' }).click();
    await account.getByRole('link', { name: 'Sign out' }).click();
    await page.getByText('you are signed out').waitFor();
    expect((await page.context().cookies()).map(({ name }) => name)).toEqual([]);
    // Whether it is cut or ended: it is over.
    await stream.text().catch(() => undefined);
    // Of a group that gives no role.
    provider.claims = { email: 'eve@example.com', groups: ['guests'] };
    for (const path of ['', '/health', '/requests', '/keys', '/system', '/mcp']) {
      await page.goto(`${url}/ui${path}`);
      await page.getByText(/This page needs the role \w+\. eve@example\.com has no role: /).waitFor();
      await page.waitForLoadState();
      expect([path, await page.getByText(/does not answer|could not be read/).count()]).toEqual([path, 0]);
    }
    // What `oidc` answers to a script when the session has ended.
    provider.claims = { email: 'bob@example.com', groups: ['staff'] };
    await page.context().clearCookies();
    const body = 'sign-in is required: open this address in a browser';
    await page.route('**/api/requests', (route) => route.fulfill({ status: 401, body }));
    await page.goto(`${url}/ui/requests`);
    await page.getByText('You are not signed in, or not any more.').waitFor();
    expect(problems.filter((problem) => !/40[13]/.test(String(problem)))).toEqual([]);
  },
);
