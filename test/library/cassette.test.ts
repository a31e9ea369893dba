import { join } from 'node:path';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { generateText, streamText } from 'ai';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../src/library/index.ts';
import { replayCassette, type StubModel, stubModel, testGateway } from '../../src/library/testing/index.ts';
import { writeCassette } from '../kit/cassette.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const models = (model: StubModel): GatewayConfig => ({
  gateways: { default: { port: 3000 } },
  llm: { models: [{ name: '*', ...model.as('openAI') }] },
});

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

const hi = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] };
async function all(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const list: unknown[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const textOf = async (answer: Promise<Response>): Promise<string> => (await answer).text();

describe('a recording of calls of models', () => {
  test('the official clients of every API get the same from it, in streams too', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const use = async (url: string): Promise<unknown[]> => {
      const { messages } = hi;
      const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none' });
      const anthropic = new Anthropic({ baseURL: url, apiKey: 'none' });
      const google = new GoogleGenAI({ apiKey: 'none', httpOptions: { baseUrl: url } });
      const ask = { model: 'm', max_tokens: 100, messages };
      const contents = { model: 'm', contents: 'Hi' };
      const answers: unknown[] = [
        await openai.chat.completions.create(hi),
        await all(await openai.chat.completions.create({ ...hi, stream: true })),
        await openai.responses.create({ model: 'm', input: 'Hi' }),
        await all(await openai.responses.create({ model: 'm', input: 'Hi', stream: true })),
        await anthropic.messages.create(ask),
        await all(await anthropic.messages.create({ ...ask, stream: true })),
        await google.models.generateContent(contents),
        await all(await google.models.generateContentStream(contents)),
        (await openai.models.list()).data,
      ];
      for (const model of [
        createOpenAI({ baseURL: `${url}/v1`, apiKey: 'none' }).chat('m'),
        createAnthropic({ baseURL: `${url}/v1`, apiKey: 'none' })('m'),
      ]) {
        answers.push((await generateText({ model, messages })).text);
        answers.push(await streamText({ model, messages }).text);
      }
      // Headers of the HTTP response, such as Date, are no part of an answer.
      return JSON.parse(
        JSON.stringify(answers, (name, value) => (name === 'sdkHttpResponse' ? null : value)),
      );
    };
    let recorded: unknown[];
    {
      await using model = await stubModel('Hello there.');
      await using gateway = await testGateway(models(model), { record: file });
      recorded = await use(gateway.url);
    }
    await using replay = await replayCassette(file);
    expect(await use(replay.url)).toEqual(recorded);
    expect(replay.unmatched).toEqual([]);
    expect(JSON.stringify(recorded).match(/Hello there\./g)?.length).toBeGreaterThan(8);
  });

  // vcr/vcr#971; the order of members: php-vcr/php-vcr#506, ijpiantanida/talkback#32
  test('equal requests get the recorded answers in their order, and then the last one again', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const chat = '/v1/chat/completions';
    {
      await using model = await stubModel('three');
      model.answer('one', { status: 429, message: 'slow down', headers: { 'retry-after': '7' } });
      await using gateway = await testGateway(models(model), { record: file });
      for (let call = 0; call < 3; call += 1) await textOf(post(gateway.url + chat, hi));
    }
    await using replay = await replayCassette(file);
    // The order of members, and credentials, do not count.
    const same = { messages: [{ content: 'Hi', role: 'user' }], model: 'm' };
    const answers: string[] = [];
    for (let call = 0; call < 4; call += 1) {
      const answer = await post(replay.url + chat, same, { authorization: 'Bearer another' });
      answers.push(`${answer.status} ${answer.headers.get('retry-after')} ${await answer.text()}`);
    }
    expect(answers).toEqual([
      expect.stringMatching(/^200 null .*one/),
      expect.stringMatching(/^429 7 .*slow down/),
      expect.stringMatching(/^200 null .*three/),
      expect.stringMatching(/^200 null .*three/),
    ]);
  });

  // Netflix/pollyjs#114, nock/nock#398; secrets in the message: vcr/vcr#487
  test('a request that was not recorded is refused in the format of its client, with what differs', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    {
      await using model = await stubModel();
      await using gateway = await testGateway(models(model), { record: file });
      await textOf(post(`${gateway.url}/v1/chat/completions`, { ...hi, metadata: { run: '1' } }));
      await textOf(post(`${gateway.url}/v1/messages`, { ...hi, max_tokens: 9 }));
      await textOf(
        post(`${gateway.url}/v1beta/models/m:generateContent`, { contents: [{ parts: [{ text: 'Hi' }] }] }),
      );
    }
    await using replay = await replayCassette(file, { ignore: ['metadata.run'] });
    const ask = async (path: string, body: unknown): Promise<[number, unknown]> => {
      const answer = await post(replay.url + path, body);
      return [answer.status, await answer.json()];
    };
    const other = [
      { role: 'user', content: 'Hello, my key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz password=hunter2' },
    ];
    expect(await ask('/v1/chat/completions', { ...hi, messages: other })).toEqual([
      400,
      {
        error: {
          message: expect.stringMatching(
            /cassette\.jsonl:2 is the nearest, with 1 difference\n {2}messages\[0\]\.content: recorded "Hi", asked "Hello/,
          ),
          type: 'invalid_request_error',
          code: 'not_recorded',
        },
      },
    ]);
    expect(await ask('/v1/messages', { ...hi, max_tokens: 10 })).toEqual([
      400,
      {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: expect.stringContaining('max_tokens: recorded 9, asked 10'),
        },
      },
    ]);
    expect(await ask('/v1beta/models/m:generateContent', {})).toEqual([
      400,
      {
        error: {
          code: 400,
          status: 'INVALID_ARGUMENT',
          message: expect.stringContaining('contents: recorded [{'),
        },
      },
    ]);
    expect((await ask('/v1/embeddings', {}))[0]).toBe(404);
    expect(replay.unmatched).toHaveLength(4);
    expect(replay.unmatched.join()).not.toContain('hunter2');
    // What is ignored does not differ.
    expect((await ask('/v1/chat/completions', { ...hi, metadata: { run: '2' } }))[0]).toBe(200);
  });

  test('the order of parameters, and credentials among them, do not count, and other parameters do', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const response = { ms: 0, status: 200, headers: {}, body: { text: 'recorded' } };
    const request = { method: 'GET', target: '/list?b=2&a=1&key=<redacted>', headers: {} };
    writeCassette(file, [{ at: 0, request, response }]);
    await using replay = await replayCassette(file);
    for (const query of ['?a=1&b=2', '?key=another&b=2&a=1'])
      expect(await textOf(fetch(`${replay.url}/list${query}`))).toBe('recorded');
    const other = await fetch(`${replay.url}/list?a=1&b=3`);
    expect([other.status, await other.text()]).toEqual([
      400,
      expect.stringContaining('with 1 difference\n  ?: recorded "a=1&b=2", asked "a=1&b=3"\n'),
    ]);
    expect((await fetch(`${replay.url}/list`)).status).toBe(400);
  });

  test('a page of another site gets nothing from a recording', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const response = { ms: 0, status: 200, headers: {}, body: { text: 'recorded' } };
    writeCassette(file, [{ at: 0, request: { method: 'GET', target: '/', headers: {} }, response }]);
    await using replay = await replayCassette(file);
    const statusWith = async (headers: Record<string, string>): Promise<number | undefined> =>
      (await send(replay.url, { headers })).status;
    expect(await statusWith({})).toBe(200);
    expect(await statusWith({ origin: 'http://localhost:5173' })).toBe(200);
    expect(await statusWith({ host: 'attacker.example' })).toBe(403);
    expect(await statusWith({ origin: 'https://attacker.example' })).toBe(403);
  });

  test('a stream that was whole ends, although the client had left at its last event', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const error = { error: { message: 'the client disconnected before the end of the response' } };
    const left = (target: string, ...events: readonly object[]) => ({
      at: 0,
      request: { method: 'POST', target, headers: {}, body: { json: hi } },
      response: {
        ms: 0,
        status: 200,
        headers: { 'content-type': 'text/event-stream' },
        events: events.map((event, ms) => ({ ms, ...event })),
        cut: 'client',
      },
    });
    writeCassette(file, [
      left('/chat', { json: { choices: [] } }, { text: '[DONE]' }, { json: error }),
      left('/messages', { event: 'message_stop', json: { type: 'message_stop' } }),
      left('/responses', { json: { type: 'response.completed' } }),
    ]);
    await using replay = await replayCassette(file);
    const got = ['/chat', '/messages', '/responses'].map((path) => textOf(post(replay.url + path, hi)));
    expect(await Promise.all(got)).toEqual([
      'data: {"choices":[]}\n\ndata: [DONE]\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      'data: {"type":"response.completed"}\n\n',
    ]);
  });

  test('a request that its client had given up is answered as an equal one that follows, or waits and says so', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const asked = (at: number, json: object, response: object) => ({
      at,
      request: { method: 'POST', target: '/ask', headers: {}, body: { json } },
      response: { ms: 0, status: 200, headers: {}, ...response },
    });
    const left = { status: 0, cut: 'client' };
    writeCassette(file, [
      asked(0, { n: 1 }, left),
      asked(1, { n: 1 }, { cut: 'client', events: [] }),
      asked(2, { n: 1 }, { body: { text: 'first' } }),
      asked(3, { n: 1 }, { body: { text: 'second' } }),
      asked(4, { n: 2 }, left),
    ]);
    await using replay = await replayCassette(file);
    const ask = `${replay.url}/ask`;
    for (const text of ['first', 'second']) expect(await textOf(post(ask, { n: 1 }))).toBe(text);
    expect(replay.unmatched).toEqual([]);
    const leaving = new AbortController();
    const headers = { 'content-type': 'application/json' };
    const waiting = [1, 2].map(() =>
      fetch(ask, { method: 'POST', headers, body: '{"n":2}', signal: leaving.signal }),
    );
    const ended = Promise.allSettled(waiting);
    await until(() => replay.unmatched.length > 0);
    expect(await textOf(post(ask, { n: 1 }))).toBe('second');
    leaving.abort(new Error('patient enough'));
    const reasons = (await ended).map((each) => (each.status === 'rejected' ? each.reason.message : each));
    expect(reasons).toEqual(['patient enough', 'patient enough']);
    expect(replay.unmatched).toEqual([
      `POST /ask waits: in ${file}:6 the recorded client had left before an answer`,
    ]);
  });

  test('a large number in a message is shown as it was sent', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const body = { json: { n: 1 } };
    const response = { ms: 0, status: 200, headers: {} };
    writeCassette(file, [{ at: 0, request: { method: 'POST', target: '/', headers: {}, body }, response }]);
    await using replay = await replayCassette(file);
    const headers = { 'content-type': 'application/json' };
    const asked = '{"n":12345678901234567890,"m":{"o":12345678901234567891}}';
    const text = await textOf(fetch(replay.url, { method: 'POST', headers, body: asked }));
    expect(text).toContain('  n: recorded 1, asked 12345678901234567890\n');
    expect(text).toContain('  m: recorded nothing, asked {"o":12345678901234567891}\n');
  });

  test('options that are none are refused', async () => {
    const refused = async (options: object): Promise<string> =>
      replayCassette('none.jsonl', options).then(
        () => 'accepted',
        (error: Error) => `${error.name}: ${error.message}`,
      );
    expect(await refused({ ignore: 'a' })).toBe(
      'TypeError: replayCassette: `ignore`: expected a list of paths such as [\'metadata.run\'], found "a"',
    );
    expect(await refused({ timing: 1 })).toBe(
      'TypeError: replayCassette: `timing`: expected true or false, found 1',
    );
    expect(await refused({ ignored: [] })).toBe(
      'TypeError: replayCassette: no option `ignored`, expected ignore or timing',
    );
  });

  test('streams have their pauses if that is wanted', async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'cassette.jsonl');
    const event = (ms: number, text: string) => ({ ms, text });
    const response = {
      ms: 1,
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      events: [event(10, 'a'), event(300, 'b'), event(301, 'c')],
    };
    writeCassette(file, [{ at: 5, request: { method: 'GET', target: '/s', headers: {} }, response }]);
    const gaps = async (timing: boolean): Promise<[string, number]> => {
      await using replay = await replayCassette(file, { timing });
      const answer = await fetch(`${replay.url}/s`);
      let first: number | undefined;
      let text = '';
      for await (const chunk of answer.body ?? []) {
        text += new TextDecoder().decode(chunk);
        if (text.includes('data: a')) first ??= performance.now();
      }
      return [text.replace(/^:\n\n/, ''), performance.now() - (first ?? 0)];
    };
    const [text, slow] = await gaps(true);
    expect(text).toBe('data: a\n\ndata: b\n\ndata: c\n\n');
    expect(slow).toBeGreaterThan(250);
    const [same, fast] = await gaps(false);
    expect(same).toBe(text);
    expect(fast).toBeLessThan(250);
  });
});
