import { expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { proxyGateway, type RouteParts, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

// Spring, Tomcat and others take `/admin;x=1` as `/admin`: CVE-2020-5410, Apache Shiro CVE-2020-1957.

const DENY = [{ deny: 'request.path.startsWith("/admin")' }];

test.each([
  ['/admin;x=1', 400],
  ['/admin%3Bx=1', 400],
  ['/admin%3b', 400],
  ['/a;b/admin', 400],
  ['/;/admin', 400],
  ['/admin', 403],
  ['/a', 200],
])(
  'pathNormalization `reject` answers %s with %i behind a rule that denies /admin',
  async (target, status) => {
    await using upstream = await httpUpstream();
    const config = { config: { http: { pathNormalization: 'reject' } } };
    await using gate = await proxyGateway(upstream.address, { authorization: { rules: DENY } }, config);
    expect((await send(gate.url, { target })).status).toBe(status);
    expect(upstream.received).toHaveLength(status === 200 ? 1 : 0);
  },
);

async function notes(
  rules: unknown[],
  more: object = {},
  route: RouteParts = { backends: [{ host: 'a:1' }] },
): Promise<number> {
  const yaml = routesConfig([{ ...route, policies: { authorization: { rules } } }], more);
  const found = await findProblems(loadConfigText(yaml, 'gateway.yaml', {}), { folder: '/', env: {} });
  return found.filter(({ code, severity }) => code === 'AGW0315' && severity === 'note').length;
}

test.each([
  [DENY],
  [[{ deny: 'request.path == "/admin"' }]],
  [[{ deny: 'request.path in ["/admin", "/root"]' }]],
  [[{ deny: 'request.uri.matches("^/admin")' }]],
  [['!request.path.startsWith("/admin")']],
  [['request.path != "/admin"']],
  [[{ require: '!(request.path.startsWith("/admin"))' }]],
])('config validate notes that a rule does not deny the path with parameters: %j', async (rules) => {
  expect(await notes(rules)).toBe(1);
  expect(await notes(rules, { config: { http: { pathNormalization: 'reject' } } })).toBe(0);
});

test.each([
  [[{ allow: 'request.path.startsWith("/public")' }]],
  [['request.path.startsWith("/public")']],
  [[{ deny: 'request.method == "DELETE"' }]],
])('config validate does not note rules that deny no path: %j', async (rules) => {
  expect(await notes(rules)).toBe(0);
});

test('config validate does not note rules on paths of MCP servers', async () => {
  const route = { backends: [{ mcp: { targets: [{ name: 'a', stdio: { cmd: 'x' } }] } }] };
  expect(await notes(DENY, {}, route)).toBe(0);
});
