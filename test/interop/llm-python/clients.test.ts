import { env } from 'node:process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../kit/until.ts';
import { type ChatModels, chatModels, MODELS } from '../chat-models.ts';
import { CITY, CITY_TEXT, type Outcomes, outcomesOf, raised, SAID, WEATHER } from '../client-outcomes.ts';

const script = new URL('client.py', import.meta.url).pathname;

let served: ChatModels;
beforeAll(async () => {
  served = await chatModels();
});
afterAll(() => served[Symbol.asyncDispose]());

const use = (client: string, model: string): Promise<Outcomes> =>
  outcomesOf([env['LLM_PYTHON'] as string, script, client, served.url, model]);

const ALL_MODELS = ['echo', ...MODELS];

describe('the official Python client of OpenAI', () => {
  const always = {
    embeddings: [[3, 3], 3],
    models: ALL_MODELS,
    unknown_model: raised('NotFoundError', 404, 'Model not found'),
    wrong_key: raised('AuthenticationError', 401, 'invalid credentials'),
    unknown_path: raised('NotFoundError', 404, 'unknown endpoint GET /v1/files'),
  };

  test('the Python client of OpenAI uses the built-in model', async () => {
    const text = '{"city": "Paris"}';
    expect(await use('openai', 'echo')).toMatchObject({
      ...always,
      chat: ['Hello, wörld 🌍', 'stop', 3, 3],
      stream: ['one two three', true, ['stop'], [6]],
      async_stream: 'one two three',
      tools: ['tool_calls', 'weather', text, 'sunny'],
      tools_in_a_stream: [['weather'], 'tool_calls', 'weather', text],
      structured_output: WEATHER,
      responses: ['Hello', 'completed', 1, 1],
      responses_stream: ['one two three', true, 'one two three', 'completed', 6],
      responses_tools: ['function_call', 'weather', text, 'sunny'],
      responses_structured_output: WEATHER,
    });
  });

  /** Other APIs have no names for what they do not say by the status. */
  const BROKEN_STREAM: Readonly<Record<string, string | null>> = {
    completions: 'upstream_failed',
    messages: null,
    responses: 'upstream_failed',
    generateContent: null,
  };

  test.each(MODELS)('the Python client of OpenAI uses a provider of %s', async (model) => {
    const { left } = served.server;
    expect(await use('openai', model)).toEqual({
      ...always,
      chat: [SAID.greeting, 'stop', 12, 7],
      stream: [SAID.words, true, ['stop'], [19]],
      async_stream: SAID.words,
      tools: ['tool_calls', 'weather', CITY_TEXT, SAID.result],
      tools_in_a_stream: [['weather'], 'tool_calls', 'weather', CITY_TEXT],
      structured_output: WEATHER,
      image: SAID.image,
      responses: [SAID.hello, 'completed', 12, 7],
      responses_stream: [SAID.words, true, SAID.words, 'completed', 19],
      responses_tools: ['function_call', 'weather', CITY_TEXT, SAID.result],
      responses_structured_output: WEATHER,
      responses_image: SAID.image,
      refused: raised('BadRequestError', 400, 'invalid_value'),
      broken: raised('InternalServerError', 500, 'The server is internal'),
      busy: ['rate_limit_exceeded', '7'],
      busy_once: 'You said: busy once',
      broken_stream: [['Bro'], BROKEN_STREAM[model]],
      broken_responses_stream: ['Bro', expect.stringMatching(/^(error|response\.failed)$/)],
      timeout: raised('APITimeoutError', null),
      leaving_a_stream: 'Wait.',
    });
    // The call that timed out, the streams that break, and the one that the client left.
    await until(() => served.server.left >= left + 4);
    expect(served.server.received.map(({ headers }) => headers['authorization'])).not.toContain(
      'Bearer sk-client',
    );
  });
});

