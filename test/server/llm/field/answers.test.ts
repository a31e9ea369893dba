import { describe, expect, test } from 'vitest';
import { assembled } from '../../../kit/llm-exchange.ts';
import { type Answered, field, HELLO } from './field.ts';

// What clients get of answers, and what is counted. Each test names the report that its input is from.

const ask = field();
const CARD = '4111 1111 1111 1111';
const guarded = field({ guardrails: { response: [{ regex: { rules: [{ builtin: 'creditCard' }] } }] } });
const chat = { messages: [{ role: 'user', content: 'Hi' }] };
const messages = { ...chat, max_tokens: 50 };

describe('token counts', () => {
  // Portkey-AI/gateway#1210
  test('tokens of the cache of Bedrock are a part of the input', async () => {
    const usage = {
      inputTokens: 15,
      outputTokens: 40,
      totalTokens: 160,
      cacheReadInputTokens: 100,
      cacheWriteInputTokens: 5,
    };
    const { got, line } = await ask('completions', 'bedrock', chat, {
      body: { ...HELLO.bedrock.body, usage },
    });
    expect(got.usage).toMatchObject({
      prompt_tokens: 120,
      completion_tokens: 40,
      total_tokens: 160,
      prompt_tokens_details: { cached_tokens: 100 },
    });
    expect(line).toMatchObject({ 'gen_ai.usage.input_tokens': '120', 'gen_ai.usage.output_tokens': '40' });
  });

  // cline/cline#1896
  test('cached tokens of Claude are named for clients of chat completions', async () => {
    const usage = {
      input_tokens: 15,
      cache_read_input_tokens: 100,
      cache_creation_input_tokens: 5,
      output_tokens: 40,
    };
    const { got } = await ask('completions', 'messages', chat, { body: { ...HELLO.messages.body, usage } });
    expect(got.usage).toMatchObject({ prompt_tokens: 120, prompt_tokens_details: { cached_tokens: 100 } });
  });

  // BerriAI/litellm#5017
  test('cached tokens that DeepSeek reports are read from the cache', async () => {
    const usage = {
      prompt_tokens: 120,
      completion_tokens: 40,
      total_tokens: 160,
      prompt_cache_hit_tokens: 100,
      prompt_cache_miss_tokens: 20,
    };
    const { got, line } = await ask('messages', 'completions', messages, {
      body: { ...HELLO.completions.body, usage },
    });
    expect(got.usage).toMatchObject({ input_tokens: 20, cache_read_input_tokens: 100, output_tokens: 40 });
    expect(line).toMatchObject({ 'gen_ai.usage.input_tokens': '120' });
  });

  const stream = (start: object, delta: object): object[] => [
    {
      type: 'message_start',
      message: { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], usage: start },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: delta },
    { type: 'message_stop' },
  ];
  const cache = (read: number | null, write: number | null = read) => ({
    cache_read_input_tokens: read,
    cache_creation_input_tokens: write,
  });
  test.each<[string, object, object, input: number]>([
    // maximhq/bifrost#5354, maximhq/bifrost#5510
    ['of Kimi', { input_tokens: 8849, ...cache(0) }, { input_tokens: 200, ...cache(8649, 0) }, 8849],
    // jeremychone/rust-genai#258
    ['of Qwen', { input_tokens: 3602 }, cache(3604, 0), 3604],
    // envoyproxy/ai-gateway#2279
    ['in both events', { input_tokens: 9, ...cache(1, 0) }, { input_tokens: 9, ...cache(1, 0) }, 10],
    // envoyproxy/ai-gateway#2290
    ['in the last event', { input_tokens: 0 }, { input_tokens: 4522, ...cache(0, 4511) }, 9033],
    // Aider-AI/aider#4382
    ['in the first event', { input_tokens: 100 }, { input_tokens: null, ...cache(null) }, 100],
    ['with a cache beside them', { input_tokens: 20, ...cache(0) }, { input_tokens: 10, ...cache(5, 0) }, 25],
  ])('counts %s are those of one prompt', async (_, start, delta, input) => {
    for (const client of ['messages', 'completions'] as const) {
      const events = stream({ ...start, output_tokens: 1 }, { ...delta, output_tokens: 43 });
      const { line } = await ask(client, 'messages', { ...messages, stream: true }, { events });
      expect(line).toMatchObject({
        'gen_ai.usage.input_tokens': String(input),
        'gen_ai.usage.output_tokens': '43',
      });
    }
  });

  // anthropics/claude-code#10222
  test('tokens are counted for Claude on Bedrock', async () => {
    const { status, got } = await ask('count_tokens', 'bedrock', chat, { body: { inputTokens: 7 } });
    expect(status).toBe(200);
    expect(got.input_tokens).toBeGreaterThan(0);
  });
});

