import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  FINISH,
  guardrail,
  llmGateway,
  llmProvider,
  streaming,
  USAGE,
  webhook,
} from '../../kit/llm-provider.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { send, valuesOf } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

// How caches of other gateways have failed: members that change the answer were no part of the key (lunargate-ai/gateway#2), nor
// was the address of the provider (promptfoo/promptfoo#7014); hits passed by authentication, budgets and guardrails
// (andreimerfu/pllm#17); streams came back in one piece, without their reasoning, or not at all (BerriAI/litellm#11145,
// #32068, #24579).

/** Answers that are told apart by their number. */
function counting(): Promise<HttpUpstream> {
  let count = 0;
  return llmProvider((request, response, received) => {
    count += 1;
    return answering(completion(`answer ${count}`))(request, response, received);
  });
}

const cached = (provider: HttpUpstream, cache: object = {}, parts: Parameters<typeof llmGateway>[1] = {}) =>
  llmGateway(provider, { ...parts, model: { cache, ...parts.model } });

const said = ({ text }: { text: string }): string => JSON.parse(text).choices[0].message.content;
const ask = (gate: TestGateway, headers = {}, body: object = CHAT) => chat(gate, body, headers);
const headerOf = (reply: Parameters<typeof valuesOf>[0], name: string) => valuesOf(reply, name)[0];

describe('cache of a model', () => {
  test('an equal request gets the answer again, without a call of the provider', async () => {
    await using provider = await counting();
    await using gate = await cached(provider);
    const [first, second] = [await ask(gate), await ask(gate)];
    expect([said(first), said(second)]).toEqual(['answer 1', 'answer 1']);
    expect(second.text).toBe(first.text);
    expect([headerOf(first, 'x-agctl-cache'), headerOf(second, 'x-agctl-cache')]).toEqual(['miss', 'hit']);
    expect(headerOf(second, 'age')).toBe('0');
    expect(headerOf(second, 'content-type')).toBe(headerOf(first, 'content-type'));
    expect(provider.received).toHaveLength(1);
  });

  test('a request with another member, path, header of its API or model is another one', async () => {
    await using provider = await counting();
    await using gate = await cached(provider);
    await ask(gate);
    const answers = [
      await ask(gate, {}, { ...CHAT, temperature: 0.1 }),
      await ask(gate, {}, { ...CHAT, model: 'acme-large' }),
      await ask(gate, { 'openai-beta': 'a' }),
      await ask(gate, { 'openai-beta': 'b' }),
    ];
    expect(answers.map(said)).toEqual(['answer 2', 'answer 3', 'answer 4', 'answer 5']);
  });

  test('headers of one request or of a program do not count', async () => {
    await using provider = await counting();
    await using gate = await cached(provider);
    for (const id of ['a', 'b'])
      expect(
        said(
          await ask(gate, {
            'x-request-id': id,
            'user-agent': id,
            traceparent: `00-${'a'.repeat(32)}-${id.repeat(16)}-01`,
            'x-stainless-retry-count': id,
            'x-b3-traceid': id,
            'sentry-trace': id,
          }),
        ),
      ).toBe('answer 1');
  });

  test.each([
    ['no-store', 'answer 2', undefined, 'answer 1'],
    ['no-cache', 'answer 2', 'miss', 'answer 2'],
    ['max-age=0, private', 'answer 2', 'miss', 'answer 2'],
    ['max-age=60', 'answer 1', 'hit', 'answer 1'],
  ])('a request with cache-control %j gets %s', async (wish, content, header, next) => {
    await using provider = await counting();
    await using gate = await cached(provider);
    await ask(gate);
    const reply = await ask(gate, { 'cache-control': wish });
    expect([said(reply), headerOf(reply, 'x-agctl-cache')]).toEqual([content, header]);
    expect(said(await ask(gate))).toBe(next);
  });

  test('an answer is not given again after its time', async () => {
    await using provider = await counting();
    await using gate = await cached(provider, { ttl: '50ms' });
    await ask(gate);
    await until(async () => said(await ask(gate)) === 'answer 2');
  });

  test('an error, and an answer that is no JSON, are not given again', async () => {
    let count = 0;
    await using provider = await llmProvider((request, response, received) => {
      count += 1;
      const [text, status] = [
        ['{"error":{"message":"busy"}}', 503],
        ['{"error":{"message":"in a 200"}}', 200],
        ['{"choices":', 200],
        [completion('good'), 200],
      ][count - 1] as [string, number];
      return answering(text, status)(request, response, received);
    });
    await using gate = await cached(provider);
    const texts: string[] = [];
    for (let turn = 0; turn < 5; turn += 1) texts.push((await ask(gate)).text);
    expect(texts[4]).toBe(texts[3]);
    expect(said({ text: texts[4] as string })).toBe('good');
    expect(provider.received).toHaveLength(4);
  });
});

