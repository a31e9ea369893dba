import { expect, test } from 'vitest';
import { textOf } from '../../../src/server/llm/chat/conversation.ts';

/** A content inside of lists, so deep that a function that calls itself for each level has no stack left. */
function nested(levels: number, content: unknown): unknown {
  let value = content;
  for (let level = 0; level < levels; level += 1) value = [value];
  return value;
}

test('the text of an answer is read in lists inside of its parts', () => {
  expect(textOf(nested(5, { content: [{ text: 'a' }, 'b'] }))).toBe('ab');
});

test.each([
  ['lists', nested(100_000, 'text')],
  ['parts', Array.from({ length: 100_000 }).reduce((inner) => ({ parts: [inner] }), 'text' as unknown)],
  ['contents', Array.from({ length: 100_000 }).reduce((inner) => ({ content: inner }), 'text' as unknown)],
])('the text of an answer with 100,000 %s inside of each other is empty', (_, value) => {
  expect(textOf(value)).toBe('');
});
