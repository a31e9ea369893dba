import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import {
  embed,
  experimental_generateImage as generateImage,
  experimental_generateSpeech as generateSpeech,
  generateText,
  jsonSchema,
  type LanguageModel,
  Output,
  streamText,
  tool,
  experimental_transcribe as transcribe,
} from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  APIS,
  type Api,
  BODIES,
  gatewayTo,
  MESSAGE_ITEM,
  providerOf,
  SEEN,
  sendJson,
} from '../../../kit/llm-answers.ts';
import { modelsGateway } from '../../../kit/llm-provider.ts';

/** The model of the AI SDK for each API. */
const MODELS: Readonly<Record<Api, (url: string) => LanguageModel>> = {
  completions: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'k' }).chat('acme'),
  responses: (url) => createOpenAI({ baseURL: `${url}/v1`, apiKey: 'k' }).responses('acme'),
  messages: (url) => createAnthropic({ baseURL: `${url}/v1`, apiKey: 'k' })('acme'),
};

const PAIRS = APIS.flatMap((client) => APIS.map((provider) => [client, provider] as const));

/** An answer with this text. */
const TEXTS: Readonly<Record<Api, (text: string) => object>> = {
  completions: (content) => ({
    ...BODIES.completions,
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  }),
  messages: (text) => ({ ...BODIES.messages, content: [{ type: 'text', text }], stop_reason: 'end_turn' }),
  responses: (text) => ({
    ...BODIES.responses,
    output: [{ ...MESSAGE_ITEM, content: [{ type: 'output_text', text, annotations: [] }] }],
  }),
};

/** A PNG of one pixel. */
const IMAGE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const inputSchema = jsonSchema<Record<string, unknown>>({ type: 'object', properties: {} });
const tools = { get_weather: tool({ inputSchema }), get_time: tool({ inputSchema }) };

beforeAll(() => {
  // It warns that it does not know the model.
  globalThis.AI_SDK_LOG_WARNINGS = false;
});
afterAll(() => {
  globalThis.AI_SDK_LOG_WARNINGS = undefined;
});

describe('the AI SDK with the built-in model', () => {
  test.each(APIS)('the first example of the AI SDK with its provider for %s runs', async (client) => {
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const ask = { model: MODELS[client](gate.url), prompt: 'Hello you', maxRetries: 0 };
    expect((await generateText(ask)).text).toBe('Hello you');
    expect(await streamText(ask).text).toBe('Hello you');
  });

  test('the AI SDK embeds a text, makes an image and speech, and transcribes a recording', async () => {
    await using gate = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const openai = createOpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'k' });
    expect((await embed({ model: openai.embedding('m'), value: 'Hello' })).embedding).toHaveLength(3);
    const { image } = await generateImage({ model: openai.image('gpt-image-1'), prompt: 'a dot' });
    expect(image.mediaType).toBe('image/png');
    const { audio } = await generateSpeech({ model: openai.speech('m'), text: 'Hello' });
    expect(audio.mediaType).toBe('audio/wav');
    const spoken = await transcribe({ model: openai.transcription('whisper-1'), audio: audio.uint8Array });
    expect(spoken.text).toBe('The recording was received.');
  });
});

describe('the AI SDK', () => {
  test.each(PAIRS)(
    'the AI SDK with its provider for %s gets text, calls and usage from a provider of %s, streamed or not',
    async (client, api) => {
      await using provider = await providerOf(api);
      await using gate = await gatewayTo(provider, api);
      const model = MODELS[client](gate.url);
      const ask = { model, prompt: 'What is the weather in Paris?', tools, maxRetries: 0 };
      const whole = await generateText(ask);
      const stream = streamText({
        ...ask,
        onError: ({ error }) => {
          throw error;
        },
      });
      const streamed = {
        text: await stream.text,
        toolCalls: await stream.toolCalls,
        finishReason: await stream.finishReason,
        usage: await stream.usage,
      };
      for (const { text, toolCalls, finishReason, usage } of [whole, streamed]) {
        expect(text).toBe(SEEN.text);
        expect(toolCalls.map(({ toolCallId, toolName, input }) => [toolCallId, toolName, input])).toEqual(
          SEEN.calls,
        );
        expect(finishReason).toBe('tool-calls');
        expect(usage).toMatchObject({ outputTokens: SEEN.usage.output });
      }
    },
  );

  test.each(PAIRS)(
    'the AI SDK with its provider for %s sends an image and gets an object from a provider of %s',
    async (client, api) => {
      await using provider = await providerOf(api, (_, response) =>
        sendJson(response, TEXTS[api]('{"color":"red"}')),
      );
      await using gate = await gatewayTo(provider, api);
      const schema = jsonSchema<{ color: string }>({
        type: 'object',
        properties: { color: { type: 'string' } },
        required: ['color'],
        additionalProperties: false,
      });
      const { output } = await generateText({
        model: MODELS[client](gate.url),
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'Which color is it?' },
              { type: 'image', image: IMAGE, mediaType: 'image/png' },
            ],
          },
        ],
        output: Output.object({ schema }),
        providerOptions: { anthropic: { structuredOutputMode: 'outputFormat' } },
        maxRetries: 0,
      });
      expect(output).toEqual({ color: 'red' });
      const body = provider.received[0]?.body ?? '';
      expect(body).toContain(IMAGE);
      expect(body).toContain('"additionalProperties":false');
    },
  );
});
