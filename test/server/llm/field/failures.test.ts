import { describe, expect, test } from 'vitest';
import { chunk, DONE, field, type Loose, USAGE, user } from './field.ts';

// What clients get of failures. Each test names the report that its input is from.

const ask = field();
const REQUESTS = {
  completions: { messages: [user('Hi')] },
  messages: { max_tokens: 50, messages: [user('Hi')] },
  responses: { input: 'Hi' },
  generateContent: { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] },
} as const;

const HALF = [chunk({ role: 'assistant', content: 'Half of' })];

describe('the time to wait', () => {
  const quota = (delay: string): object => ({
    error: {
      code: 429,
      message: 'You exceeded your current quota.',
      status: 'RESOURCE_EXHAUSTED',
      details: [
        { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [] },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: delay },
      ],
    },
  });

  // vercel/ai#18627, google-gemini/gemini-cli#9119: Gemini tells it in the body only.
  test.each(['completions', 'messages', 'responses'] as const)(
    'that Gemini tells is in a header for %s',
    async (client) => {
      const body = quota('34.4s');
      const { status, headers } = await ask(client, 'generateContent', REQUESTS[client], {
        status: 429,
        body,
      });
      expect(status).toBe(429);
      expect(headers['retry-after']).toBe('35');
    },
  );

  test.each(['0s', '45.837906927s', '3600s'])('of %s is whole seconds', async (delay) => {
    const { headers } = await ask('messages', 'generateContent', REQUESTS.messages, {
      status: 429,
      body: [quota(delay)],
    });
    expect(headers['retry-after']).toBe(String(Math.ceil(Number.parseFloat(delay))));
  });

  test.each(['-1s', 'soon', '1e5s'])('of %s is none', async (delay) => {
    const body = quota(delay);
    const { headers } = await ask('messages', 'generateContent', REQUESTS.messages, { status: 429, body });
    expect(headers['retry-after']).toBeUndefined();
  });
});

test.each([
  null,
  'x',
  5,
  {},
  [null, 'x', 5, [], { retryDelay: 5 }, { retryDelay: null }, { retryDelay: ['5s'] }],
])('an error of Gemini whose details are %j is passed on without a time to wait', async (details) => {
  const error = { code: 429, message: 'Later.', status: 'RESOURCE_EXHAUSTED', details };
  const answer = { status: 429, body: { error } };
  const { status, headers, got } = await ask('messages', 'generateContent', REQUESTS.messages, answer);
  expect([status, got.error.message]).toEqual([429, 'Later.']);
  expect(headers['retry-after']).toBeUndefined();
});

describe('streams that break', () => {
  const last = (text: string): string => text.trim().split('\n\n').at(-1) ?? '';

  // open-webui/open-webui#29628
  test.each(['messages', 'responses', 'generateContent'] as const)(
    'end with an error for %s',
    async (client) => {
      const request = { ...REQUESTS[client], stream: true };
      const { status, text } = await ask(client, 'completions', request, { events: HALF, isCut: true });
      expect(status).toBe(200);
      expect(text).toContain('Half of');
      expect(last(text)).toMatch(/"error"|response\.failed/);
      expect(text).not.toMatch(/message_stop|response\.completed|"finishReason":"STOP"/);
    },
  );

  // Portkey-AI/gateway#1797
  test.each(['messages', 'responses', 'generateContent'] as const)(
    'cleanly but without an end are failures for %s',
    async (client) => {
      const request = { ...REQUESTS[client], stream: true };
      const { text } = await ask(client, 'completions', request, { events: HALF });
      expect(last(text)).toMatch(/"error"|response\.failed/);
      expect(text).not.toMatch(/message_stop|response\.completed|"finishReason":"STOP"/);
    },
  );

  // Portkey-AI/gateway#1143, manaflow-ai/subrouter#68
  test.each([
    ['throttlingException', 'rate_limit_error'],
    ['internalServerException', 'api_error'],
    ['serviceUnavailableException', 'overloaded_error'],
    ['validationException', 'invalid_request_error'],
  ])('with %s of Bedrock have its error', async (type, expected) => {
    const { text, got } = await ask(
      'messages',
      'bedrock',
      { ...REQUESTS.messages, stream: true },
      {
        events: [
          ['messageStart', { role: 'assistant' }],
          ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Half of' } }],
          [type, { message: 'Not now.' }],
        ],
      },
    );
    expect(text).toContain('Half of');
    expect(got.at(-1)).toMatchObject({ type: 'error', error: { type: expected, message: 'Not now.' } });
  });

  // openai/codex#24973: the event has the error next to `response`, and not in it.
  test.each(['completions', 'messages', 'generateContent'] as const)(
    'with an error beside a failed response have its text for %s',
    async (client) => {
      const response = { id: 'resp_1', object: 'response', model: 'm', output: [] };
      const { text } = await ask(
        client,
        'responses',
        { ...REQUESTS[client], stream: true },
        {
          events: [
            {
              type: 'response.created',
              sequence_number: 0,
              response: { ...response, status: 'in_progress' },
            },
            {
              type: 'response.failed',
              sequence_number: 3,
              response: { ...response, status: 'failed', error: null },
              error: { message: 'Upstream provider error', type: 'server_error', code: 'upstream_error' },
            },
          ],
        },
      );
      expect(text).toContain('Upstream provider error');
    },
  );
});

