import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PriceCatalog } from '../../../src/server/llm/cost/catalog.ts';
import { catalogSchema } from '../../../src/server/llm/cost/catalog-schema.ts';
import { parseUsage } from '../../../src/server/llm/usage.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  errorOf,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const document = (rates: object | undefined, more: object = {}, model = 'm') =>
  catalogSchema.parse({
    providers: { openai: { models: { [model]: { ...(rates && { rates }), ...more } } } },
  });
const price = (rates: object, usage: object, more: object = {}) =>
  new PriceCatalog([document(rates, more)]).price('openai', ['m'], { input: 0, output: 0, ...usage });

describe('what is charged for a report that contradicts itself', () => {
  const huge = 2 ** 40;
  // Input, output and cost in millionths of a dollar; undefined: nothing is read, so that tokens are estimated.
  test.each<[report: object, charged: readonly [input: number, output: number, cost: string] | undefined]>([
    // The total is another one: it counts only where it confirms what is beside the counts.
    [{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 3 }, [10, 5, '0.00002']],
    [
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 900, prompt_tokens_details: {} },
      [10, 5, '0.00002'],
    ],
    [{ prompt_tokens: 10, completion_tokens: 5, total_tokens: 20 }, [10, 10, '0.00003']],
    // A part that is larger than its whole is beside it.
    [
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 100 } },
      [110, 5, '0.00003'],
    ],
    [
      { prompt_tokens: 10, completion_tokens: 5, completion_tokens_details: { reasoning_tokens: 9 } },
      [10, 14, '0.000038'],
    ],
    // A recording is at most all of it.
    [
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { audio_tokens: 99 } },
      [10, 5, '0.00002'],
    ],
    [
      { prompt_tokens: 10, completion_tokens: 5, completion_tokens_details: { audio_tokens: 99 } },
      [10, 5, '0.00002'],
    ],
    [
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 8 },
      },
      [10, 5, '0.0000118'],
    ],
    // No counts.
    [{ prompt_tokens: 10, completion_tokens: -5 }, [10, 0, '0.00001']],
    [{ prompt_tokens: 10.5, completion_tokens: 5 }, [0, 5, '0.00001']],
    [
      { prompt_tokens: 10, completion_tokens: 5, prompt_tokens_details: { cached_tokens: -8 } },
      [10, 5, '0.00002'],
    ],
    [{ prompt_tokens: '10', completion_tokens: 1e300 }, undefined],
    [{ prompt_tokens: -1, completion_tokens: 0.5, total_tokens: 7 }, undefined],
    [
      { prompt_tokens: huge, completion_tokens: huge + 1, prompt_tokens_details: { cached_tokens: huge } },
      [huge, 0, '109951.1627776'],
    ],
  ])('%j', (report, charged) => {
    const usage = parseUsage(report);
    const { total } = price({ input: '1', output: '2', cacheRead: '0.1', cacheWrite: '0.5' }, usage ?? {});
    expect(usage && [usage.input, usage.output, total]).toEqual(charged);
  });
});

