import { expect, test } from 'vitest';
import type { ChatEvent } from '../../../../src/server/llm/chat/chat.ts';
import { EventOrder } from '../../../../src/server/llm/translation/event-order.ts';

const start: ChatEvent = { type: 'start', id: 'a', model: 'm' };
const part = (number: number): ChatEvent => ({
  type: 'partStart',
  part: number,
  answer: 0,
  content: { type: 'text' },
});
const end: ChatEvent = { type: 'end' };

/** The events as they are written, without members. */
function completed(events: readonly ChatEvent[]): string[] {
  const order = new EventOrder();
  return events
    .flatMap((event) => [...order.completed(event)])
    .map((event) => ('part' in event ? `${event.type} ${event.part}` : event.type));
}

test.each<[string, ChatEvent[], string[]]>([
  ['a second start', [start, part(0), start], ['start', 'partStart 0']],
  ['no start', [part(0), start], ['start', 'partStart 0']],
  ['an end of a part that never began', [start, { type: 'partEnd', part: 3 }, end], ['start', 'end']],
  ['no start and a delta', [{ type: 'delta', part: 0, text: 'x' }], ['start', 'delta 0']],
  ['no start and no part', [end], ['start', 'end']],
  [
    'no end of two parts',
    [start, part(0), part(1), end],
    ['start', 'partStart 0', 'partStart 1', 'partEnd 0', 'partEnd 1', 'end'],
  ],
  [
    'an end of a part twice',
    [start, part(0), { type: 'partEnd', part: 0 }, { type: 'partEnd', part: 0 }, end],
    ['start', 'partStart 0', 'partEnd 0', 'end'],
  ],
  ['an error first', [{ type: 'error', error: { message: 'm', status: 500 } }], ['error']],
])('a stream with %s is completed for clients', (_what, events, expected) => {
  expect(completed(events)).toEqual(expected);
});
