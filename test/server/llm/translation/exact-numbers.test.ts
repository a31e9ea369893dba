import { expect, test } from 'vitest';
import type { Json } from '../../../../src/server/llm/chat/chat-format.ts';
import { parseExactly } from '../../../../src/server/llm/chat/exact-json.ts';
import { wire } from './wire.ts';

const call = wire();

test.each([
  '{"id":9007199254740993}',
  '{"id":-123456789012345678901234567890}',
  '{"share":0.12345678901234567890123}',
  '[1,2.5,"12345678901234567890"]',
])('JSON is the same after it was parsed and written: %s', (text) => {
  expect(JSON.stringify(parseExactly(text))).toBe(text);
});

/** Too large for a number of JavaScript, as identifiers of 64 bits are. */
const INPUT = '{"id":12345678901234567890}';

const ASKED = { role: 'user', content: 'Hi' };

const openAiCall = { id: 'call_1', type: 'function', function: { name: 'f', arguments: INPUT } };
const answers = {
  completions: { choices: [{ message: { role: 'assistant', content: null, tool_calls: [openAiCall] } }] },
  messages: { content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: parseExactly(INPUT) }] },
};

test('a number with 20 digits in the arguments of a tool call survives on the way to Messages and back', async () => {
  const body = { model: 'm', messages: [ASKED, { role: 'assistant', tool_calls: [openAiCall] }, ASKED] };
  const { texts } = await call('completions', 'messages', body, { status: 200, body: answers.messages });
  expect(texts.provider).toContain(`"input":${INPUT}`);
  expect(texts.client).toContain(`"arguments":${JSON.stringify(INPUT)}`);
});

test('a number with 20 digits in the input of a tool call survives on the way to Chat Completions and back', async () => {
  const { content } = answers.messages;
  const body = {
    model: 'm',
    max_tokens: 9,
    messages: [ASKED, { role: 'assistant', content }, ASKED],
  } as Json;
  const { texts } = await call('messages', 'completions', body, { status: 200, body: answers.completions });
  expect(texts.provider).toContain(`"arguments":${JSON.stringify(INPUT)}`);
  expect(texts.client).toContain(`"input":${INPUT}`);
});
