import { env } from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../../kit/until.ts';
import { type ChatModels, chatModels, MODELS } from '../chat-models.ts';
import { CITY_TEXT, type Outcomes, outcomesOf, SAID } from '../client-outcomes.ts';

let served: ChatModels;
beforeAll(async () => {
  served = await chatModels();
});
afterAll(() => served[Symbol.asyncDispose]());

const use = (client: string, model: string): Promise<Outcomes> =>
  outcomesOf([env['LLM_GO'] as string, client, served.url, model]);

/** An error as a Go client has it: a code of OpenAI, or a type of Anthropic. */
const failed = (status: number, type: string, message: string): object => ({
  status,
  type,
  message: expect.stringContaining(message) as string,
});

/** Codes of OpenAI for errors of the server, as far as the API in between has names for them. */
const CODES: Readonly<Record<string, readonly [refused: string, broken: string]>> = {
  completions: ['invalid_value', 'internal'],
  messages: ['', ''],
  responses: ['invalid_value', 'internal'],
  generateContent: ['', ''],
};

test('the official Go client of OpenAI uses the built-in model', async () => {
  expect(await use('openai', 'echo')).toMatchObject({
    chat: ['Hello, wörld 🌍', 'stop', 3, 3],
    stream: ['one two three', true, 'stop', 6],
    tools: ['tool_calls', 'weather', CITY_TEXT, 'sunny'],
    tools_in_a_stream: [['weather'], 'weather', CITY_TEXT],
    responses: ['Hello', 'completed', 1, 1],
    responses_stream: ['one two three', 'response.completed'],
    embeddings: [2, 3],
  });
});

test.each(MODELS)('the official Go client of OpenAI uses a provider of %s', async (model) => {
  const { left } = served.server;
  const [refused, broken] = CODES[model] ?? [];
  const type = model === 'completions' ? 'api_error' : 'server_error';
  expect(await use('openai', model)).toEqual({
    chat: [SAID.greeting, 'stop', 12, 7],
    stream: [SAID.words, true, 'stop', 19],
    tools: ['tool_calls', 'weather', CITY_TEXT, SAID.result],
    tools_in_a_stream: [['weather'], 'weather', CITY_TEXT],
    responses: ['You said: Hello', 'completed', 12, 7],
    responses_stream: [SAID.words, 'response.completed'],
    embeddings: [2, 3],
    refused: failed(400, refused as string, 'invalid_value'),
    broken: failed(500, broken as string, 'internal'),
    busy: failed(429, 'rate_limit_exceeded', ''),
    busy_once: 'You said: busy once',
    wrong_key: failed(401, 'api_key_failed', 'invalid credentials'),
    unknown_model: failed(404, 'model_not_found', 'Model not found'),
    // The client has no class for an error inside a stream, only its text.
    broken_stream: failed(0, '', `"type":"${type}"`),
    timeout: true,
    leaving_a_stream: 'Wait.',
  });
  await until(() => served.server.left >= left + 3);
});

test('the official Go client of Anthropic uses the built-in model', async () => {
  expect(await use('anthropic', 'echo')).toMatchObject({
    chat: ['Hello, wörld 🌍', 'end_turn', 3, 3],
    stream: ['one two three', true, 'end_turn', 3],
    tools: ['tool_use', 'weather', CITY_TEXT, 'sunny'],
    tools_in_a_stream: ['tool_use', 'weather', CITY_TEXT],
    count_tokens: 1,
  });
});

test.each(MODELS)('the official Go client of Anthropic uses a provider of %s', async (model) => {
  expect(await use('anthropic', model)).toEqual({
    chat: [SAID.greeting, 'end_turn', 12, 7],
    stream: [SAID.words, true, 'end_turn', 7],
    tools: ['tool_use', 'weather', CITY_TEXT, SAID.result],
    tools_in_a_stream: ['tool_use', 'weather', CITY_TEXT],
    count_tokens: 2,
    refused: failed(400, 'invalid_request_error', 'invalid_value'),
    broken: failed(500, 'api_error', 'internal'),
    busy: failed(429, 'rate_limit_error', ''),
    busy_once: 'You said: busy once',
    wrong_key: failed(401, 'authentication_error', 'invalid credentials'),
    broken_stream: failed(200, 'api_error', 'ended the stream early'),
    timeout: true,
  });
});
