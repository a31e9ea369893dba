import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { calcPrice } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { PriceCatalog } from '../../../src/server/llm/cost/catalog.ts';
import { builtInSchema } from '../../../src/server/llm/cost/catalog-schema.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { budgetGateway, createKey } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import {
  answering,
  CHAT,
  chat,
  completion,
  errorOf,
  llmGateway,
  llmProvider,
} from '../../kit/llm-provider.ts';

const text = readFileSync(fileURLToPath(new URL('../../../prices/catalog.json', import.meta.url)), 'utf8');
const builtIn = builtInSchema.parse(JSON.parse(text));

describe('the prices that are built in', () => {
  test('prices/catalog.json is what the price list of its version says', async () => {
    const script = new URL('../../../scripts/prices.mjs', import.meta.url).href;
    const { pricesText } = (await import(script)) as { pricesText(date: string): string };
    expect(text, 'run `npm run prices`').toBe(pricesText(builtIn.date));
  });

  // Names that LiteLLM lists, and names with dates and regions: none of them is a name in the price list itself.
  test.each([
    ['openai', 'openai', 'gpt-4o-2024-08-06'],
    ['openai', 'openai', 'gpt-6-sol-2026-09-22'],
    ['anthropic', 'anthropic', 'claude-sonnet-4-5-20250929'],
    ['anthropic', 'anthropic', 'claude-opus-5-20260801'],
    ['gcp.gemini', 'google', 'gemini-2.5-pro'],
    ['gcp.gemini', 'google', 'gemini-2.5-flash-lite-preview-09-2025'],
    ['gcp.vertex_ai', 'google', 'gemini-2.5-flash'],
    ['aws.bedrock', 'aws', 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'],
    ['aws.bedrock', 'aws', 'us.amazon.nova-lite-v1:0'],
    ['azure', 'azure', 'gpt-4.1-mini'],
    ['xai', 'x-ai', 'grok-4.5-20260801'],
  ])('%s has the price that the list gives %s for %s', (provider, providerId, model) => {
    const found = new PriceCatalog([]).price(provider, [model], { input: 1_000, output: 500 });
    const listed = calcPrice({ input_tokens: 1_000, output_tokens: 500 }, model, {
      providerId,
      timestamp: new Date(`${builtIn.date}T14:00:00Z`),
    });
    expect(Number(found.total)).toBeCloseTo(listed?.total_price ?? Number.NaN, 12);
  });

  test.each([
    ['openai', 'gpt-image-1'],
    ['openai', 'gpt-4o-mini-tts'],
    ['openai', 'gpt-4o-transcribe'],
    ['openai', 'whisper-1'],
    ['gcp.gemini', 'gemini-2.5-flash-image'],
    ['gcp.gemini', 'gemini-2.5-flash-preview-tts'],
  ])('media of %s %s have no price, as their tokens may not be reported', (provider, model) => {
    expect(new PriceCatalog([]).price(provider, [model], { input: 10, output: 10 }).status).toBe('Unpriced');
  });

  test('a price of the configuration replaces one that is built in, and others stay', () => {
    const own = {
      providers: { openai: { models: { 'gpt-4o-mini': { rates: { input: '7', output: '7' } } } } },
    };
    const usage = { input: 100_000, output: 0 };
    const catalog = new PriceCatalog([own]);
    expect(catalog.price('openai', ['gpt-4o-mini'], usage).total).toBe('0.7');
    expect(catalog.price('anthropic', ['claude-sonnet-4-5'], usage).total).toBe('0.3');
    expect(catalog.price('openai', ['none'], usage).status).toBe('Missing');
    expect(new PriceCatalog([]).price('openai', ['none'], usage).status).toBe('NoCatalog');
  });

  test.each([
    ['exact', '1'],
    ['exact-2', '2'],
    ['a-long-name', '3'],
    ['x-end', '4'],
    ['a-middle-b', '5'],
  ])('of names with a star the longest that matches counts: %s', (model, total) => {
    const rates = (input: string) => ({ rates: { input } });
    const models = {
      '*': rates('9'),
      'exact*': rates('2'),
      exact: rates('1'),
      'a*': rates('8'),
      'a-long*': rates('3'),
      '*-end': rates('4'),
      '*-middle-*': rates('5'),
    };
    const catalog = new PriceCatalog([{ providers: { p: { models } } }]);
    expect(catalog.price('p', [model], { input: 1_000_000, output: 0 }).total).toBe(total);
  });

  test('a call without a catalog in the configuration has a cost in the log', async () => {
    await using provider = await llmProvider(
      answering(completion('hi', { model: 'gpt-4o-mini-2024-07-18' })),
    );
    await using gate = await llmGateway(provider);
    await chat(gate, { ...CHAT, model: 'gpt-4o-mini' });
    // 12 and 7 tokens at 0.15 and 0.6 USD per million.
    expect((await gate.accessLine(1))['gw.ai.usage.cost.total']).toBe('0.000006');
  });
});

describe('budgets in USD', () => {
  const models = [
    { name: 'gpt-4o-mini', provider: 'openai', params: { apiKey: 'sk-a' } },
    { name: 'house', provider: 'openai', params: { apiKey: 'sk-a', model: 'house-1' } },
  ];
  const problemsOf = async (budgets: object[], config: object = {}): Promise<string[]> => {
    const yaml = JSON.stringify({
      config: { database: { url: 'sqlite://./agctl.db' }, ...config },
      llm: { port: 0, models, policies: { budgets } },
    });
    const found = await findProblems(loadConfigText(yaml, 'gateway.yaml', {}), { folder: '/tmp', env: {} });
    return found.filter(({ code }) => code === 'AGW0316').map(({ message }) => message);
  };

  test('a budget on models without a price is a warning that names them', async () => {
    const closed = { name: 'b', limit: '1USD/day' };
    expect(await problemsOf([closed])).toEqual([
      'no price is known for house-1 (openai): the budget refuses their calls',
    ]);
    expect(await problemsOf([{ ...closed, failureMode: 'failOpen' }])).toEqual([]);
    expect(await problemsOf([{ name: 'b', limit: '1000tokens/day' }])).toEqual([]);
    const own = { providers: { openai: { models: { 'house-*': { rates: { input: '1' } } } } } };
    expect(await problemsOf([closed], { modelCatalog: [{ inline: own }] })).toEqual([]);
  });

  test('a key with a budget in USD is created with a warning that names models without a price', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(
      provider,
      folder.path,
      { apiKey: { mode: 'strict', virtualKeys: {} } },
      {
        options: { admin: true },
        model: { params: { baseUrl: `http://${provider.address}/v1`, model: 'house-1' } },
      },
    );
    const warnings = async (settings: object) => (await createKey(gate, settings)).warnings;
    expect(await warnings({ name: 'a', budgets: ['5USD/day'] })).toEqual([
      'no price is known for house-1 (openai): calls of the key are refused. Add it to `config.modelCatalog`, or set `virtualKeys.failureMode: failOpen`',
    ]);
    expect(await warnings({ name: 'b', budgets: ['5tokens/day'] })).toEqual([]);
    expect(await warnings({ name: 'c', budgets: ['5USD/day'], allowedModels: ['other'] })).toEqual([
      expect.stringContaining('house-1'),
    ]);
    const { secret } = await createKey(gate, { name: 'd', budgets: ['5USD/day'] });
    const refused = await chat(gate, { ...CHAT, model: 'other' }, { authorization: `Bearer ${secret}` });
    expect([refused.status, errorOf(refused).message]).toEqual([
      403,
      expect.stringContaining('`house-1` (openai)'),
    ]);
  });
});
