import { expect } from 'vitest';
import { ADMIN_PAGES } from '../kit/admin-ui.ts';
import { sharedBrowser } from '../kit/browser.ts';
import { gateway } from '../kit/gateway.ts';
import { INITIALIZE, MCP_HEADERS } from '../kit/mcp.ts';
import { mcpUpstream, reply } from '../kit/mcp-upstream.ts';
import { memoryAdapter } from '../kit/memory-adapter.ts';
import { memoryBackend } from '../kit/memory-backend.ts';
import { MEMORY_PAGES, watchedPage } from '../kit/web-page.ts';

const { browserTest } = sharedBrowser('test/web/links.test.ts');

browserTest(
  'the overview page links to the memory dashboard and never to an address of another scheme',
  async (browser) => {
    await using backend = await memoryBackend({ docs: { 'a.md': '# A\n\nText.\n' }, pages: MEMORY_PAGES });
    await using adapter = await memoryAdapter(backend.url);
    await using stranger = await mcpUpstream({
      script: ({ message }, response) => {
        if (message?.method !== 'initialize') return false;
        const serverInfo = { name: 'x', version: '1', websiteUrl: 'javascript:alert(1)' };
        const { protocolVersion } = message.params;
        reply(response, message, { protocolVersion, capabilities: { tools: {} }, serverInfo });
        return true;
      },
    });
    const targets = [
      { name: 'memory', mcp: { host: `${adapter.url}/mcp` } },
      { name: 'stranger', mcp: { host: stranger.url } },
    ];
    const config = {
      config: { adminAddr: 'off' },
      gateways: { edge: { port: 0, routes: [{ backends: [{ mcp: { targets } }] }] } },
    };
    await using running = await gateway(JSON.stringify(config), { admin: true, webApp: ADMIN_PAGES });
    await fetch(`${running.url}/mcp`, {
      method: 'POST',
      headers: MCP_HEADERS,
      body: JSON.stringify(INITIALIZE),
    });
    const { page } = await watchedPage(browser, running.admin);
    await page.goto(`${running.admin}/ui/`);
    const link = page.getByRole('link', { name: 'website' });
    await page.getByText('stranger').waitFor();
    await link.waitFor();
    expect(await link.count()).toBe(1);
    const [opened] = await Promise.all([page.waitForEvent('popup'), link.click()]);
    await opened.getByText('readiness').waitFor();
    expect(opened.url()).toBe(`${backend.url}/ui/`);
  },
);