describe('prices', () => {
  test('a price counts cached and reasoning tokens once, by their own rates', () => {
    const usage = { input: 1000, cachedInput: 400, output: 100, reasoning: 30 };
    const cost = price({ input: '0.20', output: '0.80', cacheRead: '0.05' }, usage);
    expect(cost).toMatchObject({ status: 'Exact', total: '0.00022' });
    expect(cost.parts).toEqual({
      total: 0.00022,
      input: 0.00012,
      output: 0.000056,
      cacheRead: 0.00002,
      cacheWrite: 0,
      cacheWrite1h: 0,
      reasoning: 0.000024,
      inputAudio: 0,
      outputAudio: 0,
    });
    expect(cost.rates).toEqual({ input: 0.2, output: 0.8, cacheRead: 0.05 });
  });

  test.each([
    [
      'a cache class without a rate is priced as input',
      { input: '1' },
      { input: 10, cachedInput: 4 },
      '0.00001',
    ],
    [
      'audio without a rate is priced as text',
      { input: '1', output: '2' },
      { input: 3, inputAudio: 3, output: 1, outputAudio: 1 },
      '0.000005',
    ],
    ['the smallest rate', { input: '0.000001' }, { input: 1 }, '0.000000000001'],
    ['nothing', { input: '1' }, {}, '0'],
    ['whole dollars', { output: '15' }, { output: 2_000_000 }, '30'],
  ])('price calculation: %s', (_, rates, usage, total) => {
    expect(price(rates, usage).total).toBe(total);
  });

  test('a price is exact in decimal where binary fractions are not', () => {
    expect(price({ input: '0.1', output: '0.2' }, { input: 1_000_000, output: 1_000_000 }).total).toBe('0.3');
    fc.assert(
      fc.property(fc.nat(10 ** 9), fc.nat(10 ** 6), (tokens, millionths) => {
        const rate = (millionths / 1e6).toFixed(6);
        const { total = '' } = price({ output: rate }, { output: tokens });
        const [whole = '', fraction = ''] = total.split('.');
        expect(BigInt(whole + fraction.padEnd(12, '0'))).toBe(BigInt(tokens) * BigInt(millionths));
      }),
    );
  });

  test('a price follows the highest tier that the context exceeds', () => {
    const tiers = [
      { contextOver: 100, rates: { input: '2' } },
      { contextOver: 200, rates: { input: '4' } },
    ];
    const totals = [100, 101, 200, 201].map(
      (input) => price({ input: '1', output: '1' }, { input }, { tiers }).total,
    );
    expect(totals).toEqual(['0.0001', '0.000202', '0.0004', '0.000804']);
    expect(price({ input: '1', output: '1' }, { input: 101, output: 1 }, { tiers }).total).toBe('0.000203');
  });

  test('a missing price comes with the reason', () => {
    const usage = { input: 1, output: 1 };
    const status = (
      catalog: PriceCatalog,
      model: string,
      counted: typeof usage | undefined = usage,
    ): string => catalog.price('openai', [undefined, model], counted).status;
    expect(status(new PriceCatalog([]), 'm')).toBe('NoCatalog');
    const catalog = new PriceCatalog([document({ input: '1' }), document(undefined, {}, 'free')]);
    expect(status(catalog, 'm')).toBe('Exact');
    expect(status(catalog, 'other')).toBe('Missing');
    expect(status(catalog, 'free')).toBe('Unpriced');
    expect(catalog.price('openai', ['m'], undefined).status).toBe('Unpriced');
    expect(catalog.price('openai', ['m-2026', 'm'], usage).status).toBe('Exact');
  });

  test('later catalogs override a price rate by rate', () => {
    const both = new PriceCatalog([document({ input: '1', output: '1' }), document({ input: '3' })]);
    expect(both.price('openai', ['m'], { input: 1, output: 1 }).total).toBe('0.000004');
  });

  test.each(['-1', '1e3', '0.1234567', '.5', '1,5', 1])(
    'a price catalog with the rate %j is rejected',
    (input) => {
      expect(() => document({ input })).toThrow();
    },
  );
});

describe('usage', () => {
  test.each([
    [{ prompt_tokens: -1, completion_tokens: 1e308 }, undefined],
    [{ prompt_tokens: '7', completion_tokens: null }, undefined],
    [null, undefined],
    [{ prompt_tokens: 3 }, { input: 3, output: 0 }],
    [
      { input_tokens: 3, output_tokens: 4, input_tokens_details: { cached_tokens: 2 } },
      { input: 3, output: 4, cachedInput: 2 },
    ],
    [
      { prompt_tokens: 3, completion_tokens: 4.5, prompt_tokens_details: null },
      { input: 3, output: 0 },
    ],
  ])('usage %j is read as %j', (value, usage) => {
    expect(parseUsage(value)).toEqual(usage);
  });
});

