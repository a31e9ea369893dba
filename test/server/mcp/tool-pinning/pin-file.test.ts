import { mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { LIMITS } from '../../../../src/core/limits.ts';
import { PinFile } from '../../../../src/server/mcp/tool-pinning/pin-file.ts';
import { temporaryFolder } from '../../../kit/folder.ts';

/** A file of pins, and what is logged about it. */
async function pinFile(text?: string) {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'pins.yaml');
  if (text !== undefined) writeFileSync(path, text);
  const log: string[] = [];
  const warn = (_source: string, message: string, { problem }: { problem?: string } = {}): void =>
    void log.push(`${message}: ${problem}`);
  const open = () => new PinFile(path, { warn } as never);
  return { path, log, open, file: open(), [Symbol.asyncDispose]: () => folder.remove() };
}

/** What is read of a file, or why it cannot be. */
async function read(text: string): Promise<unknown> {
  await using own = await pinFile(text);
  try {
    own.file.load();
  } catch (error) {
    return error instanceof Error ? error.message : error;
  }
  return { pin: own.file.get('a', 't'), count: own.file.count('a') };
}

describe('a file of tool pins that someone has edited', () => {
  test.each<[text: string, expected: unknown]>([
    ['targets: {}', { pin: undefined, count: 0 }],
    ['targets: { a: {} }', { pin: undefined, count: 0 }],
    ['targets: { a: { t: { hash: h } } }', { pin: { hash: 'h' }, count: 1 }],
    ['targets: { a: { t: { hash: h, definition: null } } }', { pin: { hash: 'h' }, count: 1 }],
    ['targets: { a: { t: { hash: h, definition: text } } }', { pin: { hash: 'h' }, count: 1 }],
    ['targets: { a: { t: { hash: h, definition: [1] } } }', { pin: { hash: 'h' }, count: 1 }],
    [
      'targets: { a: { t: { hash: h, definition: { title: x, other: y, inputSchema: { 1: [{ 2: z }] } } } } }',
      { pin: { hash: 'h', definition: { title: 'x', inputSchema: { 1: [{ 2: 'z' }] } } }, count: 1 },
    ],
    ...['', '1', 'text', '[]', 'a: {}', 'targets:', 'targets: text', 'targets: []', 'targets: 1'].map(
      (text): [string, string] => [text, 'expected a mapping with the key `targets`'],
    ),
    ...['', 'text', '[]', '[[t, { hash: h }]]', '1'].map((tools): [string, string] => [
      `targets: { a: ${tools} }`,
      'expected a mapping of tools at `targets.a`',
    ]),
    ...['', 'text', '[]', '{}', '{ hash: }', '{ hash: 1 }', '{ hash: [h] }', '{ definition: {} }'].map(
      (pin): [string, string] => [`targets: { a: { t: ${pin} } }`, 'expected a hash at `targets.a.t`'],
    ),
  ])('with %j is read as %j', async (text, expected) => {
    expect(await read(text)).toEqual(expected);
  });

  test('may have names that are numbers in quotes or keys of objects', async () => {
    await using own = await pinFile(
      'targets: { "1": { "2": { hash: h } }, __proto__: { constructor: { hash: g } } }',
    );
    own.file.load();
    expect([own.file.get('1', '2'), own.file.get('__proto__', 'constructor')]).toEqual([
      { hash: 'h' },
      { hash: 'g' },
    ]);
    expect([own.file.get('1', 'constructor'), own.file.get('constructor', '2')]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test.each([
    ['1', 'targets: { 1: { t: { hash: h } } }'],
    ['255', 'targets: { a: { 0xff: { hash: h } } }'],
    ['null', 'targets: { a: { ~: { hash: h } } }'],
    ['{}', 'targets: { a: { {}: { hash: h } } }'],
  ])('has to have quotes around the name %s', async (name, text) => {
    expect(await read(text)).toBe(`expected quotes around the name ${name}`);
  });

  // What can be read of such a file is not what was meant.
  test.each([
    ['an alias', 'targets: { a: &a { t: { hash: h } }, b: *a }'],
    ['a bracket that is not closed', 'targets: { a: { t: { hash: h }'],
    ['a quote that is not closed', 'targets: { a: { t: { hash: "h } } }'],
    ['two documents', 'targets: { a: { t: { hash: h } } }\n---\ntargets: {}'],
    ['a key twice', 'targets: { a: { t: { hash: h }, t: { hash: g } } }'],
  ])('with %s cannot be read', async (_what, text) => {
    expect(await read(text)).toEqual(expect.any(String));
  });

  test('is read again only when it has changed, also when it is gone', async () => {
    await using own = await pinFile('targets: { a: { t: { hash: h } } }');
    own.file.load();
    own.file.load();
    expect([own.file.revision, own.file.count('a'), own.file.count('b')]).toEqual([1, 1, 0]);
    writeFileSync(own.path, 'targets: { a: { t: { hash: other } } }');
    own.file.load();
    expect([own.file.revision, own.file.get('a', 't')]).toEqual([2, { hash: 'other' }]);
    own.file.refresh();
    expect([own.file.revision, own.log]).toEqual([2, []]);
    rmSync(own.path);
    own.file.load();
    expect([own.file.revision, own.file.count('a')]).toEqual([3, 0]);
  });
});

test('a file that is missing, no file, or too large is told apart', async () => {
  await using own = await pinFile();
  own.file.load();
  expect([own.file.revision, own.file.count('a'), own.file.get('a', 't')]).toEqual([0, 0, undefined]);
  writeFileSync(own.path, 'targets: {}\n');
  truncateSync(own.path, LIMITS.toolPinsBytes + 1);
  expect(() => own.file.load()).toThrow(`it is larger than ${LIMITS.toolPinsBytes} bytes`);
  writeFileSync(own.path, `targets: {}\n#${'x'.repeat(LIMITS.toolPinsBytes - 13)}`);
  expect(statSync(own.path).size).toBe(LIMITS.toolPinsBytes);
  own.file.load();
  await using other = await pinFile();
  mkdirSync(other.path);
  expect(() => other.file.load()).toThrow('it is not a regular file');
  other.file.refresh();
  other.file.refresh();
  expect(other.log).toEqual([]);
});

describe('added pins', () => {
  test('are written in the order of their names, beside those of others', async () => {
    await using own = await pinFile('targets: { c: { z: { hash: h } } }');
    own.file.load();
    own.file.add('a', new Map([['w', { hash: '3' }]]));
    own.file.add(
      'b',
      new Map([
        ['y', { hash: '1' }],
        ['x', { hash: '2', definition: { title: 't' } }],
      ]),
    );
    const names = readFileSync(own.path, 'utf8').match(/^ {2,4}\w+:$/gm);
    expect(names).toEqual(['  a:', '    w:', '  b:', '    x:', '    y:', '  c:', '    z:']);
    expect([own.file.get('b', 'x'), own.file.count('b'), own.file.revision]).toEqual([
      { hash: '2', definition: { title: 't' } },
      2,
      1,
    ]);
  });

  test('have no hidden characters in the file', async () => {
    await using own = await pinFile();
    const definition = { title: 'a\u202eb', inputSchema: { maxLength: 5, default: null } };
    own.file.add('a', new Map([['t', { hash: 'h', definition }]]));
    expect(readFileSync(own.path, 'utf8')).toContain('"a\\U0000202eb"');
    const again = own.open();
    again.load();
    expect(again.get('a', 't')).toEqual({ hash: 'h', definition });
  });

  test('are written without definitions if the file would be too large', async () => {
    await using own = await pinFile();
    own.file.add('a', new Map([['t', { hash: 'h', definition: { title: 'x'.repeat(100) } }]]));
    expect(readFileSync(own.path, 'utf8')).toContain('title');
    const long = { title: 'x'.repeat(LIMITS.toolPinsBytes) };
    own.file.add('a', new Map([['u', { hash: 'h', definition: long }]]));
    expect(parse(readFileSync(own.path, 'utf8'))).toEqual({
      targets: { a: { t: { hash: 'h' }, u: { hash: 'h' } } },
    });
  });

  test('are kept in memory while the file cannot be read, and written afterwards', async () => {
    await using own = await pinFile('targets: { a: { t: { hash: h } } }');
    own.file.load();
    writeFileSync(own.path, 'targets: [');
    own.file.refresh();
    own.file.add('a', new Map([['u', { hash: 'g' }]]));
    own.file.add('b', new Map([['v', { hash: 'f' }]]));
    expect(own.log).toEqual([expect.stringContaining('the file of tool pins cannot be read')]);
    expect([own.file.get('a', 't'), own.file.get('a', 'u'), own.file.get('b', 'v')]).toEqual([
      { hash: 'h' },
      { hash: 'g' },
      { hash: 'f' },
    ]);
    expect([own.file.count('a'), own.file.count('b'), own.file.count('c')]).toEqual([2, 1, 0]);
    expect(readFileSync(own.path, 'utf8')).toBe('targets: [');
    writeFileSync(own.path, 'targets: {}\n');
    own.file.load();
    own.file.add('c', new Map([['w', { hash: 'e' }]]));
    const again = own.open();
    again.load();
    expect(['a', 'b', 'c'].map((target) => again.count(target))).toEqual([1, 1, 1]);
  });
});