describe('the official Python client of Anthropic', () => {
  const always = {
    models: ALL_MODELS,
    unknown_model: raised('NotFoundError', 404, 'not_found_error'),
    wrong_key: raised('AuthenticationError', 401, 'authentication_error'),
    unknown_path: raised('NotFoundError', 404, 'not_found_error'),
  };

  test('the Python client of Anthropic uses the built-in model', async () => {
    expect(await use('anthropic', 'echo')).toMatchObject({
      ...always,
      chat: ['Hello, wörld 🌍', 'end_turn', 3, 3],
      stream: ['one two three', true, 'end_turn', 3, 3],
      tools: ['tool_use', 'tool_use', 'weather', CITY, 'sunny'],
      tools_in_a_stream: ['{"city": "Paris"}', 'tool_use', 'weather', CITY],
      structured_output: WEATHER,
      count_tokens: 2,
    });
  });

  test.each(MODELS)('the Python client of Anthropic uses a provider of %s', async (model) => {
    const { left } = served.server;
    expect(await use('anthropic', model)).toEqual({
      ...always,
      chat: [SAID.greeting, 'end_turn', 12, 7],
      stream: [SAID.words, true, 'end_turn', 12, 7],
      tools: ['tool_use', 'tool_use', 'weather', CITY, SAID.result],
      tools_in_a_stream: [CITY_TEXT, 'tool_use', 'weather', CITY],
      structured_output: WEATHER,
      image: SAID.image,
      // An estimate of the gateway: one token per four bytes.
      count_tokens: 5,
      refused: raised('BadRequestError', 400, 'invalid_request_error'),
      broken: raised('InternalServerError', 500, 'api_error'),
      busy: ['rate_limit_error', '7'],
      busy_once: 'You said: busy once',
      broken_stream: 'api_error',
      timeout: raised('APITimeoutError', null),
      leaving_a_stream: 'Wait.',
    });
    await until(() => served.server.left >= left + 3);
  });
});

describe('the official Python client of the Gemini API', () => {
  const unknown = { unknown_model: raised('ClientError', 404, 'NOT_FOUND') };

  test('the Python client of the Gemini API uses the built-in model', async () => {
    expect(await use('google', 'echo')).toMatchObject({
      ...unknown,
      chat: ['Hello, wörld 🌍', 'STOP', 3, 3],
      stream: ['one two three', true, 'STOP', 6],
      tools: ['weather', CITY, '{"result":"sunny"}'],
      tools_in_a_stream: [['weather', CITY]],
      structured_output: WEATHER,
      count_tokens: 2,
    });
  });

  test.each(MODELS)('the Python client of the Gemini API uses a provider of %s', async (model) => {
    expect(await use('google', model)).toEqual({
      ...unknown,
      chat: [SAID.greeting, 'STOP', 12, 7],
      stream: [SAID.words, true, 'STOP', 19],
      tools: ['weather', CITY, SAID.result],
      tools_in_a_stream: [['weather', CITY]],
      automatic_function_calling: [['Paris'], SAID.result],
      structured_output: WEATHER,
      image: SAID.image,
      // An estimate of the gateway: one token per four bytes.
      count_tokens: 5,
      refused: raised('ClientError', 400, 'INVALID_ARGUMENT'),
      broken: raised('ServerError', 500, 'INTERNAL'),
      busy: raised('ClientError', 429, 'RESOURCE_EXHAUSTED'),
      broken_stream: [
        ['Bro'],
        expect.toSatisfy((status) => status === 500 || status === 502),
        expect.any(String),
      ],
    });
  });
});

test.each(MODELS)(
  'LangChain uses a provider of %s with the clients of OpenAI and Anthropic',
  async (model) => {
    const thrice = (outcome: unknown): unknown[] => [outcome, outcome, outcome];
    expect(await use('langchain', model)).toEqual({
      chat: thrice([SAID.hello, 12, 7]),
      stream: thrice([SAID.words, true, 19]),
      tools: thrice(['weather', CITY, SAID.result]),
      structured_output: thrice(WEATHER),
      image: thrice(SAID.image),
      embeddings: [3, 3],
      completions_refused: raised('OpenAIInvalidRequestError', 400, 'invalid_value'),
      messages_refused: raised('AnthropicInvalidRequestError', 400, 'invalid_request_error'),
    });
  },
);
