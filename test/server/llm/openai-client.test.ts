import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { WIRE } from '../../kit/llm-formats.ts';
import {
  answering,
  bodyOf,
  chunk,
  completion,
  DONE,
  FINISH,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
} from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';

const client = ({ url }: { url: string }): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-test', maxRetries: 0 });
const ask = { model: 'acme-mini', messages: [{ role: 'user' as const, content: 'say it again' }] };

describe('the official OpenAI client', () => {
  test('the official OpenAI client chats, streams, embeds and lists models with the built-in model', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const openai = client(served);
    const reply = await openai.chat.completions.create(ask);
    expect(reply.choices[0]?.message.content).toBe('say it again');
    expect(reply.usage?.total_tokens).toBe(6);
    const words: string[] = [];
    for await (const part of await openai.chat.completions.create({ ...ask, stream: true }))
      words.push(part.choices[0]?.delta.content ?? '');
    expect(words.join('')).toBe('say it again');
    const usage = [];
    const options = { stream: true as const, stream_options: { include_usage: true } };
    for await (const part of await openai.chat.completions.create({ ...ask, ...options }))
      if (part.usage) usage.push(part.usage.total_tokens);
    expect(usage).toEqual([6]);
    const vectors = await openai.embeddings.create({ model: 'e', input: 'text', encoding_format: 'float' });
    expect(vectors.data[0]?.embedding).toHaveLength(3);
    const models = await openai.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['*']);
  });

  test('the official OpenAI client gets what it has asked for, whatever the form and type of the answer', async () => {
    const stream = chunk({ content: 'said' }) + FINISH + DONE;
    let answer = ['', ''];
    await using provider = await llmProvider((_, response) => {
      const [text, type = ''] = answer;
      response.writeHead(200, type === '' ? {} : { 'content-type': type }).end(text);
    });
    await using served = await llmGateway(provider, { model: { provider: 'oaiCompat' } });
    const { completions } = client(served).chat;
    const streamed = async (): Promise<string> => {
      let said = '';
      for await (const part of await completions.create({ ...ask, stream: true }))
        said += part.choices[0]?.delta.content ?? '';
      return said;
    };
    for (const text of [completion('said'), stream])
      for (const type of ['application/json', 'text/event-stream', 'text/plain', '']) {
        if (type !== (text === stream ? 'application/json' : 'text/event-stream')) {
          answer = [text, type];
          const whole = await completions.create(ask);
          expect([type, whole.choices[0]?.message.content, await streamed()]).toEqual([type, 'said', 'said']);
        }
      }
    for (const text of ['{"error":{"message":"hidden error"}}', 'data: {"choices":[]}\n\ndata: [DONE]\n\n']) {
      answer = [text, text.startsWith('data') ? 'text/event-stream' : 'application/json'];
      await expect(streamed()).rejects.toThrow(/hidden error|without an event/);
    }
  });

  test('the official OpenAI client completes texts with the built-in model, with and without streaming', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const { completions } = client(served);
    const options = { model: 'acme-mini', max_tokens: 2 };
    const reply = await completions.create({ ...options, prompt: ['one two three', 'four'] });
    expect(reply).toMatchObject({
      object: 'text_completion',
      choices: [
        { index: 0, text: 'one two', finish_reason: 'length' },
        { index: 1, text: 'four', finish_reason: 'stop' },
      ],
      usage: { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 },
    });
    let said = '';
    const ends: unknown[] = [];
    for await (const part of await completions.create({
      ...options,
      prompt: 'one two three',
      stream: true,
    })) {
      expect(part.object).toBe('text_completion');
      said += part.choices[0]?.text;
      ends.push(part.choices[0]?.finish_reason);
    }
    expect(said).toBe('one two');
    expect(ends).toEqual([null, null, 'length']);
  });

  test('the official OpenAI client gets one embedding per text from the built-in model, in both encodings', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const create = async (more: object): Promise<number[][]> => {
      const reply = await client(served).embeddings.create({ model: 'e', input: ['a', 'b c'], ...more });
      expect(reply.usage).toEqual({ prompt_tokens: 3, total_tokens: 3 });
      return reply.data.map(({ embedding }) => embedding);
    };
    const plain = await create({ encoding_format: 'float' });
    expect(plain).toHaveLength(2);
    // 32-bit numbers: the same, but for rounding.
    expect((await create({})).map((vector) => vector.map((number) => number.toFixed(4)))).toEqual(
      plain.map((vector) => vector.map((number) => number.toFixed(4))),
    );
  });

  test.each([
    ['/responses', {}, 400, 'missing_required_parameter', /'input'/],
    ['/rerank', { query: 'x' }, 400, 'missing_required_parameter', /'documents'/],
    ['/rerank', { query: 'x', documents: 'x' }, 400, 'invalid_type', /'documents'.* list/],
    ['/moderations', {}, 400, 'missing_required_parameter', /'input'/],
    ['/audio/speech', {}, 400, 'missing_required_parameter', /'input'/],
    ['/chat/completions', {}, 400, 'missing_required_parameter', /'messages'/],
    ['/chat/completions', { messages: 'x' }, 400, 'invalid_type', /'messages'.* list/],
    ['/chat/completions', { messages: ['x'] }, 400, 'invalid_type', /'messages'.* list/],
    ['/chat/completions', { messages: [] }, 400, 'invalid_type', /'messages'.* list/],
    ['/completions', {}, 400, 'missing_required_parameter', /'prompt'/],
    ['/embeddings', {}, 400, 'missing_required_parameter', /'input'/],
  ])(
    'the official OpenAI client gets an error from the built-in model at %s with %j',
    async (path, body, status, code, message) => {
      await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
      const call = client(served).post(path, { body: { model: 'acme-mini', ...body } });
      await expect(call).rejects.toMatchObject({
        status,
        code,
        type: 'invalid_request_error',
        message: expect.stringMatching(message) as string,
      });
      const line = await served.accessLine(1);
      expect(line).toMatchObject({ 'http.status': `${status}`, 'error.type': code });
      expect(line).not.toHaveProperty('gen_ai.usage.input_tokens');
    },
  );

  test('the official OpenAI client creates and streams responses with the built-in model', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const { responses } = client(served);
    const input = [
      { role: 'user' as const, content: [{ type: 'input_text' as const, text: 'say it again' }] },
    ];
    const reply = await responses.create({ model: 'm', input });
    expect(reply).toMatchObject({ status: 'completed', output_text: 'say it again' });
    expect(reply.usage).toMatchObject({ input_tokens: 3, output_tokens: 3, total_tokens: 6 });
    const stream = responses.stream({ model: 'm', input: 'say it again' });
    const words: string[] = [];
    stream.on('response.output_text.delta', ({ delta }) => words.push(delta));
    expect((await stream.finalResponse()).output_text).toBe('say it again');
    expect(words).toEqual(['say', ' it', ' again']);
    const cut = await responses.create({ model: 'm', input: 'say it again', max_output_tokens: 2 });
    expect(cut).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output_text: 'say it',
    });
    expect(await served.accessLine(2)).toMatchObject({
      'gen_ai.operation.name': 'responses',
      'gen_ai.usage.input_tokens': '3',
      'gen_ai.usage.output_tokens': '3',
    });
  });

  test('the official OpenAI client gets calls of forced tools from the built-in model, and answers them', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const { chat, responses } = client(served);
    const parameters = { type: 'object', properties: { amount: { type: 'number' } } };
    const messages = [{ role: 'user' as const, content: '{"amount": 1}' }];
    const body = {
      model: 'm',
      messages,
      tools: [{ type: 'function' as const, function: { name: 'pay', parameters } }],
      tool_choice: 'required' as const,
    };
    const called = { function: { name: 'pay', arguments: '{"amount": 1}' } };
    const whole = (await chat.completions.create(body)).choices[0];
    expect(whole).toMatchObject({ finish_reason: 'tool_calls', message: { tool_calls: [called] } });
    const streamed = await chat.completions.stream(body).finalChatCompletion();
    expect(streamed.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { tool_calls: [called] },
    });
    const result = { role: 'tool' as const, tool_call_id: 'c', content: 'paid 1' };
    const answered = await chat.completions.create({
      ...body,
      messages: [...messages, whole?.message as OpenAI.ChatCompletionMessage, result],
    });
    expect(answered.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'paid 1' } });

    const request = {
      model: 'm',
      input: '{"amount": 1}',
      tools: [{ type: 'function' as const, name: 'pay', parameters, strict: null }],
      tool_choice: { type: 'function' as const, name: 'pay' },
    };
    const item = { type: 'function_call', name: 'pay', arguments: '{"amount": 1}' };
    expect((await responses.create(request)).output).toMatchObject([item]);
    expect((await responses.stream(request).finalResponse()).output).toMatchObject([item]);
    const output = { type: 'function_call_output' as const, call_id: 'c', output: 'paid 1' };
    expect((await responses.create({ ...request, input: [output] })).output_text).toBe('paid 1');
  });

  test('the official OpenAI client parses structured outputs of the built-in model', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const { chat, responses } = client(served);
    const schema = z.strictObject({ amount: z.number() });
    const content = '{"amount":1}';
    const reply = await chat.completions.parse({
      model: 'm',
      messages: [{ role: 'user', content }],
      response_format: zodResponseFormat(schema, 'payment'),
    });
    expect(reply.choices[0]?.message.parsed).toEqual({ amount: 1 });
    const text = { format: zodTextFormat(schema, 'payment') };
    expect((await responses.parse({ model: 'm', input: content, text })).output_parsed).toEqual({
      amount: 1,
    });
  });

  test('the official OpenAI client makes images, speech, transcriptions and moderations with the built-in model', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const { audio, images, moderations } = client(served);
    const made = await images.generate({ model: 'm', prompt: 'a cat', n: 2 });
    expect(made.data).toHaveLength(2);
    const png = Buffer.from(made.data?.[0]?.b64_json ?? '', 'base64');
    expect(png.subarray(1, 4).toString()).toBe('PNG');
    const image = new File([png], 'a.png', { type: 'image/png' });
    expect((await images.edit({ model: 'm', image, prompt: 'brighter' })).data).toHaveLength(1);
    const types: string[] = [];
    for await (const { type } of await images.generate({ model: 'm', prompt: 'a cat', stream: true }))
      types.push(type);
    expect(types).toEqual(['image_generation.completed']);

    const spoken = await audio.speech.create({ model: 'm', voice: 'alloy', input: 'Hello there' });
    const wav = Buffer.from(await spoken.arrayBuffer());
    expect(wav.subarray(0, 4).toString()).toBe('RIFF');
    expect(wav.readUInt32LE(4)).toBe(wav.length - 8);
    const file = new File([wav], 'a.wav', { type: 'audio/wav' });
    const request = { model: 'm', file, prompt: 'Hello there' };
    expect((await audio.transcriptions.create(request)).text).toBe('Hello there');
    expect(await audio.transcriptions.create({ ...request, response_format: 'srt' })).toContain(
      'Hello there',
    );
    const deltas: string[] = [];
    for await (const event of await audio.transcriptions.create({ ...request, stream: true }))
      if (event.type === 'transcript.text.delta') deltas.push(event.delta);
    expect(deltas).toEqual(['Hello', ' there']);

    const { results } = await moderations.create({ input: ['a', 'b'] });
    expect(results.map(({ flagged }) => flagged)).toEqual([false, false]);
    const lines = await Promise.all(Array.from({ length: 8 }, (_, index) => served.accessLine(index + 1)));
    expect(lines.map((line) => line['gw.ai.usage.estimated']).filter((why) => why !== undefined)).toEqual([
      // The audio itself, subtitles and moderations have no report.
      'the provider reported no usage',
      'no usage was found in the response',
      'the provider reported no usage',
    ]);
  });

  test('documents are ranked by the built-in model', async () => {
    await using served = await modelsGateway([{ name: '*', provider: 'echo' }]);
    const body = {
      model: 'm',
      query: 'red fox',
      documents: ['a dog', { text: 'a red fox' }, 'red'],
      top_n: 2,
    };
    const reply = await client(served).post('/rerank', { body });
    expect(reply).toMatchObject({
      results: [
        { index: 1, relevance_score: 1 },
        { index: 2, relevance_score: 0.5 },
      ],
      usage: { total_tokens: 8 },
    });
  });

  test('the official OpenAI client transcribes a recording, edits an image, looks up a model and moderates', async () => {
    const answers: Record<string, string> = {
      '/v1/audio/transcriptions': '{"text":"Hello."}',
      '/v1/images/edits': '{"created":1,"data":[{"b64_json":"AA=="}]}',
      '/v1/moderations': '{"id":"m","model":"omni-moderation-latest","results":[{"flagged":true}]}',
    };
    await using provider = await llmProvider((request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(answers[request.url ?? '']),
    );
    await using served = await llmGateway(provider, { params: { apiKey: 'sk-provider' } });
    const api = client(served);
    const file = new File(['RIFF'], 'a.wav', { type: 'audio/wav' });
    expect((await api.audio.transcriptions.create({ model: 'whisper-1', file })).text).toBe('Hello.');
    const image = new File(['PNG'], 'a.png', { type: 'image/png' });
    const edited = await api.images.edit({ model: 'gpt-image-1', image, prompt: 'brighter' });
    expect(edited.data?.[0]?.b64_json).toBe('AA==');
    expect((await api.moderations.create({ input: 'x' })).results[0]?.flagged).toBe(true);
    expect((await api.models.retrieve('gpt/x')).id).toBe('gpt/x');
    await expect(api.files.list()).rejects.toMatchObject({ status: 404, code: 'unknown_url' });
    expect(provider.received.map(({ headers }) => headers['authorization'])).toEqual(
      Array(3).fill('Bearer sk-provider'),
    );
  });

  test('the official OpenAI client sends tools and receives tool calls', async () => {
    const call = {
      id: 'c1',
      type: 'function' as const,
      function: { name: 'pay', arguments: '{"amount":1}' },
    };
    const message = { role: 'assistant', content: null, tool_calls: [call] };
    const choices = [{ index: 0, message, finish_reason: 'tool_calls' }];
    await using provider = await llmProvider(answering(completion('', { choices })));
    await using served = await llmGateway(provider);
    const parameters = { type: 'object', properties: { amount: { type: 'number' } } };
    const tools = [{ type: 'function' as const, function: { name: 'pay', parameters } }];
    const reply = await client(served).chat.completions.create({ ...ask, tools });
    expect(reply.choices[0]?.message.tool_calls).toEqual([call]);
    expect(bodyOf(provider)).toEqual({ ...ask, tools });
  });

  test('the official OpenAI client parses every error of the gateway', async () => {
    await using served = await modelsGateway([{ name: 'acme-*', provider: 'echo' }], {
      policies: { localRateLimit: [{ maxTokens: 2, fillInterval: '1h' }] },
    });
    const openai = client(served);
    await expect(openai.chat.completions.create({ ...ask, model: 'other' })).rejects.toMatchObject({
      status: 404,
      code: 'model_not_found',
      type: 'invalid_request_error',
    });
    await openai.chat.completions.create(ask);
    const limited = openai.chat.completions.create(ask);
    await expect(limited).rejects.toBeInstanceOf(OpenAI.RateLimitError);
    await expect(limited).rejects.toThrow('rate limit exceeded');
  });

  test('the official OpenAI client gets an error event in the stream when the provider breaks off', async () => {
    await using provider = await llmProvider(
      streaming((response) => response.write(chunk({ content: 'Hel' }), () => response.destroy())),
    );
    await using served = await llmGateway(provider);
    const stream = await client(served).chat.completions.create({ ...ask, stream: true });
    const read = async (): Promise<void> => {
      for await (const part of stream) expect(part.choices[0]?.delta.content).toBe('Hel');
    };
    await expect(read()).rejects.toMatchObject({ code: 'upstream_failed' });
  });

  test('the official OpenAI client gets the error event of a stream of responses when the provider breaks off', async () => {
    const answer = { model: 'm', text: 'Hel lo', usage: {} };
    const [part] = WIRE.responses.stream?.(answer).split('event: response.output_text.done') ?? [];
    await using provider = await llmProvider(
      streaming((response) => response.write(part, () => response.destroy())),
    );
    await using served = await llmGateway(provider);
    const stream = await client(served).responses.create({ model: 'm', input: 'x', stream: true });
    const events = [];
    for await (const event of stream) events.push(event);
    expect(events.at(-2)).toMatchObject({ type: 'response.output_text.delta', sequence_number: 3 });
    expect(events.at(-1)).toEqual({
      type: 'error',
      code: 'upstream_failed',
      message: 'the provider ended the stream early',
      param: null,
      sequence_number: 4,
    });
  });

  test("the official OpenAI client aborts a stream, and the gateway aborts the provider's stream", async () => {
    let left = false;
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ content: 'Hel' }));
        response.once('close', () => {
          left = true;
        });
      }),
    );
    await using served = await llmGateway(provider);
    const stream = await client(served).chat.completions.create({ ...ask, stream: true });
    for await (const part of stream) {
      expect(part.choices[0]?.delta.content).toBe('Hel');
      stream.controller.abort();
    }
    await until(() => left);
    await served.accessLine(1);
  });

  test("the official OpenAI client reads a provider's stream to its end", async () => {
    const role = chunk({ role: 'assistant', content: '' });
    const said = role + ['Grüß', 'e ', '🎉'].map((content) => chunk({ content })).join('');
    await using provider = await llmProvider(streaming((response) => response.end(said + FINISH + DONE)));
    await using served = await llmGateway(provider);
    const final = await client(served).chat.completions.stream(ask).finalChatCompletion();
    expect(final.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Grüße 🎉' } });
    expect(bodyOf(provider)['messages']).toEqual(ask.messages);
  });
});
