import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { JsonBody } from '../../../src/server/llm/request/json-body.ts';
import { CHAT, chat, errorOf, llmGateway, llmProvider, textOf } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const MIB = 1024 * 1024;

/** A chat whose body has about this many bytes. */
const chatOf = (bytes: number): string =>
  JSON.stringify({ ...CHAT, messages: [{ role: 'user', content: 'x'.repeat(bytes) }] });

describe('large LLM requests', () => {
  test('a request over 2 MiB reaches the provider unchanged by default', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider);
    const body = chatOf(3 * MIB);
    expect((await chat(served, body)).status).toBe(200);
    expect(textOf(provider) === body).toBe(true);
    const form = new FormData();
    form.append('model', 'm');
    form.append('file', new File([Buffer.alloc(3 * MIB)], 'a.wav', { type: 'audio/wav' }));
    const reply = await fetch(`${served.url}/v1/audio/transcriptions`, { method: 'POST', body: form });
    expect(reply.status).toBe(200);
    expect(provider.received.at(-1)?.body.length).toBeGreaterThan(3 * MIB);
  });

  test('a request over the default limit is rejected', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, { options: { limits: { llmRequestBytes: 5_000 } } });
    expect((await chat(served, chatOf(4_000))).status).toBe(200);
    const reply = await chat(served, chatOf(6_000));
    expect(reply.status).toBe(413);
    expect(errorOf(reply)).toMatchObject({ code: 'request_body_too_large' });
    expect(LIMITS.llmRequestBytes).toBe(32 * MIB);
  });

  test.each([
    [1_000, 413],
    [3 * MIB, 200],
  ])('maxBufferSize of %i bytes takes precedence over the default limit', async (maxBufferSize, status) => {
    await using provider = await llmProvider();
    const more = { frontendPolicies: { http: { maxBufferSize } } };
    await using served = await llmGateway(provider, {
      more,
      options: { limits: { llmRequestBytes: 1_500 } },
    });
    expect((await chat(served, chatOf(2_000))).status).toBe(status);
  });

  test('requests over 2 MiB are rejected if an expression reads the request body', async () => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, {
      llm: { policies: { authorization: { rules: ['json(request.body).model == "acme-mini"'] } } },
    });
    expect((await chat(served, chatOf(MIB))).status).toBe(200);
    expect((await chat(served, chatOf(3 * MIB))).status).toBeGreaterThanOrEqual(400);
    expect(provider.received).toHaveLength(1);
  });

  test.each([
    ['numbers', `[${'1,'.repeat(LIMITS.llmItems)}1]`, 400],
    ['lists', `[${'[],'.repeat(LIMITS.llmItems / 2)}1]`, 400],
    ['numbers within the limit', `[${'1,'.repeat(LIMITS.llmItems - 10)}1]`, 200],
  ])('a request with too many items is rejected: %s', async (_, input, status) => {
    await using provider = await llmProvider();
    await using served = await llmGateway(provider);
    const body = `{"model":"m","input":${input}}`;
    const reply = await send(`${served.url}/v1/embeddings`, { method: 'POST', body });
    expect(reply.status).toBe(status);
    if (status === 400) expect(errorOf(reply).message).toContain(`${LIMITS.llmItems} items`);
  });

  test('other requests run between the steps of parsing a large request', async () => {
    let turns = 0;
    let isParsed = false;
    const count = (): void => {
      turns += 1;
      if (!isParsed) setImmediate(count);
    };
    setImmediate(count);
    await JsonBody.parse(Buffer.from(chatOf(2 * MIB)));
    isParsed = true;
    expect(turns).toBeGreaterThanOrEqual(3);
  });

  test('strings with any number of escapes are read to their end', async () => {
    for (const unit of ['\\"', '\\\\', '\\\\\\"', 'x\\"', `${'x'.repeat(40)}\\"`, '\\"\\\\'])
      for (const times of [0, 1, 2, 3, 100]) {
        const body = `{"model":"m","a":"${unit.repeat(times)}","b":"${'x'.repeat(times)}"}`;
        const parsed = await JsonBody.parse(Buffer.from(body));
        parsed.set('b', 'new');
        expect(JSON.parse(parsed.toString())).toEqual({ ...(JSON.parse(body) as object), b: 'new' });
      }
  });
});
