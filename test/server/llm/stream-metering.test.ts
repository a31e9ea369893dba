import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { callOf, named, WIRE } from '../../kit/llm-formats.ts';
import { chunk, DONE, EVERY_FORMAT, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { repeats } from '../../kit/thorough.ts';

const count = fc.nat(1_000_000);
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(value, { nil: undefined });

/** Usage reports as the API of each format documents them. */
const USAGES: Readonly<Record<string, fc.Arbitrary<Record<string, unknown>>>> = {
  completions: fc.record({
    prompt_tokens: count,
    completion_tokens: count,
    prompt_tokens_details: maybe(fc.record({ cached_tokens: count, audio_tokens: maybe(count) })),
    completion_tokens_details: maybe(fc.record({ reasoning_tokens: count, audio_tokens: maybe(count) })),
  }),
  textCompletions: fc.record({ prompt_tokens: count, completion_tokens: count }),
  responses: fc.record({
    input_tokens: count,
    input_tokens_details: fc.record({ cached_tokens: count, cache_write_tokens: maybe(count) }),
    output_tokens: count,
    output_tokens_details: fc.record({ reasoning_tokens: count }),
  }),
  messages: fc.record({
    input_tokens: count,
    cache_read_input_tokens: fc.option(count),
    cache_creation_input_tokens: fc.option(count),
    cache_creation: fc.option(
      fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
    ),
    output_tokens: count,
    output_tokens_details: fc.option(fc.record({ thinking_tokens: count })),
  }),
  transcriptions: fc.record({
    type: fc.constant('tokens'),
    input_tokens: count,
    input_token_details: fc.record({ text_tokens: count, audio_tokens: count }),
    output_tokens: count,
  }),
  images: fc.record({ input_tokens: count, output_tokens: count }),
  speech: fc.record({ input_tokens: count, output_tokens: count }),
  generateContent: fc.record({
    promptTokenCount: count,
    candidatesTokenCount: maybe(count),
    thoughtsTokenCount: maybe(count),
    toolUsePromptTokenCount: maybe(count),
    cachedContentTokenCount: maybe(count),
    promptTokensDetails: maybe(modalities()),
    cacheTokensDetails: maybe(modalities()),
    candidatesTokensDetails: maybe(modalities()),
  }),
};

function modalities(): fc.Arbitrary<object[]> {
  const modality = fc.constantFrom('TEXT', 'IMAGE', 'AUDIO');
  return fc.uniqueArray(fc.record({ modality, tokenCount: count }), {
    selector: (each) => each.modality,
  });
}

const rates = {
  input: '0.3',
  output: '1.5',
  cacheRead: '0.03',
  cacheWrite: '0.375',
  cacheWrite1h: '0.6',
  reasoning: '2',
  inputAudio: '4',
};

/** Texts with words that a search for reports could take for one. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 200 }),
  fc.constantFrom('{"usage":null}', '"usage": {"input_tokens": 1}', 'data: [DONE]', 'event: error'),
);

/** What a line says of tokens, models and prices. */
const metered = (line: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(line).filter(
      ([name]) =>
        name.startsWith('gen_ai.usage') || name.startsWith('gw.ai.usage') || name === 'gen_ai.response.model',
    ),
  );

describe('metering of streams', () => {
  test.each(Object.keys(USAGES) as (keyof typeof WIRE)[])(
    'a stream of %s is metered like the same answer as a body, however it is split',
    async (format) => {
      const { body, stream } = WIRE[format];
      if (stream === undefined) throw new Error('expected a stream');
      let answer: { type: string; parts: readonly Buffer[] } = { type: '', parts: [] };
      await using provider = await llmProvider(async (_, response) => {
        const { type, parts } = answer;
        response.writeHead(200, { 'content-type': type });
        for (const part of parts) {
          response.write(part);
          await new Promise(setImmediate);
        }
        response.end();
      });
      const inline = { providers: { openai: { models: { m: { rates } } } } };
      await using served = await llmGateway(provider, {
        model: { provider: EVERY_FORMAT },
        more: { config: { modelCatalog: [{ inline }] } },
      });
      let calls = 0;
      const lineOf = async (isStream: boolean): Promise<Record<string, string>> => {
        const call = callOf(format, 'm', isStream);
        await send(served.url + call.path, { method: 'POST', body: call.body });
        calls += 1;
        return metered(await served.accessLine(calls));
      };
      const usage = USAGES[format] as (typeof USAGES)[string];
      await fc.assert(
        fc.asyncProperty(
          usage,
          text,
          fc.array(fc.nat(2_000), { maxLength: 3 }),
          async (report, said, cuts) => {
            const answered = { model: 'm', text: said, usage: report };
            const whole = Buffer.from(body === undefined ? stream(answered) : JSON.stringify(body(answered)));
            // A recording reports no usage: streams of speech are compared with one that arrives in one piece.
            answer = { type: body === undefined ? 'text/event-stream' : 'application/json', parts: [whole] };
            const expected = await lineOf(body === undefined);
            expect(expected).toHaveProperty(['gw.ai.usage.cost.total']);
            expect(expected).not.toHaveProperty(['gw.ai.usage.estimated']);
            answer = { type: 'text/event-stream', parts: split(stream(answered), cuts) };
            expect(await lineOf(true)).toEqual(expected);
          },
        ),
        { numRuns: repeats(25, 500) },
      );
    },
  );

  test.each([
    [
      'messages',
      WIRE.messages.path,
      named([{ type: 'message_start', message: { usage: { input_tokens: 1 } } }]),
    ],
    ['responses', WIRE.responses.path, named([{ type: 'response.created', response: { usage: null } }])],
    ['chat completions', WIRE.completions.path, chunk({ role: 'assistant', content: '' })],
  ])('the first event of a stream of %s is not its first token', async (_, path, first) => {
    await using provider = await llmProvider((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(first + DONE);
    });
    await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT } });
    const body = { model: 'm', messages: [], stream: true };
    await send(`${served.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    expect(await served.accessLine(1)).not.toHaveProperty(['gw.ai.time_to_first_token']);
  });

  test('a stream of speech without a usage report is metered like a recording', async () => {
    const wav = { type: 'audio/wav', parts: Buffer.from('RIFF0000WAVE') };
    const events = { type: 'text/event-stream', parts: Buffer.from(speechStream) };
    let answer = wav;
    await using provider = await llmProvider((_request, response) => {
      response.writeHead(200, { 'content-type': answer.type }).end(answer.parts);
    });
    await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT } });
    const lines: Record<string, string>[] = [];
    for (answer of [wav, events]) {
      const body = { model: 'm', input: 'Say it. '.repeat(50), voice: 'alloy', stream_format: 'sse' };
      await send(served.url + WIRE.speech.path, { method: 'POST', body: JSON.stringify(body) });
      lines.push(metered(await served.accessLine(lines.length + 1)));
    }
    expect(lines[1]).toEqual(lines[0]);
    // 400 characters, four per token.
    expect(lines[0]).toMatchObject({
      'gen_ai.usage.input_tokens': '100',
      'gen_ai.usage.output_tokens': '0',
      'gw.ai.usage.estimated': 'the provider reported no usage',
    });
  });

  test.each(['completions', 'responses', 'messages', 'generateContent'] as const)(
    'a stream of %s without a usage report is metered by its text',
    async (format) => {
      const said = 'eight by eight by'.repeat(20);
      const answered = { model: 'm', text: said, usage: undefined };
      await using provider = await llmProvider((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        // Without the reports that the events of messages always have.
        response.end(WIRE[format].stream?.(answered).replaceAll('"output_tokens":1', '"other":1'));
      });
      await using served = await llmGateway(provider, { model: { provider: EVERY_FORMAT } });
      const { path, body } = callOf(format, 'm', true);
      await send(served.url + path, { method: 'POST', body });
      const line = await served.accessLine(1);
      expect(line['gw.ai.usage.estimated']).toBe('the provider reported no usage');
      expect(Number(line['gen_ai.usage.output_tokens'])).toBeGreaterThan(said.length / 4 - 5);
      expect(Number(line['gen_ai.usage.output_tokens'])).toBeLessThan(said.length / 4 + 15);
      expect(line).toHaveProperty(['gw.ai.time_to_first_token']);
    },
  );
});

const speechStream = [{ type: 'speech.audio.delta', audio: 'AAAA' }, { type: 'speech.audio.done' }]
  .map((event) => `data: ${JSON.stringify(event)}\n\n`)
  .join('');

function split(stream: string, cuts: readonly number[]): Buffer[] {
  const bytes = Buffer.from(stream);
  const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}
