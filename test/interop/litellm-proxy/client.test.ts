import { env } from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ChatModels, chatModels, MODELS } from '../chat-models.ts';
import { CITY_TEXT, outcomesOf, SAID, WEATHER } from '../client-outcomes.ts';

const script = new URL('../llm-python/client.py', import.meta.url).pathname;
let served: ChatModels;
beforeAll(async () => {
  served = await chatModels();
});
afterAll(() => served[Symbol.asyncDispose]());

test.each(MODELS)('LiteLLM as a client uses a provider of %s', async (model) => {
  const program = [env['LITELLM_PROXY_PYTHON'] as string, script, 'litellm', served.url, model];
  const each = (outcome: unknown): object => ({
    completions: outcome,
    responses: outcome,
    messages: outcome,
  });
  const raised = (name: string): object => each({ raised: name, message: expect.any(String) as string });
  expect(await outcomesOf(program)).toEqual({
    chat: each([SAID.hello, 12, 7]),
    stream: each([SAID.words, true, [19]]),
    tools: each(['weather', CITY_TEXT, SAID.result]),
    image: each(SAID.image),
    structured_output: WEATHER,
    responses: 'You said: Hello',
    messages: 'You said: Hello',
    embeddings: [3, 3],
    refused: raised('BadRequestError'),
    busy: raised('RateLimitError'),
  });
});