describe('streams with token counts', () => {
  const END = [...HALF, chunk({ content: ' it.' }, 'stop'), USAGE, DONE];

  // cline/cline#8384
  test('that the client did not ask for have no chunk without choices', async () => {
    const request = { ...REQUESTS.completions, stream: true };
    const plain = await ask('completions', 'completions', request, { events: END });
    expect(plain.sent.stream_options).toEqual({ include_usage: true });
    expect(plain.got.every((each: Loose) => each.choices.length === 1)).toBe(true);
    expect(plain.line['gen_ai.usage.input_tokens']).toBe('5');
    const translated = await ask('completions', 'responses', request, {
      events: [
        {
          type: 'response.completed',
          response: {
            id: 'resp_1',
            object: 'response',
            status: 'completed',
            model: 'm',
            output: [
              {
                id: 'm1',
                type: 'message',
                role: 'assistant',
                content: [{ type: 'output_text', text: 'Hi' }],
              },
            ],
            usage: { input_tokens: 5, output_tokens: 3, total_tokens: 8 },
          },
        },
      ],
    });
    expect(translated.got.every((each: Loose) => each.choices.length === 1)).toBe(true);
    expect(translated.line['gen_ai.usage.input_tokens']).toBe('5');
  });

  // router-for-me/CLIProxyAPI#1700, StringKe/claudex#10: Claude Code reads how full its context is.
  test('have the count of the prompt at the end for Messages', async () => {
    const request = { ...REQUESTS.messages, stream: true };
    const { got } = await ask('messages', 'completions', request, { events: END });
    expect(got.find((each: Loose) => each.type === 'message_delta').usage).toMatchObject({
      input_tokens: 5,
      output_tokens: 3,
    });
  });

  // StringKe/claudex#10
  test('that fail because the context is full say so', async () => {
    const { got } = await ask(
      'messages',
      'responses',
      { ...REQUESTS.messages, stream: true },
      {
        events: [
          {
            type: 'response.failed',
            response: {
              id: 'resp_1',
              object: 'response',
              status: 'failed',
              model: 'm',
              output: [],
              error: { code: 'context_length_exceeded', message: 'Your input exceeds the context window.' },
            },
          },
        ],
      },
    );
    expect(got.at(-1)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', message: expect.stringContaining('prompt is too long') },
    });
  });
});

describe('management of the context', () => {
  // BerriAI/litellm#21912, braintrustdata/lingua#349
  test.each(['bedrock', 'completions', 'responses', 'generateContent'] as const)(
    'of Claude Code is left out for %s',
    async (provider) => {
      const { sent } = await ask(
        'messages',
        provider,
        {
          ...REQUESTS.messages,
          context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
        },
        { status: 500, body: {} },
      );
      expect(sent).toBeDefined();
      expect(JSON.stringify(sent)).not.toContain('context_management');
    },
  );
});