describe('answers that were cut', () => {
  // maximhq/bifrost#4679
  test('an answer of Bedrock that reached the maximum of tokens is incomplete', async () => {
    const body = { ...HELLO.bedrock.body, stopReason: 'max_tokens' };
    const { got } = await ask('responses', 'bedrock', { input: 'Hi', max_output_tokens: 5 }, { body });
    expect(got).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
  });

  // BerriAI/litellm#37710
  test.each(['completions', 'messages', 'generateContent'] as const)(
    'an answer that was cut while reasoning is an empty one for %s',
    async (client) => {
      const body = {
        ...HELLO.responses.body,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: [{ id: 'rs_1', type: 'reasoning', summary: [] }],
        usage: { input_tokens: 5, output_tokens: 16, total_tokens: 21 },
      };
      const request = client === 'generateContent' ? { contents: [{ parts: [{ text: 'Hi' }] }] } : messages;
      const { status, got, line } = await ask(client, 'responses', request, { body });
      expect(status).toBe(200);
      const reason = {
        completions: got.choices?.[0].finish_reason,
        messages: got.stop_reason,
        generateContent: got.candidates?.[0].finishReason,
      }[client];
      expect(reason).toBe(
        { completions: 'length', messages: 'max_tokens', generateContent: 'MAX_TOKENS' }[client],
      );
      expect(line['gen_ai.usage.output_tokens']).toBe('16');
    },
  );
});

describe('content that only its provider has', () => {
  const PNG = 'iVBORw0KGgo=';
  const image = { image: { format: 'png', source: { bytes: PNG } } };
  const usage = { inputTokens: 5, outputTokens: 3, totalTokens: 8 };
  const parts = [{ inlineData: { mimeType: 'image/png', data: PNG } }];
  const drawn = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3 },
  };
  const events: readonly (readonly [string, object])[] = [
    ['messageStart', { role: 'assistant' }],
    ['contentBlockStart', { contentBlockIndex: 0, start: image }],
    ['contentBlockStop', { contentBlockIndex: 0 }],
    ['messageStop', { stopReason: 'end_turn' }],
    ['metadata', { usage }],
  ];

  // maximhq/bifrost#7357
  test.each([
    ['completions', 'generateContent'],
    ['messages', 'generateContent'],
    ['responses', 'generateContent'],
    ['completions', 'bedrock'],
    ['messages', 'bedrock'],
    ['responses', 'bedrock'],
  ] as const)('an image is refused, not left out, for %s of %s', async (client, provider) => {
    const request = client === 'responses' ? { input: 'Draw' } : messages;
    const output = { message: { role: 'assistant', content: [image] } };
    const whole = await ask(client, provider, request, {
      body: provider === 'bedrock' ? { output, stopReason: 'end_turn', usage } : drawn,
    });
    expect(whole.status).toBe(502);
    // Clients would pay for each other try.
    expect(whole.headers['x-should-retry']).toBe('false');
    const streamed = await ask(
      client,
      provider,
      { ...request, stream: true },
      { events: provider === 'bedrock' ? events : [drawn] },
    );
    expect(assembled(client, streamed.text)).toMatchObject({ hasEnded: false, text: '' });
    for (const { text, line } of [whole, streamed]) {
      // Bedrock counts at the end of a stream, which is not waited for.
      if (provider !== 'bedrock' || text === whole.text)
        expect(line).toMatchObject({ 'gen_ai.usage.input_tokens': '5' });
      expect(text).toMatch(/cannot be translated.*(?:inlineData|image)/);
    }
  });
});

