import { expect, test } from 'vitest';
import type { Edit, Fix } from '../../../src/core/diagnostic.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';

function fixesOf(text: string): Fix[] {
  return loadConfigText(text, 'gateway.yaml', {}).diagnostics.flatMap(({ fix }) => fix ?? []);
}

function applied(text: string, edits: readonly Edit[]): string {
  return edits.reduceRight(
    (all, { range, text: insert }) => all.slice(0, range.start.offset) + insert + all.slice(range.end.offset),
    text,
  );
}

const ROUTE = 'gateways:\n  a:\n    port: 0\n    routes:\n    - policies: ';

const FIXED: readonly (readonly [what: string, broken: string, title: string, fixed: string])[] = [
  [
    'an unknown key close to a known one',
    'gateways: {a: {prot: 0, routes: []}} # why\n',
    'write `port`',
    'gateways: {a: {port: 0, routes: []}} # why\n',
  ],
  [
    'a value close to an allowed one',
    `${ROUTE}{apiKey: {mode: "stict", keys: [{key: client-key-123456}]}}\n`,
    'write `strict`',
    `${ROUTE}{apiKey: {mode: strict, keys: [{key: client-key-123456}]}}\n`,
  ],
  [
    'a number where a text belongs',
    'llm: {models: [{name: 4, provider: echo}]}\n',
    'put it in quotes',
    'llm: {models: [{name: "4", provider: echo}]}\n',
  ],
  [
    'a number in quotes',
    "gateways: {a: {port: '0', routes: []}}\n",
    'remove the quotes',
    'gateways: {a: {port: 0, routes: []}}\n',
  ],
];

for (const [what, broken, title, fixed] of FIXED)
  test(`a fix for ${what} leaves the rest of the file unchanged`, () => {
    const fixes = fixesOf(broken);
    expect(fixes.map((fix) => fix.title)).toEqual([title]);
    expect(applied(broken, fixes[0]?.edits ?? [])).toBe(fixed);
    expect(
      loadConfigText(fixed, 'gateway.yaml', {}).diagnostics.filter((d) => d.severity === 'error'),
    ).toEqual([]);
  });

test('diagnostics of ambiguous mistakes have no fix', () => {
  // The first fix would duplicate a key; the second value is an alias, defined elsewhere.
  expect(fixesOf('gateways: {a: {port: 0, prot: 1, routes: []}}\n')).toEqual([]);
  expect(fixesOf('gateways: {a: {port: &n 0}}\nllm: {models: [{name: *n, provider: echo}]}\n')).toEqual([]);
});

test('fix titles and edits do not quote values of the file', () => {
  const fixes = fixesOf('llm: {models: [{name: a, provider: openai, params: {apiKey: 123456789}}]}\n');
  expect(fixes.map((fix) => fix.title)).toEqual(['put it in quotes']);
  expect(JSON.stringify(fixes)).not.toContain('123456789');
});
