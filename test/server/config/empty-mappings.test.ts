import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { configJsonSchema } from '../../../src/server/config/json-schema.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';

type Holder = Record<string, unknown>;

/** Every mapping below another mapping of the tree, with its parent. */
function* mappingsIn(value: unknown, path: readonly string[] = []): Generator<[Holder, string, string]> {
  if (value === null || typeof value !== 'object') return;
  for (const [key, child] of Object.entries(value)) {
    const isMapping = child !== null && typeof child === 'object' && !Array.isArray(child);
    if (isMapping && !Array.isArray(value)) yield [value as Holder, key, [...path, key].join('.')];
    yield* mappingsIn(child, [...path, key]);
  }
}

const load = (tree: unknown) => loadConfigText(stringify(tree), 'gateway.yaml', {});

describe.each(['policies', 'llm', 'quickstart'])('empty mappings in examples/%s.yaml', (name) => {
  test(`an empty optional mapping in examples/${name}.yaml means the same as an absent key`, () => {
    const file = new URL(`../../../examples/${name}.yaml`, import.meta.url);
    const { source } = loadConfigText(readFileSync(file, 'utf8'), 'gateway.yaml', {});
    const tree = structuredClone(source.value);
    const tried: string[] = [];
    for (const [holder, key, path] of [...mappingsIn(tree)]) {
      // User-chosen names, such as gateways, are not optional keys.
      // A catalog has its own format.
      if (path.split('.').at(-2) === 'gateways' || path.includes('inline')) continue;
      const before = holder[key];
      holder[key] = undefined;
      const without = load(tree);
      holder[key] = null;
      const empty = load(tree);
      holder[key] = before;
      if (without.config === undefined) expect(empty.config, path).toBeUndefined();
      else {
        tried.push(path);
        expect(empty.config, path).toEqual(without.config);
      }
    }
    expect(tried.length).toBeGreaterThan(0);
  });
});

const CONFIG = `
config: { adminAddr: 'off', logging: , session: , metrics: , tracing: , mcp: }
frontendPolicies:
llm:
mcp:
gateways:
  main:
    port: 0
    routes:
    - policies:
      backends: []
      matches: [{ path: { exact: / } }]
`;

test('a configuration with empty sections is served', async () => {
  const text = CONFIG.replace(
    'policies:\n      backends: []',
    'policies: { cors: , directResponse: { body: reached, headers: } }',
  );
  await using gate = await gateway(text);
  expect(await send(gate.url)).toMatchObject({ status: 200, text: 'reached' });
});

test('an empty policy is ignored with a warning', () => {
  const { config, diagnostics } = loadConfigText(
    'gateways: { a: { port: 1, routes: [{ policies: { authorization: }, backends: [{ host: "h:1" }] }] } }',
    'gateway.yaml',
    {},
  );
  expect(config?.gateways['a']?.routes[0]?.policies).toEqual({});
  expect(diagnostics).toMatchObject([
    { severity: 'warning', code: 'AGW0303', message: '`authorization` is empty and has no effect' },
  ]);
});

test.each([
  ['a list', 'gateways: { a: { port: 1, routes: [{ matches: }] } }', 'expected a list, found nothing'],
  ['a text', 'gateways: { a: { port: 1, address: } }', 'found nothing'],
  ['a text from an empty variable', 'gateways: { a: { port: 1, address: $EMPTY } }', ''],
  ['a mapping that must be there', 'gateways: { a: }', 'expected a mapping, found nothing'],
  ['an entry of a list', 'gateways: { a: { port: 1, routes: [ ~ ] } }', 'expected a mapping, found nothing'],
])('an empty value in place of %s is an error', (_what, text, message) => {
  const { config, diagnostics } = loadConfigText(text, 'gateway.yaml', { EMPTY: '' });
  expect(config).toBeUndefined();
  expect(diagnostics.map((each) => each.message)).toEqual([expect.stringContaining(message)]);
});

test('the JSON schema accepts null for optional mappings', () => {
  const { properties } = configJsonSchema() as unknown as {
    properties: Record<string, { type?: unknown; properties?: Record<string, { type?: unknown }> }>;
  };
  const processed = properties['config']?.properties;
  expect([properties['llm']?.type, processed?.['logging']?.type]).toEqual([
    ['object', 'null'],
    ['object', 'null'],
  ]);
  expect(properties['routes']?.type).toBe('array');
});
