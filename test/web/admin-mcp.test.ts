import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { openSession, toolCall } from '../kit/mcp.ts';
import { overHttp } from '../kit/scripted-server.ts';
import { until } from '../kit/until.ts';
import { expectAccessible, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/admin-mcp.test.ts');

const KEY = 'playground-key-123456';

let running: TestGateway;
beforeAll(async () => {
  const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
  const backends = [
    { mcp: { targets: [chaos('files', '--tools=echo,slow', '--prompts=greet', '--resources=a')] } },
  ];
  const routes = [
    { name: 'open', matches: at('/mcp'), backends },
    {
      name: 'closed',
      matches: at('/closed'),
      policies: { apiKey: { mode: 'strict', keys: [{ key: KEY }] } },
      backends,
    },
  ];
  const config = { config: { adminAddr: 'off' }, gateways: { edge: { port: 0, routes } } };
  running = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
});
afterAll(() => running.close());

async function open(page: Page): Promise<void> {
  await page.goto(`${running.admin}/ui/mcp`);
  await page.getByText('✓ Connected').waitFor();
}

/** The list of tools beside the form; the catalog has them, too. */
const picker = (page: Page) => page.locator('.picker');
const answer = (page: Page) => page.getByRole('region', { name: 'Answer' });

browserTest(
  'the MCP page calls a tool through its form and shows the result and the trace',
  async (browser) => {
    const { page, problems, elsewhere } = await watchedPage(browser, running.admin);
    await open(page);
    await page.getByRole('tab', { name: 'Tools (2)' }).waitFor();
    await picker(page).getByRole('button', { name: 'echo' }).click();
    const form = page.getByRole('form', { name: 'tool echo' });
    await form.getByRole('button', { name: 'Call' }).click();
    await answer(page).getByText('✓ 200').waitFor();
    await answer(page)
      .locator('pre', { hasText: /^echo$/ })
      .waitFor();
    await answer(page).getByRole('article', { name: 'Trace' }).getByText('tools/call').first().waitFor();
    await answer(page).getByText('default/open').first().waitFor();
    await expectAccessible(page);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: running.admin });
    await answer(page).getByRole('button', { name: 'Copy answer' }).click();
    await answer(page).getByText('Copied').waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('echo');
    // The list shows which of several servers with equal tools was called.
    await page.getByRole('link', { name: 'Requests' }).click();
    await page.getByRole('row', { name: /tools\/call echo POST \/mcp files 127\.0\.0\.1/ }).waitFor();
    expect({ problems, elsewhere }).toEqual({ problems: [], elsewhere: [] });
  },
);