describe('who gets an answer again', () => {
  const keys = ['sk-alice-000000000000', 'sk-bob-00000000000000'];
  const policies = { apiKey: { keys: keys.map((key) => ({ key })), mode: 'strict' } };
  const bearer = (key: string | undefined) => ({ authorization: `Bearer ${key}` });

  test('callers with different keys do not get each other’s answers, unless they are shared', async () => {
    await using provider = await counting();
    await using own = await cached(provider, {}, { llm: { policies } });
    for (const [key, content] of [
      [keys[0], 'answer 1'],
      [keys[1], 'answer 2'],
      [keys[0], 'answer 1'],
    ])
      expect(said(await ask(own, bearer(key)))).toBe(content);
    await using shared = await cached(provider, { scope: 'shared' }, { llm: { policies } });
    for (const key of keys) expect(said(await ask(shared, bearer(key)))).toBe('answer 3');
  });

  test.each([
    ['a shared cache of clients with their own keys at the provider', { scope: 'shared' }, {}],
    ['clients that nobody has authenticated', {}, { apiKey: 'sk-of-the-gateway' }],
  ])('the credential is part of the request: %s', async (_, cache, params) => {
    await using provider = await counting();
    await using gate = await cached(provider, cache, { params });
    const answers = [];
    for (const key of ['one', 'two', 'one']) answers.push(said(await ask(gate, bearer(key))));
    expect(answers).toEqual(['answer 1', 'answer 2', 'answer 1']);
  });

  test('a caller who may not use the model gets no answer of the cache', async () => {
    await using provider = await counting();
    const authorization = { rules: ['request.headers["x-team"] == "red"'] };
    await using gate = await cached(provider, { scope: 'shared' }, { model: { authorization } });
    expect((await ask(gate, { 'x-team': 'red' })).status).toBe(200);
    expect((await ask(gate, { 'x-team': 'blue' })).status).toBe(403);
  });
});

describe('calls at the same time', () => {
  test('a thousand equal calls reach the provider once for each key', async () => {
    await using provider = await counting();
    const keys = ['sk-alice-000000000000', 'sk-bob-00000000000000'];
    const policies = { apiKey: { keys: keys.map((key) => ({ key })), mode: 'strict' } };
    await using gate = await cached(provider, {}, { llm: { policies } });
    const all = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => ask(gate, { authorization: `Bearer ${keys[index % 2]}` })),
    );
    expect(new Set(all.map(({ status }) => status))).toEqual(new Set([200]));
    expect(provider.received).toHaveLength(2);
    expect(all.filter((reply) => headerOf(reply, 'x-agctl-cache') === 'hit')).toHaveLength(998);
  });

  test('calls that wait for one that fails ask the provider themselves', async () => {
    let count = 0;
    await using provider = await llmProvider((request, response, received) => {
      count += 1;
      const text = count === 1 ? '{"error":{"message":"busy"}}' : completion(`answer ${count}`);
      return answering(text, count === 1 ? 500 : 200)(request, response, received);
    });
    await using gate = await cached(provider);
    const statuses = (await Promise.all(Array.from({ length: 5 }, () => ask(gate)))).map(
      ({ status }) => status,
    );
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 500]);
  });

  test('a call whose first caller leaves is answered', async () => {
    const waiting: (() => void)[] = [];
    await using provider = await llmProvider(async (request, response, received) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return answering(completion('late'))(request, response, received);
    });
    await using gate = await cached(provider);
    const left = new AbortController();
    const body = JSON.stringify(CHAT);
    const first = fetch(`${gate.url}/v1/chat/completions`, { method: 'POST', body, signal: left.signal });
    await until(() => waiting.length === 1);
    const second = ask(gate);
    left.abort();
    await expect(first).rejects.toThrow();
    await until(() => waiting.length === 2);
    for (const go of waiting) go();
    expect(said(await second)).toBe('late');
  });
});

