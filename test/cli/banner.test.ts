import { join } from 'node:path';
import { expect, test } from 'vitest';
import { banner } from '../../src/cli/banner.ts';
import { routesOf } from '../../src/cli/proxy/dump-parts.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import type { Config } from '../../src/server/config/schema.ts';
import { cli } from '../kit/cli.ts';
import { gateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

const CERTIFICATES = join(import.meta.dirname, '../kit/certificates');

test('the banner names the paths of bundles, and routes with toolSearch', async () => {
  const target = (name: string) => ({ name, mcp: { host: 'http://127.0.0.1:1/mcp' } });
  const bundles = ['reviews', 'files'].map((name) => ({ name, tools: ['*'] }));
  const route = (path: object, more: object) => ({
    matches: [{ path }],
    backends: [{ mcp: { targets: [target('a'), target('b')], ...more } }],
  });
  const yaml = JSON.stringify({
    gateways: {
      default: {
        port: 0,
        routes: [
          route({ pathPrefix: '/tools' }, { bundles, toolSearch: {} }),
          route({ pathPrefix: '/' }, { bundles: bundles.slice(1) }),
          route({ exact: '/one' }, { bundles }),
        ],
      },
    },
  });
  await using gate = await gateway(yaml);
  const facts = { file: 'gateway.yaml', warnings: '', admin: undefined, ms: 1, gateway: gate.running };
  const config = loadConfigText(yaml, 'gateway.yaml', {}).config as Config;
  const routes = banner({ ...facts, config })
    .split('\n')
    .filter((line) => line.startsWith('    /'));
  expect(routes).toEqual([
    '    /tools            mcp a (http), b (http) with toolSearch',
    '    /tools/reviews      bundle reviews',
    '    /tools/files        bundle files',
    '    /                 mcp a (http), b (http)',
    '    /mcp/files          bundle files',
    '    /one              mcp a (http), b (http)',
  ]);
});

test('the banner names the protocol of each port', async () => {
  const tls = { cert: join(CERTIFICATES, 'good.crt'), key: join(CERTIFICATES, 'server.key') };
  const routes = [{ policies: { directResponse: { status: 200 } } }];
  const yaml = JSON.stringify({
    gateways: {
      plain: { port: 0, address: '127.0.0.1', routes },
      secure: { port: 0, address: '127.0.0.1', tls, routes },
    },
  });
  await using gate = await gateway(yaml);
  const facts = {
    file: 'gateway.yaml',
    warnings: '',
    admin: undefined,
    config: loadConfigText(yaml, 'gateway.yaml', {}).config as Config,
    ms: 1,
  };
  const urls = [...banner({ ...facts, gateway: gate.running }).matchAll(/gateway (\w+) +(\w+):\/\/127/g)];
  expect(urls.map(([, name, scheme]) => [name, scheme])).toEqual([
    ['plain', 'http'],
    ['secure', 'https'],
  ]);
});

test('the banner shows the first twenty routes of a gateway and counts the others', async () => {
  const routes = Array.from({ length: 121 }, (_, index) => ({
    matches: [{ path: { exact: `/route-${index}` } }],
    policies: { directResponse: { status: 200, body: `${index}` } },
  }));
  const yaml = JSON.stringify({ gateways: { default: { port: 0, routes } } });
  await using gate = await gateway(yaml);
  const config = loadConfigText(yaml, 'gateway.yaml', {}).config as Config;
  const facts = {
    file: 'gateway.yaml',
    warnings: '',
    admin: undefined,
    ms: 1,
    gateway: gate.running,
    config,
  };
  const shown = banner(facts)
    .split('\n')
    .filter((line) => line.includes('route'));
  expect(shown).toHaveLength(21);
  expect(shown.at(-1)).toBe('    and 101 more routes');
  const last = await fetch(`http://127.0.0.1:${gate.port}/route-120`);
  expect(await last.text()).toBe('120');
});

test('guardrails of models are among the policies of the banner, the dump, its routes and traces', async () => {
  const guard = (pattern: string) => ({ request: [{ regex: { rules: [{ pattern }] } }] });
  const yaml = JSON.stringify({
    config: { adminAddr: 'off' },
    llm: {
      port: 0,
      models: [
        { name: 'inner#1', provider: 'echo', visibility: 'internal', guardrails: guard('one') },
        { name: 'echo', provider: 'echo' },
      ],
      virtualModels: [{ name: 'front', routing: { failover: { targets: [{ model: 'inner#1' }] } } }],
      policies: { guardrails: guard('all') },
    },
  });
  await using gate = await gateway(yaml, { admin: true });
  const config = loadConfigText(yaml, 'gateway.yaml', {}).config as Config;
  const facts = { file: 'gateway.yaml', warnings: '', admin: undefined, ms: 1, gateway: gate.running };
  // Names that clients may request.
  expect(banner({ ...facts, config })).toContain('llm echo, front   [guardrails, guardrails of 1 model]\n');

  const dump: unknown = JSON.parse((await send(`${gate.admin}/config_dump`)).text);
  expect(JSON.stringify(dump)).toContain('"inlinePolicies":[{"ai":{"promptGuard":{"request":[{"regex"');
  expect(routesOf(dump as Record<string, unknown>).map(({ policies }) => policies)).toEqual([
    ['guardrails', 'guardrails of 1 model'],
  ]);

  const live = { stdout: '', stderr: '' };
  const traced = cli(['proxy', 'trace', '--admin', String(gate.admin)], { live });
  await until(() => gate.running.traceSubscribers.active);
  const body = JSON.stringify({ model: 'echo', messages: [{ role: 'user', content: 'hello' }] });
  await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body });
  expect((await traced).stdout).toMatch(/policies +backend: guardrails\n/);
});