describe('catalogs of a configuration', () => {
  const config = (modelCatalog: object[]): string =>
    JSON.stringify({
      config: { adminAddr: 'off', modelCatalog },
      llm: { port: 0, models: [{ name: '*', provider: 'echo' }] },
    });

  test('a price catalog is read from a file, and a model without a price is explained in the log', async () => {
    await using folder = await temporaryFolder();
    const catalog = {
      providers: { echo: { models: { 'acme-mini': { rates: { input: '1000000', output: '0' } } } } },
    };
    await writeFile(join(folder.path, 'prices.json'), JSON.stringify(catalog));
    await using served = await gateway(config([{ file: 'prices.json' }]), { folder: folder.path });
    await chat(served);
    expect((await served.accessLine(1))['gw.ai.usage.cost.total']).toBe('1');
    await chat(served, { model: 'other', messages: [] });
    const line = await served.accessLine(2);
    expect(line).not.toHaveProperty('gw.ai.usage.cost.total');
    expect(line['gw.ai.usage.cost.problem']).toBe('no prices for echo other');
  });

  test('price catalogs price the model that the provider was asked for, also when the log reads the response', async () => {
    await using provider = await llmProvider(answering(completion('Hello.', { model: 'dated-name' })));
    const modelCatalog = [
      { inline: { providers: { openai: { models: { real: { rates: { input: '1000000' } } } } } } },
    ];
    const frontendPolicies = {
      accessLog: { add: { said: 'json(response.body).choices[0].message.content' } },
    };
    await using served = await llmGateway(provider, {
      params: { model: 'real' },
      more: { frontendPolicies, config: { modelCatalog } },
    });
    await chat(served);
    expect(await served.accessLine(1)).toMatchObject({
      'gen_ai.usage.input_tokens': '12',
      'gw.ai.usage.cost.total': '12',
      said: 'Hello.',
    });
  });

  test('an unusable price catalog is a configuration error', async () => {
    await expect(gateway(config([{ file: 'nowhere.json' }]))).rejects.toThrow('cannot be read');
    await expect(gateway(config([{ inline: '{"providers":{},"x":1}' }]))).rejects.toThrow('not valid');
  });
});

describe('LLM rate limits', () => {
  const limited = (limit: object) =>
    modelsGateway([{ name: '*', provider: 'echo' }], { policies: { localRateLimit: [limit] } });
  const say = (content: string) => ({ model: 'm', messages: [{ role: 'user', content }] });

  test('a request limit admits exactly its number of requests, also when they are concurrent', async () => {
    await using served = await limited({ maxTokens: 5, fillInterval: '1h' });
    const replies = await Promise.all(Array.from({ length: 50 }, () => chat(served)));
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(replies.filter(({ status }) => status === 429)).toHaveLength(45);
  });

  test('a token limit counts calls whose client disconnects before the usage report', async () => {
    await using provider = await llmProvider(
      streaming((response) => response.write(chunk({ content: 'x'.repeat(400) }))),
    );
    await using served = await llmGateway(provider, {
      llm: { policies: { localRateLimit: [{ maxTokens: 100, fillInterval: '1h', type: 'tokens' }] } },
    });
    const call = request(`${served.url}/v1/chat/completions`, { method: 'POST' });
    call.on('error', () => undefined).end(JSON.stringify({ ...CHAT, stream: true }));
    const [response] = (await once(call, 'response')) as [IncomingMessage];
    await once(response, 'data');
    call.destroy();
    await served.accessLine(1);
    expect((await chat(served)).status).toBe(429);
  });

  test("a token limit deducts a call's usage when the call ends, and rejects calls at zero", async () => {
    await using served = await limited({ maxTokens: 10, fillInterval: '1h', type: 'tokens' });
    // The built-in model counts words and answers with as many.
    const first = await chat(served, say('one two three'));
    expect(first.headers).toMatchObject({ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '10' });
    await served.accessLine(1);
    const second = await chat(served, say('one two three four'));
    expect(second.headers['x-ratelimit-remaining']).toBe('4');
    await served.accessLine(2);
    const third = await chat(served, say('one'));
    expect(third.status).toBe(429);
    expect(third.headers).toMatchObject({ 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '0' });
    expect(Number(third.headers['x-ratelimit-reset'])).toBeGreaterThan(3000);
    expect(errorOf(third)).toEqual({
      message: expect.stringMatching(
        /^rate limit exceeded: at most 10 LLM tokens,.* here together; try again/,
      ) as string,
      type: 'rate_limit_exceeded',
      code: 'rate_limit_exceeded',
    });
    expect((await send(`${served.url}/v1/models`)).status).toBe(200);
  });
});
