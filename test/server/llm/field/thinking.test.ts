import { describe, expect, test } from 'vitest';
import { call, field, HELLO, type Loose, TOOLS, user, weather } from './field.ts';

// What providers get of earlier thinking. Each test names the report that its input is from.

const ask = field();

describe('thinking in conversations', () => {
  const loop = {
    max_tokens: 8000,
    reasoning_effort: 'high',
    tools: TOOLS,
    messages: [
      user('Weather in Paris?'),
      { role: 'assistant', content: null, tool_calls: [call('call_a', 'Paris')] },
      { role: 'tool', tool_call_id: 'call_a', content: '20 °C' },
    ],
  };

  // BerriAI/litellm#15601
  test('a client that keeps no thinking can send the result of a tool to Claude', async () => {
    const { status, sent } = await ask('completions', 'messages', loop, HELLO.messages);
    expect(status).toBe(200);
    expect(sent.thinking).toBeUndefined();
  });

  // BerriAI/litellm#15601
  test('a client that keeps no thinking can send the result of a tool to Claude on Bedrock', async () => {
    const { status, sent } = await ask('completions', 'bedrock', loop, HELLO.bedrock);
    expect(status).toBe(200);
    expect(sent.additionalModelRequestFields?.thinking).toBeUndefined();
  });

  // anthropics/claude-code#22274
  test.each([500, 1500])(
    'a budget of thinking is never below the minimum of Claude (max_tokens %i)',
    async (limit) => {
      const request = { max_tokens: limit, reasoning_effort: 'high', messages: [user('Hi')] };
      const { sent } = await ask('completions', 'messages', request, HELLO.messages);
      const budget = sent.thinking?.budget_tokens ?? 1024;
      expect(budget).toBeGreaterThanOrEqual(1024);
      if (sent.thinking !== undefined) expect(sent.max_tokens).toBeGreaterThan(budget);
      const { sent: converse } = await ask('completions', 'bedrock', request, HELLO.bedrock);
      const thinking = converse.additionalModelRequestFields?.thinking;
      expect(thinking?.budget_tokens ?? 1024).toBeGreaterThanOrEqual(1024);
      if (thinking !== undefined)
        expect(converse.inferenceConfig.maxTokens).toBeGreaterThan(thinking.budget_tokens);
    },
  );

  const CUT = {
    messages: {
      content: [{ type: 'thinking', thinking: 'Let me see', signature: 'EqQB' }],
      stop_reason: 'max_tokens',
    },
    bedrock: {
      output: {
        message: {
          role: 'assistant',
          content: [{ reasoningContent: { reasoningText: { text: 'Let me see', signature: 'EqQB' } } }],
        },
      },
      stopReason: 'max_tokens',
    },
    completions: {
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: '', reasoning: 'Let me see' },
          finish_reason: 'length',
        },
      ],
    },
    responses: {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [
        {
          id: 'rs_1',
          type: 'reasoning',
          summary: [{ type: 'summary_text', text: 'Let me see' }],
          encrypted_content: 'gAAAA-secret',
        },
      ],
    },
    generateContent: {
      candidates: [
        {
          content: {
            role: 'model',
            parts: [{ thought: true, text: 'Let me see', thoughtSignature: 'U0lH' }],
          },
          finishReason: 'MAX_TOKENS',
        },
      ],
    },
  };

  // anthropics/claude-code#10199
  test.each(['messages', 'bedrock', 'completions', 'responses', 'generateContent'] as const)(
    'an answer of %s that ended while thinking is left out of the conversation',
    async (provider) => {
      const client = provider === 'messages' ? 'completions' : 'messages';
      const question = { max_tokens: 5000 };
      const first = await ask(
        client,
        provider,
        { ...question, messages: [user('Hi')] },
        {
          body: { ...HELLO[provider].body, ...CUT[provider] },
        },
      );
      expect(first.text).toContain('Let me see');
      const answer = first.got.choices?.[0].message ?? { role: 'assistant', content: first.got.content };
      const messages = [user('Hi'), answer, user('Go on')];
      const { status, sent } = await ask(client, provider, { ...question, messages }, HELLO[provider]);
      expect(status).toBe(200);
      expect(JSON.stringify(sent)).toContain('Go on');
      expect(JSON.stringify(sent)).not.toMatch(/Let me see|"assistant"|"role":"model"|reasoning/);
    },
  );

  // maximhq/bifrost#7320
  test('reasoning of a Responses client goes back to a provider of chat completions', async () => {
    const input = [
      { role: 'user', content: 'Weather in Paris?' },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [],
        content: [{ type: 'reasoning_text', text: 'Use the tool.' }],
      },
      {
        type: 'function_call',
        id: 'fc_1',
        call_id: 'call_a',
        name: 'weather',
        arguments: '{"city":"Paris"}',
      },
      { type: 'function_call_output', call_id: 'call_a', output: '20 °C' },
    ];
    const tools = [{ type: 'function', ...weather }];
    const { status, sent } = await ask('responses', 'completions', { input, tools }, HELLO.completions);
    expect(status).toBe(200);
    expect(sent.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', reasoning_content: 'Use the tool.', tool_calls: [{ id: 'call_a' }] },
      { role: 'tool', tool_call_id: 'call_a' },
    ]);
  });

  // openai/codex#35739
  test('reasoning that a Responses provider has not stored goes back without an id that it would look up', async () => {
    const reasoning = { id: 'rs_1', type: 'reasoning', summary: [], encrypted_content: 'gAAAA-secret' };
    const output = [reasoning, ...(HELLO.responses.body as Loose).output];
    const question = { max_tokens: 50, thinking: { type: 'enabled', budget_tokens: 4096 } };
    const first = await ask(
      'messages',
      'responses',
      { ...question, messages: [user('Hi')] },
      {
        body: { ...HELLO.responses.body, output },
      },
    );
    expect(first.sent).toMatchObject({ store: false, include: ['reasoning.encrypted_content'] });
    const messages = [user('Hi'), { role: 'assistant', content: first.got.content }, user('Go on')];
    const { sent } = await ask('messages', 'responses', { ...question, messages }, HELLO.responses);
    const items = sent.input.filter((item: Loose) => item.type === 'reasoning');
    expect(items).toEqual([{ type: 'reasoning', summary: [], encrypted_content: 'gAAAA-secret' }]);
    expect(sent.input.some((item: Loose) => item.type !== 'reasoning' && 'id' in item)).toBe(false);
  });

  const thinking = (text: string, signature: string) => ({ type: 'thinking', thinking: text, signature });
  const REDACTED = { type: 'redacted_thinking', data: 'RED_DATA' };
  const tool = { type: 'tool_use', id: 'call_a', name: 'weather', input: { city: 'Paris' } };
  const rs = (id: string, summary: string) => ({
    type: 'reasoning',
    id,
    summary: summary === '' ? [] : [{ type: 'summary_text', text: summary }],
    encrypted_content: `ENC_${id}`,
  });
  const BLOCKS: Readonly<Record<string, object[]>> = {
    two: [thinking('Let me\n\n', 'SIG_1='), thinking('second', 'SIG_2=')],
    'redacted, second': [thinking('Let me', 'SIG_1='), REDACTED],
    'redacted, first': [REDACTED, thinking('Let me', 'SIG_1=')],
    'with a text between': [
      thinking('Let me', 'SIG_1='),
      { type: 'text', text: 'Mid.' },
      thinking('é𝄞', 'SIG_2='),
    ],
    'without texts': [REDACTED, thinking('', 'SIG_1=')],
    one: [thinking('Let me', 'SIG_1=')],
  };
  const streamOf = (content: readonly Loose[]): object[] => [
    { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: {} } },
    ...content.flatMap((block, index) => [
      {
        type: 'content_block_start',
        index,
        content_block: { ...block, text: '', thinking: '', signature: '' },
      },
      ...(block.thinking
        ? [
            {
              type: 'content_block_delta',
              index,
              delta: { type: 'thinking_delta', thinking: block.thinking },
            },
          ]
        : []),
      ...(block.text
        ? [{ type: 'content_block_delta', index, delta: { type: 'text_delta', text: block.text } }]
        : []),
      ...(block.signature
        ? [
            {
              type: 'content_block_delta',
              index,
              delta: { type: 'signature_delta', signature: block.signature },
            },
          ]
        : []),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ];
  /** The message that a client joins of the texts in a stream, or gets. */
  const messageOf = (got: Loose): Loose => {
    if (!Array.isArray(got)) return got.choices[0].message;
    const joined = (name: string): string =>
      got.map(({ choices }: Loose) => choices[0]?.delta[name] ?? '').join('');
    const signature = joined('reasoning_signature');
    return {
      role: 'assistant',
      content: joined('content'),
      reasoning_content: joined('reasoning_content'),
      ...(signature === '' ? {} : { reasoning_signature: signature }),
      tool_calls: [call('call_a', 'Paris')],
    };
  };
  const question = { max_tokens: 9000, reasoning_effort: 'low', tools: TOOLS, messages: [user('Weather?')] };
  const next = (message: object) => ({
    ...question,
    messages: [...question.messages, message, { role: 'tool', tool_call_id: 'call_a', content: '20 °C' }],
  });

  // maximhq/bifrost#5274
  test.each(Object.keys(BLOCKS))(
    'thinking blocks come back through a client of chat completions: %s',
    async (name) => {
      const content = [...(BLOCKS[name] ?? []), tool];
      const body = { ...HELLO.messages.body, content, stop_reason: 'tool_use' };
      for (const stream of [false, true]) {
        const answered = stream ? { events: streamOf(content) } : { body };
        const { got } = await ask('completions', 'messages', { ...question, stream }, answered);
        const message = messageOf(got);
        expect(message.reasoning_content ?? '').not.toMatch(/^\n\n/);
        const { sent } = await ask('completions', 'messages', next(message), HELLO.messages);
        const isThinking = ({ type }: Loose): boolean => /thinking/.test(type);
        expect(sent.messages[1].content.filter(isThinking)).toEqual(content.filter(isThinking));
        expect(sent.thinking).toMatchObject({ type: 'enabled' });
        // A text that the client has changed belongs to no signature.
        if (name !== 'two') continue;
        const changed = { ...message, reasoning_content: 'Other.' };
        const { sent: without } = await ask('completions', 'messages', next(changed), HELLO.messages);
        expect(without.messages[1].content.some(isThinking)).toBe(false);
      }
    },
  );

  // maximhq/bifrost#5274
  test('reasoning items of a Responses provider come back through a client of chat completions', async () => {
    const items = [rs('rs_1', 'Sum.'), rs('rs_2', '')];
    const output = [
      ...items,
      { type: 'function_call', id: 'fc', call_id: 'call_a', name: 'weather', arguments: '{"city":"Paris"}' },
    ];
    const { got } = await ask('completions', 'responses', question, {
      body: { ...HELLO.responses.body, output },
    });
    const { sent } = await ask('completions', 'responses', next(messageOf(got)), HELLO.responses);
    expect(sent.input.filter(({ type }: Loose) => type === 'reasoning')).toEqual(
      items.map(({ type, summary, encrypted_content }) => ({ type, summary, encrypted_content })),
    );
  });

  // maximhq/bifrost#5274
  test.each(['reasoning_details', 'thinking_blocks'])(
    'reasoning that another gateway repeats in %s is left out',
    async (member) => {
      const message = { role: 'assistant', content: 'x', [member]: [thinking('Let me', 'SIG')] };
      const { status, sent } = await ask(
        'completions',
        'messages',
        { ...question, messages: [user('Hi'), message, user('Go on')] },
        HELLO.messages,
      );
      expect(status).toBe(200);
      expect(JSON.stringify(sent)).not.toContain('Let me');
    },
  );
});
