import { describe, expect, test } from 'vitest';
import { chatCompletions } from '../../../../src/server/llm/formats/chat-completions/index.ts';
import { generateContent } from '../../../../src/server/llm/formats/generate-content/index.ts';
import { call, field, HELLO, type Loose, TOOLS, user, weather } from './field.ts';

// Signatures of Gemini in conversations. Each test names the report that its input is from.

const ask = field();

describe('ids of calls', () => {
  // BerriAI/litellm#41534
  test.each(['responses', 'completions'] as const)(
    'ids with a signature of Gemini, and other long ones, are short for %s, and results keep their calls',
    async (provider) => {
      const ids = [`call_1__sig_${'x'.repeat(900)}`, `call_2-${'y'.repeat(80)}`, `call_2-${'y'.repeat(81)}`];
      const messages = [
        user('Weather?'),
        {
          role: 'assistant',
          content: ids.map((id) => ({ type: 'tool_use', id, name: 'weather', input: {} })),
        },
        user(ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: '20' }))),
      ];
      const tools = [{ name: 'weather', input_schema: { type: 'object' } }];
      const { sent } = await ask('messages', provider, { max_tokens: 50, messages, tools }, HELLO[provider]);
      const calls = sent.input
        ? sent.input.flatMap((item: Loose) => (item.type === 'function_call' ? [item.call_id] : []))
        : sent.messages[1].tool_calls.map(({ id }: Loose) => id);
      const results = sent.input
        ? sent.input.flatMap((item: Loose) => (item.type === 'function_call_output' ? [item.call_id] : []))
        : sent.messages.flatMap((message: Loose) => message.tool_call_id ?? []);
      expect(new Set(calls).size).toBe(3);
      expect(results).toEqual(calls);
      for (const id of calls) expect(id).toMatch(/^[\w-]{1,64}$/);
    },
  );
});

describe('signatures of Gemini', () => {
  const call1 = { functionCall: { name: 'weather', args: { city: 'Paris' } } };
  const call2 = { functionCall: { name: 'weather', args: { city: 'Rome' } } };
  const answer = (parts: object[]) => ({
    body: { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] },
  });
  const callsOf = (sent: Loose) =>
    sent.contents.flatMap(({ parts }: Loose) => parts.filter((p: Loose) => p.functionCall));

  // BerriAI/litellm#25322, and signatures that are no Base64, which other servers of this format send
  test.each(['U0lHLVQ=', 'SIG==', 'with-other_letters', 'Grüße "1"', '__sig_'])(
    'the signature %s of a thought that is not on the call comes back in its place',
    async (thoughtSignature) => {
      const thought = { thought: true, text: 'Use the tool.', thoughtSignature };
      const tools = [{ name: 'weather', input_schema: weather.parameters }];
      const question = { max_tokens: 9000, tools, thinking: { type: 'enabled', budget_tokens: 4096 } };
      const first = await ask(
        'messages',
        'generateContent',
        { ...question, messages: [user('Weather?')] },
        answer([thought, call1]),
      );
      const id = first.got.content.find((block: Loose) => block.type === 'tool_use').id;
      expect(id).toMatch(/^[\w-]+$/);
      const messages = [
        user('Weather?'),
        { role: 'assistant', content: first.got.content },
        user([{ type: 'tool_result', tool_use_id: id, content: '20' }]),
      ];
      const { sent } = await ask(
        'messages',
        'generateContent',
        { ...question, messages },
        HELLO.generateContent,
      );
      expect(sent.contents[1].parts).toContainEqual(expect.objectContaining({ thoughtSignature }));
      expect(sent.contents[2].parts).toMatchObject([{ functionResponse: { name: 'weather' } }]);
    },
  );

  // cline/cline#7974
  test('a client of chat completions that knows nothing of signatures sends them back with parallel calls', async () => {
    const question = { tools: TOOLS };
    const first = await ask(
      'completions',
      'generateContent',
      { ...question, messages: [user('Weather?')] },
      answer([{ ...call1, thoughtSignature: 'U0lHLUE=' }, call2]),
    );
    const { tool_calls: calls } = first.got.choices[0].message;
    const messages = [
      user('Weather?'),
      { role: 'assistant', content: null, tool_calls: calls },
      ...calls.map(({ id }: Loose) => ({ role: 'tool', tool_call_id: id, content: '20' })),
    ];
    const { sent } = await ask(
      'completions',
      'generateContent',
      { ...question, messages },
      HELLO.generateContent,
    );
    expect(callsOf(sent)).toMatchObject([
      { thoughtSignature: 'U0lHLUE=' },
      { functionCall: call2.functionCall },
    ]);
    expect(callsOf(sent)[1]).not.toHaveProperty('thoughtSignature');
  });

  // cline/cline#7974
  test.each([
    ['gemini-3-pro-preview', 'skip_thought_signature_validator'],
    ['models/gemini-flash-latest', 'skip_thought_signature_validator'],
    ['gemini-2.5-flash', undefined],
    ['gemma-4-27b', undefined],
  ])('calls that another model made are sent to %s with the signature %s', (model, signature) => {
    const messages = [
      user('Weather?'),
      { role: 'assistant', content: null, tool_calls: [call('call_a', 'Paris'), call('call_b', 'Rome')] },
      { role: 'tool', tool_call_id: 'call_a', content: '20' },
      { role: 'tool', tool_call_id: 'call_b', content: '25' },
    ];
    const request = chatCompletions.chat.readRequest({ model, messages, tools: TOOLS });
    const [first, second] = callsOf(generateContent.chat.writeRequest(request));
    expect(first.thoughtSignature).toBe(signature);
    expect(second).not.toHaveProperty('thoughtSignature');
  });
});
