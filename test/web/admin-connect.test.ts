import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { chaos } from '../kit/config.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-connect.test.ts');

const KEY = 'connect-key-1234567890';

let running: TestGateway;
beforeAll(async () => {
  const backends = [{ mcp: { targets: [chaos('files', '--tools=echo')] } }];
  const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const routes = [
    { name: 'open tools', matches: at('/mcp'), backends },
    { name: 'closed', matches: at('/closed'), policies: { apiKey: { keys: [{ key: KEY }] } }, backends },
  ];
  const config = {
    config: { adminAddr: 'off' },
    gateways: { edge: { port: 0, routes } },
    llm: { port: 0, models: [{ name: 'small', provider: 'echo' }] },
  };
  running = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
});
afterAll(() => running.close());

const textOf = (page: Page, client: string): Promise<string> =>
  page.getByRole('region', { name: client, exact: true }).locator('pre').innerText();

browserTest(
  'the Connect page has settings of MCP clients with the address of the endpoint',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin);
    await page.goto(`${running.admin}/ui/connect`);
    const url = `http://127.0.0.1:${running.port}/mcp`;
    await page.getByText('This route needs no key.').waitFor();
    expect(await textOf(page, 'Claude Code')).toBe(`claude mcp add --transport http open-tools ${url}`);
    expect(JSON.parse(await textOf(page, 'Cursor'))).toEqual({ mcpServers: { 'open-tools': { url } } });
    expect(JSON.parse(await textOf(page, 'VS Code'))).toEqual({
      servers: { 'open-tools': { type: 'http', url } },
    });
    expect(JSON.parse(await textOf(page, 'Claude Desktop'))).toEqual({
      mcpServers: { 'open-tools': { command: 'npx', args: ['-y', 'mcp-remote', url] } },
    });
    expect(await textOf(page, 'Codex')).toBe(`[mcp_servers.open-tools]\nurl = "${url}"`);
    await expectAccessible(page);
    await page.getByLabel('Address of the gateway').fill('https://tools.example.com/');
    expect(JSON.parse(await textOf(page, 'Gemini CLI'))).toEqual({
      mcpServers: { 'open-tools': { httpUrl: 'https://tools.example.com/mcp' } },
    });
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest('settings for a route with keys name a variable, never a key', async (browser) => {
  const { page } = await watchedPage(browser, running.admin);
  await page.goto(`${running.admin}/ui/connect`);
  await page.getByLabel('Endpoint').selectOption({ index: 1 });
  await page.getByText('This route needs a key').waitFor();
  expect(await textOf(page, 'Claude Code')).toContain('--header "Authorization: Bearer $AGCTL_KEY"');
  expect(await textOf(page, 'Codex')).toContain('bearer_token_env_var = "AGCTL_KEY"');
  expect(JSON.parse(await textOf(page, 'VS Code'))).toMatchObject({
    inputs: [{ id: 'agctl-key', password: true }],
    servers: { closed: { headers: { Authorization: `Bearer \${input:agctl-key}` } } },
  });
  expect(await page.content()).not.toContain(KEY);
});

browserTest('the command for models of the Connect page gets an answer', async (browser) => {
  const { page } = await watchedPage(browser, running.admin);
  await page.goto(`${running.admin}/ui/connect`);
  await page.getByRole('tab', { name: 'Models' }).click();
  const command = await textOf(page, 'curl');
  const { stdout } = await promisify(execFile)('sh', ['-c', command]);
  expect((JSON.parse(stdout) as { choices: unknown[] }).choices).toHaveLength(1);
  expect(await textOf(page, 'OpenAI SDK, Python')).toContain(
    `base_url="http://127.0.0.1:${running.ports[1]}/v1"`,
  );
  expect(await textOf(page, 'Claude Code')).toContain(
    `export ANTHROPIC_BASE_URL=http://127.0.0.1:${running.ports[1]}\n`,
  );
  await page.getByLabel('Model', { exact: true }).fill('other');
  expect(await textOf(page, 'Codex')).toContain('model = "other"\nmodel_provider = ');
});
