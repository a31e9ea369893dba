import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { formatConfig } from '../../src/cli/commands/config-fmt.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { repeats } from '../kit/thorough.ts';

const UGLY = `# yaml-language-server: $schema=x
gateways:
    default:   # the only one
        port:   $PORT
        routes:
        - name:  "tools"   # quoted
          # before matches
          matches: [ {path: {pathPrefix: /mcp}} ]


config: { session: {key: 00} , n: 12345678901234567890, e:  1.50, x: ~, q: '5' }
empty:
merge: { o: 0o17}
`;
const PRETTY = `# yaml-language-server: $schema=x
gateways:
  default:
    # the only one
    port: $PORT
    routes:
      - name: "tools" # quoted
        # before matches
        matches: [ { path: { pathPrefix: /mcp } } ]

config: { session: { key: 00 }, n: 12345678901234567890, e: 1.50, x: ~, q: '5' }
empty:
merge: { o: 0o17 }
`;

test('fmt rewrites a file in one form, with its comments, quotes, variables, mode and owner', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'gateway.yaml');
  writeFileSync(path, UGLY, { mode: 0o600 });
  const isRoot = process.geteuid?.() === 0;
  // The user of a gateway, where root changes its configuration.
  if (isRoot) chownSync(path, 65_534, 65_534);
  const check = await cli(['config', 'fmt', '--check'], { cwd: folder.path });
  expect(check).toEqual({ code: 1, stdout: 'gateway.yaml\n', stderr: '' });
  expect(readFileSync(path, 'utf8')).toBe(UGLY);
  const { code, stdout, stderr } = await cli(['config', 'fmt'], { cwd: folder.path });
  expect([code, stdout, stderr]).toEqual([0, '', 'gateway.yaml: formatted\n']);
  expect(readFileSync(path, 'utf8')).toBe(PRETTY);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  if (isRoot) expect(statSync(path)).toMatchObject({ uid: 65_534, gid: 65_534 });
  expect(await cli(['config', 'fmt', '--check', path])).toEqual({ code: 0, stdout: '', stderr: '' });
});

test('fmt formats standard input to standard output', async () => {
  expect(await cli(['config', 'fmt', '-'], { input: UGLY })).toEqual({ code: 0, stdout: PRETTY, stderr: '' });
});

test('fmt keeps line breaks of Windows', () => {
  expect(formatConfig('a:   1\r\nb: 2\r\n', 'x')).toBe('a: 1\r\nb: 2\r\n');
});

test.each([
  ['a: [', ':1:'],
  ['a: 1\na: 2\n', ':2:1: '],
])('fmt does not touch %j, which is not valid', async (text, place) => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'gateway.yaml');
  writeFileSync(path, text);
  const { code, stderr } = await cli(['config', 'fmt', path]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${path}${place}`)]);
  expect(readFileSync(path, 'utf8')).toBe(text);
});

test('formatting changes no value, and a formatted file is not changed again', () => {
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      fc.string({ maxLength: 12 }),
      fc.integer(),
      fc.boolean(),
      tie('map'),
      tie('list'),
    ),
    map: fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), tie('node'), { maxKeys: 4 }),
    list: fc.array(tie('node'), { maxLength: 4 }),
  }));
  fc.assert(
    fc.property(value.map as fc.Arbitrary<object>, fc.nat(8), (config, indent) => {
      const text = JSON.stringify(config, null, indent).replaceAll('$', '');
      const formatted = formatConfig(text, 'x');
      expect(parse(formatted)).toEqual(parse(text));
      expect(formatConfig(formatted, 'x')).toBe(formatted);
    }),
    { numRuns: repeats(20, 500) },
  );
});
