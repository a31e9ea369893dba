import { describe, expect, test } from 'vitest';
import {
  type MemberReader,
  readKnownMembers,
  readMembers,
} from '../../../../src/server/llm/chat/member-reader.ts';

// Every shape check of the reader of members, which requests of all formats would take minutes to reach.

type Read = (members: MemberReader) => unknown;

/** What a request, and a response, with this member `a` is read as: the value or the text of the error. */
function read(value: unknown, of: Read): [ofRequest: unknown, ofResponse: unknown] {
  const outcome = (reader: typeof readMembers): unknown => {
    try {
      return reader({ a: value }, '', of);
    } catch (error) {
      return error instanceof Error ? error.message : error;
    }
  };
  return [outcome(readMembers), outcome(readKnownMembers)];
}

/** Values of other types, with which servers fill members that they do not use. */
const EMPTY = ['', [], {}, { b: '' }].map((value) => JSON.stringify(value));

const IN_B: Read = (members) => members.number('b');

const KINDS: readonly [kind: string, of: Read, good: unknown[], bad: unknown[], problem: string][] = [
  ['text', (it) => it.text('a'), ['', 'x'], [0, false, [], {}], 'expected a string'],
  ['number', (it) => it.number('a'), [0, -1.5], ['', '1', false, [], {}], 'expected a number'],
  ['flag', (it) => it.flag('a'), [true, false], ['', 'true', 0, [], {}], 'expected true or false'],
  ['JSON', (it) => it.json('a'), [{}, { b: 1 }], ['', 'x', 0, [], [{}]], 'expected an object'],
  [
    'list of texts',
    (it) => it.texts('a'),
    [[], ['x'], ['']],
    ['', 'x', 0, {}, [1], ['x', null]],
    'expected a list of strings',
  ],
  [
    'map of numbers',
    (it) => it.map('a', 'number'),
    [{}, { b: 0 }],
    ['', 0, [], [1], { b: '' }, { b: 1, c: null }],
    'expected an object of numbers',
  ],
  [
    'map of texts',
    (it) => it.map('a', 'string'),
    [{}, { b: '' }],
    ['', 'x', [], ['x'], { b: 1 }],
    'expected an object of strings',
  ],
];

describe.each(KINDS)('a member that is read as %s', (_kind, of, good, bad, problem) => {
  test('has its value, or none', () => {
    for (const value of good) expect(read(value, of)).toEqual([value, value]);
    for (const value of [null, undefined]) expect(read(value, of)).toEqual([undefined, undefined]);
  });

  test('is refused with another value, unless a server has it empty', () => {
    for (const value of bad) {
      const ofResponse = EMPTY.includes(JSON.stringify(value)) ? undefined : `a: ${problem}`;
      expect([value, ...read(value, of)]).toEqual([value, `a: ${problem}`, ofResponse]);
    }
  });
});

describe('a member with a choice', () => {
  const of: Read = (members) => members.choice('a', ['x', 'y']);

  test('has one of the values', () => {
    expect(read('y', of)).toEqual(['y', 'y']);
    expect(read(null, of)).toEqual([undefined, undefined]);
    expect(read('z', of)).toEqual(['a: "z"', 'a: "z"']);
  });

  test('is shown in the error if it is short', () => {
    expect(read('z'.repeat(40), of)[0]).toBe(`a: "${'z'.repeat(40)}"`);
    expect(read('z'.repeat(41), of)[0]).toBe('a');
  });

  test('is missing if it is required', () => {
    const required: Read = (members) => members.requiredChoice('a', ['x']);
    expect(read('x', required)).toEqual(['x', 'x']);
    expect(read(null, required)).toEqual(['a: is missing', 'a: is missing']);
  });
});

describe('a member with an object', () => {
  const of: Read = (members) => members.object('a', IN_B);

  test('is read, or absent', () => {
    expect(read({ b: 1 }, of)).toEqual([1, 1]);
    expect(read({}, of)).toEqual([undefined, undefined]);
    expect(read(null, of)).toEqual([undefined, undefined]);
    expect(read({ b: 'x' }, of)).toEqual(['a.b: expected a number', 'a.b: expected a number']);
  });

  test('is refused with another value, unless a server has it empty', () => {
    for (const value of ['x', 0, false, [1], [{}]])
      expect(read(value, of)).toEqual(['a: expected an object', 'a: expected an object']);
    for (const value of ['', []]) expect(read(value, of)).toEqual(['a: expected an object', undefined]);
  });

  test('is read also if a server has it empty', () => {
    expect(read({}, (members) => members.object('a', () => 'read'))).toEqual(['read', 'read']);
  });
});

