import { expect, test } from 'vitest';
import { wire } from './wire.ts';

// Names that providers choose and that every object of JavaScript has.

const call = wire();
const MESSAGES = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] };

test.each(['__proto__', 'constructor', 'toString'])(
  'a provider error named %s is one of the format',
  async (code) => {
    const answer = { status: 403, body: { error: { message: 'bad', code } } };
    const { body } = await call('messages', 'completions', MESSAGES, answer);
    expect(body).toEqual({ type: 'error', error: { type: 'permission_error', message: 'bad' } });
    const chat = { model: 'm', messages: MESSAGES.messages };
    const type = { type: 'error', error: { type: code, message: 'bad' } };
    const openAi = await call('completions', 'messages', chat, { status: 403, body: type });
    expect(openAi.body).toMatchObject({ error: { message: 'bad', code } });
  },
);

test.each(['99999999999999999999', '5', '[]', 'null'])(
  'arguments of a tool call that are %s become a member of an object',
  async (args) => {
    const toolCall = { id: 'c', type: 'function', function: { name: 'f', arguments: args } };
    const message = { role: 'assistant', tool_calls: [toolCall] };
    const body = {
      id: '1',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, finish_reason: 'tool_calls', message }],
    };
    const { texts } = await call('messages', 'completions', MESSAGES, { status: 200, body });
    expect(texts.client).toContain(`"input":{"invalid_arguments":${JSON.stringify(args)}}`);
  },
);
