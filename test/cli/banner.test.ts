import { join } from 'node:path';
import { expect, test } from 'vitest';
import { banner } from '../../src/cli/banner.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import type { Config } from '../../src/server/config/schema.ts';
import { gateway } from '../kit/gateway.ts';

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
