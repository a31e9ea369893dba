import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { convertConfig } from '../../../src/server/config/convert/convert.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import type { GatewayPlan, RoutePlan } from '../../../src/server/config/plan/plan.ts';
import { planGateways } from '../../../src/server/config/plan/plan-gateways.ts';
import type { Config } from '../../../src/server/config/schema.ts';
import { cli } from '../../kit/cli.ts';

const ENV = { CLIENT_KEY: 'key-of-a-client', OPENAI_API_KEY: 'key-of-the-provider' };

const file = (name: string): string => fileURLToPath(new URL(`./convert/${name}`, import.meta.url));

/** What a configuration serves, apart from names and places in the file. */
function served(text: string): unknown {
  const { config, diagnostics } = loadConfigText(text, 'test.yaml', ENV);
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  const { gateways, problems } = planGateways(config as Config);
  expect(problems.filter(({ severity }) => severity !== 'warning')).toEqual([]);
  return gateways.map(portOf).sort((a, b) => a.port - b.port);
}

function portOf({ port, listeners }: GatewayPlan) {
  return {
    port,
    listeners: listeners.map(({ hostname, protocol, policies, routes }) => ({
      hostname,
      protocol,
      policies: settings(policies),
      routes: routes.map(routeOf),
    })),
  };
}

function routeOf({ name, config: { matches, hostnames }, policies, backends }: RoutePlan) {
  return {
    name,
    matches,
    hostnames,
    policies: settings(policies),
    backends: backends.map((backend) => [backend.weight, backend.config, settings(backend.policies)]),
  };
}

const settings = (policies: RoutePlan['policies']) => policies.map(({ key, config }) => [key, config]);

describe('convertConfig', () => {
  test('binds for tunnels stay binds, which gateways have no keys for', () => {
    const tunnels = [
      { port: 3128, tunnelProtocol: 'connect', listeners: [] },
      { port: 443, mode: 'internal', listeners: [{ routes: [{ backends: [{ dynamic: {} }] }] }] },
    ];
    const other = {
      port: 3000,
      tunnelProtocol: 'direct',
      listeners: [{ routes: [{ backends: [{ host: 'a:1' }] }] }],
    };
    const mixed = JSON.stringify({ binds: [...tunnels, other] });
    const converted = convertConfig(mixed).text;
    expect(converted).toContain('gateways');
    expect(served(converted)).toEqual(served(mixed));
    const only = JSON.stringify({ binds: tunnels });
    expect(convertConfig(only).changes).toEqual([]);
  });

  test('binds and former keys become the current form, with comments and variables', async () => {
    const text = readFileSync(file('binds.yaml'), 'utf8');
    const { text: converted, changes } = convertConfig(text);
    await expect(converted).toMatchFileSnapshot(file('binds.converted.yaml'));
    expect(changes).toEqual([
      'binds[0] is now gateways.default',
      'binds[1] is now gateways.port-3001',
      'llm.port is now gateways.llm.port',
      'fields and filter of config.logging are now in frontendPolicies.accessLog',
      'config.tracing is now frontendPolicies.tracing',
    ]);
  });

  test('the result is valid and plans the same routes', () => {
    const text = readFileSync(file('binds.yaml'), 'utf8')
      // Not accepted in their former place.
      .replace(/ {4}# Only failures[\s\S]*?(?= {2}tracing)/, '');
    expect(served(convertConfig(text).text)).toEqual(served(text));
  });

  test('a converted file is not changed again', () => {
    const once = convertConfig(readFileSync(file('binds.yaml'), 'utf8')).text;
    expect(convertConfig(once)).toEqual({ text: once, changes: [] });
  });

  test('the first port is not called `default` if a section without a port would move there', () => {
    const text =
      'mcp: { targets: [{ name: a, stdio: { cmd: a } }] }\nbinds:\n- port: 8080\n  listeners:\n  - routes:\n    - policies: { directResponse: {} }\n';
    const { text: converted } = convertConfig(text);
    expect(converted).toContain('port-8080:');
    expect(served(converted)).toEqual(served(text));
  });

  test.for(['a: [', '- list', '', 'text'])('text that is not a mapping is returned unchanged: %j', (text) => {
    expect(convertConfig(text)).toEqual({ text, changes: [] });
  });
});

test('agctl config convert prints the result and what it changed', async () => {
  const { code, stdout, stderr } = await cli(['config', 'convert', file('binds.yaml')], { env: ENV });
  expect(stdout).toBe(readFileSync(file('binds.converted.yaml'), 'utf8'));
  expect(stderr).toContain('binds[0] is now gateways.default');
  expect(code).toBe(0);
});