describe('streams', () => {
  const stream = { ...CHAT, stream: true };

  test('a stream is given again as the same stream, and its usage only to those who ask for it', async () => {
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ reasoning_content: 'a thought' }));
        for (const word of ['one ', 'two']) response.write(chunk({ content: word }));
        response.write(FINISH);
        response.write(chunk(undefined, { choices: [], usage: USAGE }));
        response.end(DONE);
      }),
    );
    await using gate = await cached(provider);
    const [first, second] = [await ask(gate, {}, stream), await ask(gate, {}, stream)];
    expect(headerOf(second, 'x-agctl-cache')).toBe('hit');
    expect(headerOf(second, 'content-type')).toContain('text/event-stream');
    expect(second.text).toBe(first.text);
    expect(second.text).toContain('a thought');
    expect(second.text).not.toContain('prompt_tokens');
    expect(provider.received).toHaveLength(1);
  });

  test('a stream of the Responses API is given again', async () => {
    const event = (type: string, more: object): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
    const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(event('response.output_text.delta', { item_id: 'm', delta: 'hello' }));
        response.end(event('response.completed', { response: { id: 'r', model: 'acme-mini', usage } }));
      }),
    );
    await using gate = await cached(provider);
    const body = JSON.stringify({ model: 'acme-mini', input: 'Hi', stream: true });
    const [first, second] = [0, 1].map(
      () => () => send(`${gate.url}/v1/responses`, { method: 'POST', body }),
    );
    const before = await first?.();
    expect((await second?.())?.text).toBe(before?.text);
    expect(provider.received).toHaveLength(1);
  });

  test.each([
    ['is cut off', (response: { destroy(): void }) => response.destroy()],
    [
      'ends with an error',
      (response: { end(text: string): void }) => response.end('data: {"error":{"message":"broken"}}\n\n'),
    ],
  ])('a stream that %s is not given again', async (_, end) => {
    await using provider = await llmProvider(
      streaming((response) => response.write(chunk({ content: 'half' }), () => end(response))),
    );
    await using gate = await cached(provider);
    for (let turn = 0; turn < 2; turn += 1) await ask(gate, {}, stream).catch(() => undefined);
    expect(provider.received).toHaveLength(2);
  });
});