browserTest(
  'the MCP page lists the calls of a session, shows an earlier answer and repeats a call',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin);
    await open(page);
    const history = page.getByRole('region', { name: 'Calls in this session' });
    expect(await history.count()).toBe(0);
    for (const text of ['first', 'second']) {
      await page.getByRole('tab', { name: 'Raw JSON-RPC' }).click();
      const params = { name: 'echo', arguments: { message: text } };
      const message = { jsonrpc: '2.0', id: text, method: 'tools/call', params };
      await page.getByRole('textbox', { name: 'Message' }).fill(JSON.stringify(message));
      // It calls once: the tool may change something.
      await page.getByRole('button', { name: 'Send' }).dblclick();
      await answer(page).locator('pre', { hasText: text }).first().waitFor();
    }
    const call = (number: number) => history.getByRole('button', { name: new RegExp(`^${number}\\. echo`) });
    await call(1).focus();
    await page.keyboard.press('Enter');
    await answer(page)
      .locator('pre', { hasText: /^first$/ })
      .waitFor();
    expect(await call(1).getAttribute('aria-current')).toBe('true');
    await expectAccessible(page);
    await history.getByRole('button', { name: 'Repeat call 2, echo' }).click();
    await call(3).waitFor();
    await answer(page)
      .locator('pre', { hasText: /^second$/ })
      .waitFor();
    expect(await history.getByText('✓ 200').count()).toBe(3);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the MCP page shows prompts, resources and raw messages, shows hostile text as text and fits a phone screen',
  async (browser) => {
    const { page, problems } = await watchedPage(browser, running.admin, {
      viewport: { width: 390, height: 780 },
    });
    await open(page);
    await page.getByRole('tab', { name: 'Prompts (1)' }).click();
    await page.getByRole('button', { name: 'Get' }).click();
    await answer(page).getByText(/✓ 200/).waitFor();
    await page.getByRole('tab', { name: 'Raw JSON-RPC' }).click();
    const message = {
      jsonrpc: '2.0',
      id: 'x',
      method: 'tools/call',
      params: { name: 'echo', arguments: { message: '<img src=x onerror=alert(1)>' } },
    };
    await page.getByRole('textbox', { name: 'Message' }).fill(JSON.stringify(message));
    await page.getByRole('button', { name: 'Send' }).click();
    await answer(page)
      .locator('pre', { hasText: /^<img src=x onerror=alert\(1\)>$/ })
      .waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill('{');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('alert').getByText('not valid JSON').waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest(
  'the MCP page explains a rejected session, and opens it with a token that is not stored',
  async (browser) => {
    const { page } = await watchedPage(browser, running.admin);
    await page.goto(`${running.admin}/ui/mcp`);
    await page.getByLabel('Endpoint').selectOption({ index: 1 });
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.getByRole('alert').getByText('401').waitFor();
    await page.getByLabel('Bearer token').fill(KEY);
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.getByText('✓ Connected').waitFor();
    expect(
      await page.evaluate('JSON.stringify([localStorage, sessionStorage, document.cookie])'),
    ).not.toContain(KEY);
    await page.reload();
    expect(await page.getByLabel('Bearer token').inputValue()).toBe('');
  },
);

browserTest(
  'the MCP page groups tools by target, searches them, and shows the answer where it can be seen',
  async (browser) => {
    const targets = [chaos('files', '--tools=echo,slow'), chaos('notes', '--tools=echo')];
    await using several = await gateway(
      JSON.stringify({
        config: { adminAddr: 'off' },
        gateways: { edge: { port: 0, routes: [{ name: 'all', backends: [{ mcp: { targets } }] }] } },
      }),
      { admin: true, webApp: ADMIN_PAGES },
    );
    const { page, problems } = await watchedPage(browser, several.admin);
    await page.goto(`${several.admin}/ui/mcp?target=notes`);
    await page.getByText('✓ Connected').waitFor();
    // The address names the target of the form.
    const form = page.getByRole('form', { name: 'tool notes_echo' });
    await form.waitFor();
    expect(await page.locator('.items summary').allInnerTexts()).toEqual(['files 2', 'notes 1']);
    await page.getByRole('searchbox', { name: 'Search tools' }).fill('slow');
    expect(await page.locator('.items summary').allInnerTexts()).toEqual(['files 1 of 2']);
    await picker(page).getByRole('button', { name: 'slow' }).waitFor();
    for (const width of [390, 1280, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      await form.getByRole('button', { name: 'Call' }).click();
      await answer(page).getByText('✓ 200').waitFor();
      await until(async () => {
        const box = await answer(page).getByText('✓ 200').boundingBox();
        return box !== null && box.y >= 0 && box.y + box.height <= 800;
      });
    }
    await expectAccessible(page);
    await page.goto(`${several.admin}/ui/`);
    await page.getByRole('link', { name: '2 tools', exact: true }).waitFor();
    await page.getByRole('link', { name: '3 tool calls' }).waitFor();
    expect(problems).toEqual([]);
  },
);

// modelcontextprotocol/inspector#674, #906: the page of another client is blank once a schema has a member that is no schema.
browserTest(
  'the MCP page shows lists and results of a server whose members have other types',
  async (browser) => {
    const of = (result: string): string => `{"jsonrpc":"2.0","id":@id,"result":${result}}`;
    const schema =
      '{"type":"object","properties":{"a":null,"b":5,"c":{"type":5,"description":{},"enum":[{}]}},"required":5}';
    await using server = await overHttp({
      'tools/list': of(
        `{"tools":[null,5,{"name":5},{"name":"good","title":1,"description":{},"inputSchema":null},{"name":"odd","description":null,"inputSchema":${schema}}]}`,
      ),
      'prompts/list': of(
        '{"prompts":[{"name":"p","arguments":[null,{"name":5},{"name":"x","required":"y"}]},{"name":"q","arguments":5}]}',
      ),
      'resources/list': of(
        '{"resources":[{"name":"r","uri":"file:///r","description":[]},{"name":5,"uri":5}]}',
      ),
      'tools/call': of(
        '{"content":[null,5,[],{"type":1,"data":"x","mimeType":{"toString":1}},{"type":"text","text":5}],"isError":"x"}',
      ),
    });
    const routes = [{ backends: [{ mcp: { targets: [server.target] } }] }];
    const config = { config: { adminAddr: 'off' }, gateways: { edge: { port: 0, routes } } };
    const odd = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
    try {
      const { page, problems } = await watchedPage(browser, odd.admin, { isOwn: true });
      await page.goto(`${odd.admin}/ui/mcp`);
      await page.getByText('✓ Connected').waitFor();
      await picker(page).getByRole('button', { name: 'odd' }).click();
      await page.getByRole('form', { name: 'tool odd' }).waitFor();
      await picker(page).getByRole('button', { name: 'good' }).click();
      await page.getByRole('form', { name: 'tool good' }).getByRole('button', { name: 'Call' }).click();
      await answer(page)
        .getByRole('status')
        .getByText(/\d+ ms/)
        .waitFor();
      await answer(page).getByRole('button', { name: 'Copy answer' }).waitFor();
      for (const tab of [/^Prompts/, /^Resources/, /^Tools/]) {
        await page.getByRole('tab', { name: tab }).click();
        await page.getByRole('tabpanel', { name: tab }).waitFor();
      }
      expect(problems).toEqual([]);
    } finally {
      await odd.close();
    }
  },
);

/** A name that a server chose for itself: markup, a direction override and a line break. */
const HOSTILE = '<img src=x onerror="document.title=1">\u202e\nname';

browserTest(
  'the MCP page connects by itself and shows a catalog: use, pins, schema and who may call',
  async (browser) => {
    await using folder = await temporaryFolder();
    const pin = (tool: string): string => `    ${JSON.stringify(tool)}:\n      hash: "sha256:0000"\n`;
    const file = (name: string): string => join(folder.path, name);
    writeFileSync(file('warn.yaml'), `targets:\n  files:\n${pin('echo')}`);
    writeFileSync(file('enforce.yaml'), `targets:\n  notes:\n${pin('slow')}`);
    const tool = {
      inputSchema: { type: 'object', properties: { city: { type: 'string', pattern: '^[a-z]+$' } } },
    };
    await using server = await overHttp({
      'tools/list': JSON.stringify({
        jsonrpc: '2.0',
        id: '@id',
        result: { tools: [{ name: HOSTILE, description: HOSTILE, ...tool }] },
      }).replace('"@id"', '@id'),
    });
    const backend = (pins: string, mode: string, targets: readonly object[]): object => ({
      mcp: { toolPinning: { mode, file: pins }, targets },
    });
    const routes = [
      {
        name: 'open',
        matches: [{ path: { pathPrefix: '/mcp' } }],
        policies: {
          mcpAuthorization: { rules: [{ deny: 'has(mcp.tool) && mcp.tool.name == "fail"' }, 'true'] },
        },
        backends: [backend('warn.yaml', 'warn', [chaos('files', '--tools=echo,slow,fail'), server.target])],
      },
      {
        name: 'strict',
        matches: [{ path: { pathPrefix: '/strict' } }],
        backends: [backend('enforce.yaml', 'enforce', [chaos('notes', '--tools=echo,slow')])],
      },
    ];
    const config = {
      config: { adminAddr: 'off', database: { url: 'sqlite://./agctl.db' } },
      gateways: { edge: { port: 0, routes } },
    };
    await using gate = await gateway(JSON.stringify(config), {
      admin: true,
      folder: folder.path,
      webApp: ADMIN_PAGES,
    });
    const client = await openSession(`${gate.url}/mcp`);
    for (let call = 0; call < 2; call += 1) await client.send(toolCall(call, 'files_echo'));
    await client.send(toolCall(9, 'files_fail'));
    await until(async () => {
      const answer = await fetch(`${gate.admin}/api/usage?by=target,tool&since=1h`);
      return ((await answer.json()) as { rows: unknown[] }).rows.length >= 2;
    });
    const { page, problems } = await watchedPage(browser, gate.admin);
    await page.goto(`${gate.admin}/ui/mcp`);
    await page.getByText('✓ Connected').waitFor();
    const catalog = page.getByRole('region', { name: 'Catalog' });
    // Two calls, no errors, used just now, and no longer as it was pinned.
    await catalog.getByRole('row', { name: /^echo files 2 0 0 \d\d:\d\d:\d\d ! changed/ }).waitFor();
    await catalog.getByRole('row', { name: /^slow files 0 0 0 never ✓ as pinned$/ }).waitFor();
    await catalog.getByText('! 1 tool changed since pinned').waitFor();
    // The rules do not allow it, so its caller does not see it.
    expect(await catalog.getByRole('row', { name: /^fail/ }).count()).toBe(0);
    await expectAccessible(page);
    await catalog.getByRole('row', { name: /^<img/ }).click();
    const form = page.getByRole('form', { name: /^tool .*<img/ });
    await form.getByText('names this tool').waitFor({ state: 'hidden' });
    await form.getByText('has(mcp.tool) && mcp.tool.name == "fail"').waitFor();
    await form.getByText('The route asks nobody for a key or a token.').waitFor();
    await form
      .getByRole('row', { name: /^without credentials ✓ yes ✓ listed mcpAuthorization, allow: true$/ })
      .waitFor();
    await form.getByText('Schema and everything else').click();
    await form.getByText('"pattern": "^[a-z]+$"').waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.title()).toBe('MCP · agctl');

    await page.getByLabel('Endpoint').selectOption({ index: 1 });
    await page.getByText('✓ Connected').waitFor();
    await catalog
      .getByRole('row', { name: /^slow notes .*✗ hidden It has changed since it was pinned/ })
      .waitFor();
    await page.setViewportSize({ width: 390, height: 780 });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
    expect(problems).toEqual([]);
  },
);

browserTest('the MCP page sends nothing to a route that asks for a key until it has one', async (browser) => {
  const { page } = await watchedPage(browser, running.admin, { isOwn: true });
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.url().endsWith('/api/playground/send')) sent.push(request.postData() ?? '');
  });
  await page.goto(`${running.admin}/ui/mcp`);
  await page.getByText('✓ Connected').waitFor();
  await page.getByLabel('Endpoint').selectOption({ index: 1 });
  await page.getByText(/asks for a key or a token \(apiKey\)/).waitFor();
  // A client lists them, and leaves.
  const authorization = `Bearer ${KEY}`;
  const client = await openSession(`${running.url}/closed`, { authorization });
  await client.send({ jsonrpc: '2.0', id: 5, method: 'tools/list' });
  await client.end();
  const known = page.getByRole('region', { name: 'Catalog' });
  await known.getByRole('row', { name: /^slow/ }).waitFor();
  await known.getByRole('row', { name: /^echo/ }).click();
  expect(await page.getByRole('button', { name: 'Call', exact: true }).count()).toBe(0);
  expect(sent.filter((body) => body.includes('/closed'))).toEqual([]);
  await page.getByLabel('Bearer token').fill(KEY);
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.getByText('✓ Connected').waitFor();
  await page.getByText('Callers that apiKey accepts.').waitFor();
  const row = (name: RegExp) => page.getByRole('region', { name: 'Callers' }).getByRole('row', { name });
  await row(/^without credentials ✗ no ✗ hidden apiKey asks for a key/).waitFor();
  await row(/^key [0-9a-f]{8} ✓ yes ✓ listed/).waitFor();
  await page.getByLabel('Claims of a token, as JSON').fill('[]');
  await page.getByRole('button', { name: 'Judge these claims' }).click();
  await page.getByRole('alert').getByText('not a JSON object').waitFor();
  await page.getByLabel('Claims of a token, as JSON').fill('{"sub": "alice"}');
  await page.getByRole('button', { name: 'Judge these claims' }).click();
  // No policy of the route reads tokens.
  await row(/^these claims ✗ no ✗ hidden apiKey asks for a key/).waitFor();
});
