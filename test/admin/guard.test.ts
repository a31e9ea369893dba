import { describe, expect, test } from 'vitest';
import { mcpConfig } from '../kit/config.ts';
import { gateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';

const YAML = mcpConfig([{ name: 'a', mcp: { host: 'http://127.0.0.1:1/mcp' } }], {
  config: { adminHosts: ['ops.example.com'] },
});

const PATHS = [
  '/config_dump',
  '/memory',
  '/logging',
  '/debug/tasks',
  '/debug/trace',
  '/debug/pprof/heap',
  '/api/overview',
  '/api/config',
  '/api/requests',
  '/api/requests/open',
  '/ui/status',
  '/ui',
  '/',
  '/nothing-here',
];

describe('cross-site requests to the admin server', () => {
  test.each(PATHS)('a foreign Host is rejected on %s', async (path) => {
    await using running = await gateway(YAML, { admin: true });
    const reply = await send(`${running.admin}${path}`, { headers: { host: 'evil.example' } });
    expect(reply.status).toBe(403);
    expect(reply.text).toContain('config.adminHosts');
  });

  test('the admin server accepts its own Host and Origin values and rejects others', async () => {
    await using running = await gateway(YAML, { admin: true });
    const { host } = new URL(running.admin);
    const port = host.split(':')[1];
    const get = async (headers: Record<string, string>, method = 'GET', path = '/logging'): Promise<number> =>
      (await send(`${running.admin}${path}`, { method, headers: { host, ...headers } })).status;
    const cases: [number, Record<string, string>, string?, string?][] = [
      [200, {}],
      [200, { host: `localhost:${port}` }],
      [200, { host: `LOCALHOST` }],
      [200, { host: `[::1]:${port}` }],
      [200, { host: `ops.example.com:${port}` }],
      [403, { host: 'ops.example.com.evil.example' }],
      [403, { host: '127.0.0.1.evil.example' }],
      [403, { host: '127.evil.example' }],
      [403, { host: 'localhost.evil.example' }],
      [403, { host: 'localhost:1@evil.example' }],
      [403, { host: '10.0.0.1' }],
      [200, { origin: `http://${host}` }, 'POST'],
      // A proxy may end TLS in front of it; if it says so, a page that was loaded without TLS is another one.
      [200, { origin: `https://${host}` }, 'POST'],
      [200, { origin: `https://${host}`, 'x-forwarded-proto': 'https' }, 'POST'],
      [403, { origin: `http://${host}`, 'x-forwarded-proto': 'https' }, 'POST'],
      [403, { origin: 'null' }],
      [403, { origin: 'https://evil.example' }, 'POST'],
      // Another server on this machine: an application under development or a compromised one.
      [403, { origin: 'http://localhost:3000' }, 'POST'],
      [403, { origin: 'http://127.0.0.1:19000' }],
      [403, { origin: `http://localhost:${port}` }, 'POST'],
      [403, { 'sec-fetch-site': 'cross-site' }],
      [403, { 'sec-fetch-site': 'same-site' }],
      [200, { 'sec-fetch-site': 'same-origin' }],
      [200, { 'sec-fetch-site': 'none' }],
      [403, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }],
      [200, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 'GET', '/ui'],
      [403, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }, 'GET', '/ui'],
      [403, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }, 'POST', '/ui'],
      [403, { origin: 'https://evil.example' }, 'POST', '/quitquitquit'],
    ];
    const seen = [];
    for (const [, headers, method, path] of cases)
      seen.push([await get(headers, method, path), headers, method, path]);
    expect(seen).toEqual(cases.map(([status, headers, method, path]) => [status, headers, method, path]));
  });

  test('the admin server sends no CORS headers and accepts no preflight', async () => {
    await using running = await gateway(YAML, { admin: true });
    const { host } = new URL(running.admin);
    const reply = await send(`${running.admin}/config_dump`, {
      method: 'OPTIONS',
      headers: { origin: `http://${host}`, 'access-control-request-method': 'POST' },
    });
    expect(reply.status).toBe(405);
    expect(Object.keys(reply.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});