describe('what else is done with an answer of the cache', () => {
  test('guardrails check it', async () => {
    await using provider = await counting();
    let isForbidden = false;
    await using service = await guardrail(() => (isForbidden ? { body: 'no', status_code: 418 } : {}));
    await using gate = await cached(
      provider,
      {},
      { model: { guardrails: { response: [webhook(service)] } } },
    );
    expect((await ask(gate)).status).toBe(200);
    isForbidden = true;
    const reply = await ask(gate);
    expect([reply.status, provider.received.length]).toEqual([418, 1]);
  });

  test('an answer that a guardrail rejects is not kept', async () => {
    await using provider = await counting();
    let isForbidden = true;
    await using service = await guardrail(() => (isForbidden ? { body: 'no', status_code: 418 } : {}));
    await using gate = await cached(
      provider,
      {},
      { model: { guardrails: { response: [webhook(service)] } } },
    );
    expect((await ask(gate)).status).toBe(418);
    isForbidden = false;
    expect(said(await ask(gate))).toBe('answer 2');
  });

  test('it is translated for a client of another API once', async () => {
    await using provider = await counting();
    await using gate = await cached(provider, {}, { model: { provider: 'oaiCompat' } });
    const message = { model: 'acme-mini', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] };
    const texts: string[] = [];
    for (let turn = 0; turn < 2; turn += 1)
      texts.push(
        (await send(`${gate.url}/v1/messages`, { method: 'POST', body: JSON.stringify(message) })).text,
      );
    expect(texts[1]).toBe(texts[0]);
    expect(JSON.parse(texts[1] as string).content[0].text).toBe('answer 1');
    expect(provider.received).toHaveLength(1);
  });

  test('it costs nothing, and the log and the metrics say that it is one', async () => {
    await using provider = await counting();
    const models = { 'acme-mini': { rates: { input: '1', output: '2' } } };
    const config = { modelCatalog: [{ inline: { providers: { openai: { models } } } }] };
    await using gate = await cached(provider, {}, { more: { config } });
    for (let turn = 0; turn < 2; turn += 1) await ask(gate);
    const [first, second] = [await gate.accessLine(1), await gate.accessLine(2)];
    expect(Number(first['gw.ai.usage.cost.total'])).toBeGreaterThan(0);
    expect(first['gw.ai.cache_hit']).toBeUndefined();
    expect(second).toMatchObject({ 'gw.ai.cache_hit': 'true', 'gw.ai.usage.cost.total': '0' });
    expect(second['gen_ai.usage.input_tokens']).toBeUndefined();
  });

  test('a key of the gateway that the provider repeats is not kept', async () => {
    const key = `sk-${randomUUID()}`;
    await using provider = await llmProvider(answering(completion(`your key is ${key}`)));
    await using gate = await cached(provider, {}, { params: { apiKey: key } });
    await ask(gate);
    const reply = await ask(gate);
    expect(headerOf(reply, 'x-agctl-cache')).toBe('hit');
    expect(reply.text).not.toContain(key);
  });
});

describe.skipIf(REDIS_SERVER === undefined)('with config.shared', () => {
  test('replicas give each other’s answers again, and go on without the server', async () => {
    await using provider = await counting();
    const redis = await redisServer();
    const more = { config: { shared: { redis: redis.url } } };
    await using one = await cached(provider, {}, { more });
    await using two = await cached(provider, {}, { more });
    // Both have reached the server when each finds an answer in it.
    for (const gate of [one, two])
      await until(async () => headerOf(await ask(gate), 'x-agctl-cache') === 'hit');
    await redis.client.flushall();
    const first = await ask(one);
    expect(headerOf(first, 'x-agctl-cache')).toBe('miss');
    // The client has the answer before the server has it.
    await until(async () => (await redis.client.keys('*answer*')).length === 1);
    const before = provider.received.length;
    const again = await ask(two);
    expect([headerOf(again, 'x-agctl-cache'), said(again)]).toEqual(['hit', said(first)]);
    expect(provider.received).toHaveLength(before);
    await redis[Symbol.asyncDispose]();
    expect((await ask(one)).status).toBe(200);
  });
});

test('a call that only begins something at the provider is never kept', async () => {
  await using provider = await llmProvider(answering('{"id":"r","object":"response","output":[]}'));
  await using gate = await cached(provider);
  for (const more of [{ background: true }, { conversation: 'c' }]) {
    const body = JSON.stringify({ model: 'acme-mini', input: 'Hi', ...more });
    for (let turn = 0; turn < 2; turn += 1) {
      const reply = await send(`${gate.url}/v1/responses`, { method: 'POST', body });
      expect(headerOf(reply, 'x-agctl-cache')).toBeUndefined();
    }
  }
  expect(provider.received).toHaveLength(4);
});
