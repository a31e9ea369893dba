import type { Browser, Page } from 'playwright-core';
import { expect } from 'vitest';
import { browserTest } from '../../kit/browser.ts';
import { chaos } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { INITIALIZE, MCP_HEADERS } from '../../kit/mcp.ts';
import { routesConfig } from '../../kit/routes.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** An MCP gateway that allows pages of one origin and requires an API key. */
function pageGateway(origin: string, cors: object = {}): Promise<TestGateway> {
  const policies = {
    cors: {
      allowOrigins: [origin],
      allowMethods: ['GET', 'POST', 'DELETE'],
      allowHeaders: ['*'],
      exposeHeaders: ['Mcp-Session-Id', 'www-authenticate'],
      ...cors,
    },
    apiKey: { mode: 'strict', keys: [{ key: 'k' }] },
  };
  return gateway(routesConfig([{ policies, backends: [{ mcp: { targets: [chaos('a')] } }] }]));
}

/** The result of fetch on the page: a readable response, or the browser's error. */
function fetchOn(
  page: Page,
  url: string,
  init: { method: string; headers: Record<string, string>; body?: string },
): Promise<{ status: number; session: string | null; text: string } | string> {
  return page.evaluate(
    async ([target, options]) => {
      try {
        const response = await fetch(target, options);
        const text = await response.text();
        return { status: response.status, session: response.headers.get('mcp-session-id'), text };
      } catch (error) {
        return String(error);
      }
    },
    [url, init] as const,
  );
}

async function pageOn(browser: Browser, port: number): Promise<Page> {
  const page = await browser.newPage();
  // Another port is another origin.
  await page.goto(`http://localhost:${port}/`);
  return page;
}

const request = (key: string) => ({
  method: 'POST',
  headers: { ...MCP_HEADERS, authorization: `Bearer ${key}` },
  body: JSON.stringify(INITIALIZE),
});

browserTest(
  'cors lets a page of an allowed origin open and end an MCP session and read a 401',
  async (browser) => {
    await using site = await httpUpstream((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>page</title>'),
    );
    await using gate = await pageGateway(`http://localhost:${site.port}`);
    const page = await pageOn(browser, site.port);
    const url = `${gate.url}/mcp`;

    const opened = await fetchOn(page, url, request('k'));
    if (typeof opened === 'string') throw new Error(opened);
    expect(opened.status).toBe(200);
    expect(opened.session).toMatch(/^[!-~]+$/);
    expect(opened.text).toContain('"protocolVersion"');
    // The browser sent a preflight, because this is not a simple request.
    expect(gate.accessLog.filter((line) => line.includes('http.method=OPTIONS'))).toHaveLength(1);

    const ended = await fetchOn(page, url, {
      method: 'DELETE',
      headers: { authorization: 'Bearer k', 'mcp-session-id': opened.session ?? '' },
    });
    expect(ended).toMatchObject({
      status: expect.toSatisfy((status: number) => status >= 200 && status < 300),
    });

    expect(await fetchOn(page, url, request('wrong'))).toMatchObject({
      status: 401,
      text: 'api key authentication failure: invalid credentials',
    });
  },
);

browserTest('cors lets a page of a disallowed origin neither call nor read', async (browser) => {
  await using site = await httpUpstream((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end('<title>page</title>'),
  );
  await using gate = await pageGateway('https://app.example');
  const page = await pageOn(browser, site.port);
  expect(await fetchOn(page, `${gate.url}/mcp`, request('k'))).toBe('TypeError: Failed to fetch');
  const lines = gate.accessLog.map((line) => / http\.method=(\w+)/.exec(line)?.[1]);
  expect(lines).toEqual(['OPTIONS']);
  // A simple request reaches the gateway; the browser hides its response.
  expect(await fetchOn(page, `${gate.url}/mcp`, { method: 'GET', headers: {} })).toBe(
    'TypeError: Failed to fetch',
  );
});
