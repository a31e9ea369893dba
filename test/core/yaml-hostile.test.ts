import { describe, expect, it } from 'vitest';
import { YamlSource } from '../../src/core/yaml/source.ts';

function laughs(levels: number, width: number): string {
  const lines = [`a0: &a0 [${Array(width).fill('x')}]`];
  for (let level = 1; level < levels; level++) {
    lines.push(`a${level}: &a${level} [${Array(width).fill(`*a${level - 1}`)}]`);
  }
  return lines.join('\n');
}

const MERGES = `a: &a {k: 1}\nb:\n  <<: [${Array(10_000).fill('*a')}]\n`;
const KEYS = Array.from({ length: 14_000 }, (_, index) => `key${index}: v`).join('\n');
// Not hostile: a configuration may be that long.
const ROUTES = Array.from(
  { length: 4_000 },
  (_, index) =>
    `- name: route-${index}\n  matches:\n    - path:\n        pathPrefix: /v1/items-${index}\n  backends:\n    - host: items:8080\n`,
).join('');

/** CPU time: below 1 s each on an idle core; several times that where other tests compete for caches. */
const LIMIT_MS = 6000;

describe('hostile YAML', () => {
  it.each([
    ['billion laughs', laughs(9, 9), 'AGW0003'],
    [
      'billion laughs as JSON-like flow with merges',
      `a: &a {x: 1}\n${'b: &b {<<: *a}\n'.repeat(200)}`,
      'AGW0002',
    ],
    ['ten thousand merges', MERGES, 'AGW0003'],
    ['five thousand merge keys', `b:\n${'  <<: {a: 1}\n'.repeat(5000)}`, 'AGW0002'],
    ['100,000 open lists', '['.repeat(100_000), 'AGW0003'],
    ['100,000 open mappings', '{a: '.repeat(100_000), 'AGW0003'],
    ['100,000 nested sequences', '- '.repeat(100_000), 'AGW0003'],
    ['100,000 nested keys', '? '.repeat(100_000), 'AGW0003'],
    [
      '1,000 indented mappings',
      Array.from({ length: 1000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
      'AGW0003',
    ],
    ['50 MB', 'a: 1\n'.repeat(10_000_000), 'AGW0005'],
    ['5 MB of short lines', '- a\n'.repeat(1_250_000), 'AGW0005'],
    ['5 MB of commas', ','.repeat(5_000_000), 'AGW0001'],
    ['5 MB of brackets', ']'.repeat(5_000_000), 'AGW0001'],
    ['5 MB of dashes', '-'.repeat(5_000_000), undefined],
    ['5 MB of documents', '---\n'.repeat(1_250_000), 'AGW0005'],
    ['5 MB of bad escapes', `"${'\\x'.repeat(2_500_000)}"`, 'AGW0001'],
    ['an open quote before 5 MB', `a: "${'x\n\n'.repeat(1_600_000)}`, 'AGW0001'],
    ['an open single quote before 5 MB', `a: '${"x''\n\n".repeat(1_000_000)}`, 'AGW0001'],
    ['variables that multiply', `a: ${'$BIG'.repeat(100_000)}`, 'AGW0003'],
    ['a circle', 'a: &a {b: &b [*a, *b]}', 'AGW0003'],
    ['14,000 keys', KEYS, undefined],
    ['4,000 routes', ROUTES, undefined],
    ['the same key 10,000 times', 'a: 1\n'.repeat(10_000), 'AGW0002'],
    ['a misplaced line below 4 MB of dashes', `a:\n  b: |\n    ${'- '.repeat(2_000_000)}\n c: 1`, 'AGW0001'],
    ['a misplaced line below 700,000 others', `a:\n  b: |\n${'    x\n'.repeat(700_000)} c: 1`, 'AGW0001'],
    ['NUL', 'a: \0b', 'AGW0001'],
    ['prototype keys', '{"__proto__": {"x": 1}}', 'AGW0101'],
  ])('YamlSource parses %s in bounded time', (_name, text, code) => {
    const started = process.threadCpuUsage();
    const { diagnostics } = YamlSource.parse(text, 'x.yaml', { BIG: 'x'.repeat(1000) });
    const { user, system } = process.threadCpuUsage(started);
    expect((user + system) / 1000).toBeLessThan(LIMIT_MS);
    expect(diagnostics[0]?.code).toBe(code);
    expect(diagnostics.length).toBeLessThanOrEqual(200);
  });

  it('YamlSource accepts 64 levels of nesting and rejects 65', () => {
    const nested = (depth: number) =>
      YamlSource.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`, 'x', {}).diagnostics;
    expect(nested(64)).toEqual([]);
    expect(nested(65).map(({ code }) => code)).toEqual(['AGW0003']);
  });

  it('YamlSource counts nesting levels through aliases', () => {
    const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
    const text = (depth: number) => `a: &a ${deep(depth)}\nb: [[[*a]]]\n`;
    expect(YamlSource.parse(text(60), 'x', {}).diagnostics).toEqual([]);
    expect(YamlSource.parse(text(61), 'x', {}).diagnostics.map(({ code }) => code)).toEqual(['AGW0003']);
  });

  it('YamlSource accepts 100 aliases and rejects more with one message', () => {
    const aliases = (count: number) =>
      YamlSource.parse(`a: &a 1\nb: [${Array(count).fill('*a')}]`, 'x', {}).diagnostics;
    expect(aliases(100)).toEqual([]);
    expect(aliases(150).map(({ message }) => message)).toEqual(['the file uses more than 100 aliases']);
  });

  it('YamlSource does not modify Object.prototype', () => {
    YamlSource.parse('__proto__: {polluted: 1}\na: &a {__proto__: {polluted: 1}}\nb: {<<: *a}', 'x', {});
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
