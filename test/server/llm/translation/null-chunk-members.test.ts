import { describe, expect, test } from 'vitest';
import type { ChatEvent } from '../../../../src/server/llm/chat/chat.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';

// Members of streamed chat completions that are null or missing.

function read(...chunks: readonly object[]): ChatEvent[] {
  const reader = chatFormats.find(({ key }) => key === 'completions')?.eventReader();
  if (reader === undefined) throw new Error('no reader');
  return [...chunks.flatMap((chunk) => reader.read(JSON.stringify(chunk))), ...reader.end()];
}

const head = { id: 'c', created: 1, model: 'm' };
const chunk = (delta: object, choice: object = {}) => ({
  ...head,
  choices: [{ index: 0, delta, ...choice }],
});
const stop = chunk({}, { finish_reason: 'stop' });
const start = { type: 'start', id: 'c', model: 'm', created: 1 };

describe('a streamed chat completion', () => {
  test.each([
    ['null', null],
    ['missing', undefined],
    ['a number', 5],
  ])('starts with an empty id and model if these are %s', (_, value) => {
    const events = read({ ...chunk({ content: 'a' }), id: value, model: value, created: 'now' }, stop);
    expect(events[0]).toStrictEqual({ type: 'start', id: '', model: '' });
  });

  test('gives a call without an id a generated one', () => {
    const call = { tool_calls: [{ function: { name: 'f', arguments: '{}' } }] };
    const events = read({ ...chunk(call), id: null }, stop);
    expect(events[1]).toMatchObject({ content: { type: 'toolCall', id: 'call__0' } });
  });

  test('starts with its first chunk that has an id or an answer, and only once', () => {
    const filter = { id: '', model: '', choices: [], prompt_filter_results: [] };
    const starts = (...chunks: object[]) => read(...chunks).filter(({ type }) => type === 'start');
    expect(starts(filter, chunk({ content: 'a' }), chunk({ content: 'b' }), stop)).toEqual([start]);
    expect(starts(filter, { ...head, choices: [] }, chunk({ content: 'a' }), stop)).toEqual([start]);
    expect(starts({ ...stop, id: undefined })).toEqual([{ ...start, id: '' }]);
    expect(starts(filter)).toEqual([]);
  });

  test('with calls that have no number has them in the order of their list', () => {
    const call = (name: string, more: object = {}) => ({
      id: name,
      function: { name, arguments: '{}' },
      ...more,
    });
    for (const index of [undefined, null, -1, 0.5, '1']) {
      const events = read(chunk({ tool_calls: [call('f', { index }), call('g', { index })] }), stop);
      const calls = events.flatMap((event) => (event.type === 'partStart' ? [event.content] : []));
      expect(calls).toMatchObject([
        { type: 'toolCall', id: 'f', name: 'f' },
        { type: 'toolCall', id: 'g', name: 'g' },
      ]);
    }
  });

  test('with two calls without ids or numbers in one list adds each argument to its own', () => {
    const calls = (...list: object[]) => chunk({ tool_calls: list });
    const events = read(
      calls({ function: { name: 'f', arguments: '{"a":' } }, { function: { name: 'g', arguments: '{"b":' } }),
      calls({ function: { arguments: '1}' } }, { function: { arguments: '2}' } }),
      stop,
    );
    const texts = new Map<number, string>();
    for (const event of events)
      if (event.type === 'delta') texts.set(event.part, (texts.get(event.part) ?? '') + event.text);
    expect([...texts.values()]).toEqual(['{"a":1}', '{"b":2}']);
  });

  test('tells a stop sequence that is a text, and no token of a number', () => {
    const ended = (choice: object) => read(chunk({ content: 'a' }), chunk({}, choice)).at(-2);
    const end = { type: 'answerEnd', answer: 0 };
    expect(ended({ finish_reason: 'stop', stop_reason: 'END' })).toStrictEqual({
      ...end,
      stop: 'stopSequence',
      stopSequence: 'END',
    });
    for (const stop_reason of [7, null, undefined, {}])
      expect(ended({ finish_reason: 'stop', stop_reason })).toStrictEqual({ ...end, stop: 'stop' });
    expect(ended({ finish_reason: 'length', stop_reason: 'END' })).toStrictEqual({ ...end, stop: 'length' });
  });

  test('closes a text before the next kind of part, and at its end', () => {
    const events = read(
      chunk({ reasoning_content: 'hm' }),
      chunk({ content: 'a' }),
      chunk({ tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: '{}' } }] }),
      stop,
    );
    const order = events.flatMap((event) =>
      event.type === 'partStart' || event.type === 'partEnd' ? [`${event.type} ${event.part}`] : [],
    );
    expect(order).toEqual([
      'partStart 0',
      'partEnd 0',
      'partStart 1',
      'partEnd 1',
      'partStart 2',
      'partEnd 2',
    ]);
  });
});