describe('failures', () => {
  const failed = (finishReason: string): object => ({
    candidates: [{ content: {}, finishReason, finishMessage: `because ${CARD}`, index: 0 }],
    usageMetadata: { promptTokenCount: 19, thoughtsTokenCount: 21, totalTokenCount: 40 },
  });
  const malformed = {
    output: { message: { role: 'assistant', content: [] } },
    stopReason: 'malformed_tool_use',
    usage: { inputTokens: 19, outputTokens: 21, totalTokens: 40 },
  };
  const broken: Readonly<Record<string, readonly ['generateContent' | 'bedrock', Answered]>> = {
    OTHER: ['generateContent', { body: failed('OTHER') }],
    UNEXPECTED_TOOL_CALL: ['generateContent', { body: failed('UNEXPECTED_TOOL_CALL') }],
    MALFORMED_FUNCTION_CALL: ['generateContent', { events: [failed('MALFORMED_FUNCTION_CALL')] }],
    malformed_tool_use: ['bedrock', { body: malformed }],
    'malformed_tool_use, ': [
      'bedrock',
      {
        events: [
          ['messageStart', { role: 'assistant' }],
          ['messageStop', { stopReason: 'malformed_tool_use' }],
          ['metadata', { usage: malformed.usage }],
        ],
      },
    ],
  };
  const requests = { completions: messages, messages, responses: { input: 'Hi' } };
  const charged = { 'gen_ai.usage.input_tokens': '19', 'gen_ai.usage.output_tokens': '21' };

  // BerriAI/litellm#21744, BerriAI/litellm#40477
  test.each(Object.keys(broken))('an answer that ended with %s is an error that says so', async (name) => {
    const [provider, answered] = broken[name] ?? ['bedrock', {}];
    for (const client of ['completions', 'messages', 'responses'] as const)
      for (const stream of [false, true]) {
        const { status, text, headers, line } = await guarded(
          client,
          provider,
          { ...requests[client], stream },
          answered,
        );
        if (answered.events === undefined || !stream) expect(status).toBe(502);
        expect(text).toContain(
          `without a complete answer (${provider === 'bedrock' ? 'stop' : 'finish'}Reason`,
        );
        expect(text).toContain(name.replace(', ', ''));
        // What the provider says may quote the model.
        if (provider === 'generateContent') expect(text).toContain('because <CREDIT_CARD>');
        expect(headers).not.toHaveProperty('x-should-retry');
        expect(line).toMatchObject({ ...charged, 'error.detail': expect.stringContaining('Reason') });
      }
  });

  // BerriAI/litellm#40477
  test.each(['completions', 'messages', 'responses'] as const)(
    'an image that Gemini did not draw is a filtered answer with the reason for %s',
    async (client) => {
      for (const stream of [false, true])
        for (const events of [undefined, [failed('NO_IMAGE')]]) {
          const { status, text, line } = await guarded(
            client,
            'generateContent',
            { ...requests[client], stream },
            events === undefined ? { body: failed('NO_IMAGE') } : { events },
          );
          expect(status).toBe(200);
          expect(text).toContain('because <CREDIT_CARD>');
          expect(text).toContain(
            {
              completions: '"finish_reason":"content_filter"',
              messages: '"stop_reason":"refusal"',
              responses: '"incomplete_details":{"reason":"content_filter"}',
            }[client],
          );
          expect(line).toMatchObject(charged);
        }
    },
  );

  // anthropics/claude-code#476
  test.each(['messages', 'responses', 'generateContent'] as const)(
    'what vLLM says of a prompt that is too long reaches a client of %s',
    async (client) => {
      const message =
        "This model's maximum context length is 32768 tokens. However, you requested 262462 tokens.";
      const body = { object: 'error', message, type: 'BadRequestError', param: null, code: 400 };
      const requests = {
        messages,
        responses: { input: 'Hi' },
        generateContent: { contents: [{ parts: [{ text: 'Hi' }] }] },
      };
      const { status, got } = await ask(client, 'completions', requests[client], { status: 400, body });
      expect(status).toBe(400);
      // Claude Code shortens the conversation if an error begins like this.
      expect(got.error.message).toBe(client === 'messages' ? `prompt is too long: ${message}` : message);
    },
  );

  // google-gemini/gemini-cli#6454
  test('an error that Gemini puts into a list is the error of the client', async () => {
    const error = {
      code: 429,
      message: 'Resource exhausted. Please try again later.',
      status: 'RESOURCE_EXHAUSTED',
    };
    const { status, got } = await ask(
      'messages',
      'generateContent',
      { ...messages, stream: true },
      {
        status: 429,
        body: [{ error }],
      },
    );
    expect(status).toBe(429);
    expect(got.error).toMatchObject({ type: 'rate_limit_error', message: error.message });
  });

  // NousResearch/hermes-agent#109862
  test.each([false, true])(
    'a part of Gemini with a text and a call has both (stream: %s)',
    async (stream) => {
      const functionCall = { name: 'weather', args: { city: 'Rome' } };
      const parts = [{ text: 'Let me see.', functionCall, thoughtSignature: 'AAAA' }];
      const answer = { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }] };
      const { text } = await ask(
        'messages',
        'generateContent',
        { ...messages, stream },
        stream ? { events: [answer] } : { body: answer },
      );
      for (const each of ['"text":"Let me see."', '"name":"weather"']) expect(text).toContain(each);
    },
  );

  // BerriAI/litellm#16272
  test('thinking that Mistral puts into the content is thinking', async () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Greet.' }] },
      { type: 'text', text: 'Hello.' },
    ];
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
    const { status, got } = await ask('messages', 'completions', messages, {
      body: { ...HELLO.completions.body, choices },
    });
    expect(status).toBe(200);
    expect(got.content).toMatchObject([
      { type: 'thinking', thinking: 'Greet.' },
      { type: 'text', text: 'Hello.' },
    ]);
  });

  // vllm-project/vllm#27755
  test('reasoning that vLLM calls `reasoning` is thinking', async () => {
    const message = { role: 'assistant', content: 'Hello.', reasoning: 'Greet.' };
    const body = { ...HELLO.completions.body, choices: [{ index: 0, message, finish_reason: 'stop' }] };
    const { got } = await ask('messages', 'completions', messages, { body });
    expect(got.content).toMatchObject([
      { type: 'thinking', thinking: 'Greet.' },
      { type: 'text', text: 'Hello.' },
    ]);
  });
});
