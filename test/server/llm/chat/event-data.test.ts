import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../../src/core/limits.ts';
import {
  answerIndex,
  countOf,
  firstMember,
  isBlank,
  isEmpty,
  objectOf,
  objectsOf,
  parseEvent,
  requiredName,
  serverEvent,
  shown,
  textOf,
} from '../../../../src/server/llm/chat/event-data.ts';

// Every shape check of the readers of events, which streams of all formats would take minutes to reach.

test('an event has an object', () => {
  expect(parseEvent('{"a":1}')).toEqual({ a: 1 });
  for (const data of ['', '{', '[DONE]']) expect(() => parseEvent(data)).toThrow('is not JSON');
  for (const data of ['null', '1', '"x"', '[]', '[{}]', 'true'])
    expect(() => parseEvent(data)).toThrow('an event of the stream is not a JSON object');
});

test('an object, and the objects of a list, are told from other values', () => {
  expect(objectOf({ a: 1 })).toEqual({ a: 1 });
  for (const value of [null, undefined, 'x', 1, [], [{}]]) expect(objectOf(value)).toBeUndefined();
  expect(objectsOf([{ a: 1 }, null, 'x', [], { b: 1 }])).toEqual([{ a: 1 }, { b: 1 }]);
  for (const value of [null, undefined, 'x', 1, {}]) expect(objectsOf(value)).toEqual([]);
});

describe('a value without content', () => {
  const deep = (levels: number, inner: unknown): unknown =>
    levels === 0 ? inner : { a: deep(levels - 1, inner) };

  test('is blank if it is null, an empty text or an empty list', () => {
    for (const value of [undefined, null, '', []])
      expect([isBlank(value), isEmpty(value)]).toEqual([true, true]);
    for (const value of [0, false, 'x', [null], { length: 0, a: 1 }])
      expect([isBlank(value), isEmpty(value)]).toEqual([false, false]);
  });

  test('is empty if it is an object of empty values', () => {
    for (const value of [{}, { a: null, b: '' }, deep(5, null)])
      expect([isBlank(value), isEmpty(value)]).toEqual([false, true]);
    for (const value of [{ a: 0 }, { a: null, b: 'x' }, deep(6, null)]) expect(isEmpty(value)).toBe(false);
  });

  test('is not the first member', () => {
    expect(firstMember({ a: null, b: '', c: [], d: {}, e: { f: null }, g: 1 })).toBe('g');
    expect(firstMember({ a: 1, b: 2 }, ['a'])).toBe('b');
    expect(firstMember({ a: '' })).toBeUndefined();
  });
});

test('texts and names are strings with characters', () => {
  expect([textOf('x'), requiredName('x', 'p')]).toEqual(['x', 'x']);
  for (const value of [undefined, null, '', 1, ['x'], {}]) {
    expect(textOf(value)).toBeUndefined();
    expect(() => requiredName(value, 'p')).toThrow('p: is missing');
  }
});

test('counts are whole numbers from 0, and indexes of answers are below a limit', () => {
  for (const value of [0, 1, 127]) expect([countOf(value), answerIndex(value, 'p')]).toEqual([value, value]);
  for (const value of [
    undefined,
    null,
    '1',
    true,
    -1,
    1.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    [1],
  ])
    expect([countOf(value), answerIndex(value, 'p')]).toEqual([undefined, 0]);
  expect(() => answerIndex(LIMITS.llmAnswers, 'p')).toThrow('p: 128: there are not so many answers');
});

test('values are shown as JSON, and events are written with their type', () => {
  expect([shown(undefined), shown('x'), shown({ a: 1 })]).toEqual(['nothing', '"x"', '{"a":1}']);
  expect(shown('x'.repeat(99))).toHaveLength(64);
  expect(serverEvent({ a: 1 })).toBe('data: {"a":1}\n\n');
  expect(serverEvent({ a: 1 }, 't')).toBe('event: t\ndata: {"a":1}\n\n');
});