describe('a member with a list of objects', () => {
  const of: Read = (members) => members.objects('a', (each, index) => [each.number('b'), index]);

  test('is read, or empty', () => {
    const expected = [
      [1, 0],
      [2, 1],
    ];
    expect(read([{ b: 1 }, { b: 2 }], of)).toEqual([expected, expected]);
    expect(read(null, of)).toEqual([[], []]);
    expect(read([], of)).toEqual([[], []]);
  });

  test('is refused with another value, unless a server has it empty', () => {
    for (const value of ['x', 0, { b: 1 }])
      expect(read(value, of)).toEqual(['a: expected a list', 'a: expected a list']);
    for (const value of ['', {}]) expect(read(value, of)).toEqual(['a: expected a list', []]);
    for (const value of ['x', 0, [1]])
      expect(read([value], of)).toEqual(['a[0]: expected an object', 'a[0]: expected an object']);
    for (const value of ['', null, []])
      expect(read([value, { b: 1 }], of)).toEqual(['a[0]: expected an object', [[1, 1]]]);
  });
});

describe('a member with a text or a list of objects', () => {
  const of: Read = (members) =>
    members.textOrObjects<unknown>(
      'a',
      (text) => `text ${text}`,
      (each) => each.texts('b') ?? each.number('c'),
    );

  test('is read, or absent', () => {
    expect(read('', of)).toEqual([['text '], ['text ']]);
    expect(read('x', of)).toEqual([['text x'], ['text x']]);
    expect(read(null, of)).toEqual([undefined, undefined]);
    expect(read([], of)).toEqual([[], []]);
    const [ofRequest] = read([{ c: 1 }, { b: ['x', 'y'] }, { b: [] }], (members) =>
      members.textOrObjects<unknown>('a', String, (each) =>
        each.value('c') === 1 ? 1 : (each.texts('b') ?? []),
      ),
    );
    expect(ofRequest).toEqual([1, 'x', 'y']);
  });

  test('is refused with another value, unless a server has it empty', () => {
    const problem = 'a: expected a string or a list';
    for (const value of [0, { b: 1 }]) expect(read(value, of)).toEqual([problem, problem]);
    expect(read({}, of)).toEqual([problem, undefined]);
  });
});

describe('a member whose values are known', () => {
  test('has one of the texts', () => {
    const of: Read = (members) => members.onlyTexts('a', ['x']);
    expect(read(['x', 'x'], of)).toEqual([undefined, undefined]);
    expect(read(null, of)).toEqual([undefined, undefined]);
    expect(read(['x', 'y'], of)[0]).toBe('a[1]: "y"');
    expect(read(['y'.repeat(50)], of)[0]).toBe(`a[0]: "${'y'.repeat(40)}"`);
  });

  test('has one of the values', () => {
    const of: Read = (members) => members.only('a', false, { b: [1] });
    for (const value of [null, false, { b: [1] }]) expect(read(value, of)).toEqual([undefined, undefined]);
    expect(read(true, of)).toEqual(['a: true', 'a: true']);
    expect(read({ b: [2] }, of)).toEqual(['a', 'a']);
  });
});

test('a required member is there and not empty', () => {
  const list: Read = (members) => members.requiredObjects('a', IN_B);
  expect(read([{ b: 1 }], list)[0]).toEqual([1]);
  for (const value of [null, []]) expect(read(value, list)[0]).toBe('a: is missing');
  expect(read(null, (members) => members.requiredText('a'))[0]).toBe('a: is missing');
  expect(read(null, (members) => members.requiredObject('a', IN_B))[0]).toBe('a: is missing');
});

test('only objects have members, and only their own', () => {
  for (const value of [null, undefined, 'x', 1, [], [{}]]) {
    expect(() => readMembers(value, '', IN_B)).toThrow('body: expected an object');
    expect(() => readKnownMembers(value, 'p', IN_B)).toThrow('p: expected an object');
  }
  expect(readMembers({}, '', (members) => members.value('constructor'))).toBeUndefined();
});

describe('a member that nobody reads', () => {
  const nothing: Read = () => 'read';

  test('is refused in a request, unless it is null or a hint', () => {
    expect(read(1, nothing)).toEqual(['a', 'read']);
    expect(read('', nothing)).toEqual(['a', 'read']);
    for (const value of [null, undefined]) expect(read(value, nothing)).toEqual(['read', 'read']);
    expect(read(1, (members) => members.skip({ a: 'why' }))).toEqual([undefined, undefined]);
  });

  test('may be empty in an object of a request', () => {
    const inner: Read = (members) => members.object('a', nothing);
    for (const value of [null, '', []]) expect(read({ c: value }, inner)[0]).toBe('read');
    for (const value of [0, false, {}, 'x', ['']]) expect(read({ c: value }, inner)[0]).toBe('a.c');
  });
});
