import { describe, expect, test } from 'vitest';
import { bodyOf, CHAT, chat, errorOf, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const entry = (name: string, address: string, more: object = {}): object => ({
  name,
  provider: 'oaiCompat',
  params: { baseUrl: `http://${address}/v1`, ...more },
});
const weighted = (...targets: object[]): object => ({ weighted: { targets } });
const conditional = (...targets: object[]): object => ({ conditional: { targets } });

describe('a virtual model', () => {
  test('a virtual model selects a model by weight, and only the provider and the log see its name', async () => {
    await using provider = await llmProvider();
    const models = [
      { ...entry('cheap', provider.address), visibility: 'internal' },
      entry('dear-*', provider.address, { model: 'the-dear-one' }),
    ];
    const routing = weighted(
      { model: 'cheap', weight: 3 },
      { model: 'dear-1' },
      { model: 'dear-2', weight: 0 },
    );
    await using served = await modelsGateway(models, { virtualModels: [{ name: 'any', routing }] });
    const asked = { ...CHAT, model: 'any' };
    for (let count = 0; count < 80; count += 1) expect((await chat(served, asked)).status).toBe(200);
    const names = provider.received.map((_, index) => bodyOf(provider, index)['model']);
    const cheap = names.filter((name) => name === 'cheap').length;
    expect(names.filter((name) => name === 'the-dear-one')).toHaveLength(80 - cheap);
    // 60 are expected; 35 or 79 happen once in a billion runs.
    expect(cheap).toBeGreaterThan(35);
    expect(cheap).toBeLessThan(79);
    expect((await served.accessLine(1))['gen_ai.request.model']).toBe('any');
    expect((await chat(served, { ...CHAT, model: 'cheap' })).status).toBe(404);
    const list = JSON.parse((await send(`${served.url}/v1/models`)).text) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(['dear-*', 'any']);
  });

  test('a virtual model selects the first model whose condition is true; a failing condition is false', async () => {
    await using provider = await llmProvider();
    const routing = conditional(
      { model: 'large', when: 'llmRequest.max_tokens > 100' },
      { model: 'team', when: 'request.headers["x-team"] == "a"' },
      { model: 'small', when: 'llmRequest.model == "smart"' },
    );
    const models = [entry('*', provider.address)];
    const virtualModels = [
      { name: 'smart', routing },
      { name: 'never', routing: conditional({ model: 'x', when: 'false' }) },
    ];
    await using served = await modelsGateway(models, { virtualModels });
    const asked = { ...CHAT, model: 'smart' };
    await chat(served, { ...asked, max_tokens: 500 });
    await chat(served, asked, { 'x-team': 'a' });
    await chat(served, asked);
    expect([0, 1, 2].map((index) => bodyOf(provider, index)['model'])).toEqual(['large', 'team', 'small']);
    const refused = await chat(served, { ...CHAT, model: 'never' });
    expect(refused.status).toBe(400);
    expect(errorOf(refused).code).toBe('virtual_model_no_matching_target');
  });

  test('a request with a member that differs only in case from one that a condition reads is 400', async () => {
    await using provider = await llmProvider();
    const routing = conditional(
      { model: 'large', when: 'has(llmRequest.metadata.tier) && llmRequest.metadata.tier == "gold"' },
      { model: 'small' },
    );
    await using served = await modelsGateway([entry('*', provider.address)], {
      virtualModels: [{ name: 'smart', routing }],
    });
    const ask = (metadata: object) => chat(served, { ...CHAT, model: 'smart', metadata });
    expect((await ask({ tier: 'gold' })).status).toBe(200);
    expect((await ask({ Other: 1 })).status).toBe(200);
    expect(errorOf(await ask({ Tier: 'gold' })).message).toContain(
      'the member "Tier" differs from "tier" in case only',
    );
    expect(provider.received.map((_, index) => bodyOf(provider, index)['model'])).toEqual(['large', 'small']);
  });

  test('a virtual model with a pattern takes every matching name, and its targets keep what the pattern matched', async () => {
    await using provider = await llmProvider();
    const models = [
      { ...entry('own/*', provider.address, { model: '*' }), visibility: 'internal' },
      { ...entry('fixed/*', provider.address, { model: 'the-fixed-one' }), visibility: 'internal' },
    ];
    const failover = (model: string): object => ({ failover: { targets: [{ model }] } });
    const virtualModels = [
      { name: '*', routing: failover('own/*') },
      { name: 'team-*', routing: weighted({ model: 'own/big-*' }) },
      { name: 'team-a', routing: conditional({ model: 'fixed/*' }) },
    ];
    await using served = await modelsGateway(models, { virtualModels });
    for (const model of ['any', 'team-b', 'team-a', 'own/any']) await chat(served, { ...CHAT, model });
    expect([0, 1, 2, 3].map((index) => bodyOf(provider, index)['model'])).toEqual([
      ...['any', 'big-b', 'the-fixed-one', 'own/any'],
    ]);
    const list = JSON.parse((await send(`${served.url}/v1/models`)).text) as { data: { id: string }[] };
    expect(list.data.map(({ id }) => id)).toEqual(['team-a', 'team-*', '*']);
  });

  test('the next target of a pattern gets the name of the client, too', async () => {
    await using failing = await llmProvider((_, response) => response.writeHead(500).end());
    await using provider = await llmProvider();
    const models = [
      { ...entry('a/*', failing.address, { model: '*' }), visibility: 'internal' },
      { ...entry('b/*', provider.address, { model: '*' }), visibility: 'internal' },
    ];
    const targets = [{ model: 'a/*' }, { model: 'b/*', priority: 1 }];
    await using served = await modelsGateway(models, {
      virtualModels: [{ name: '*', routing: { failover: { targets } } }],
    });
    expect((await chat(served, { ...CHAT, model: 'any' })).status).toBe(200);
    expect([failing, provider].map((each) => bodyOf(each, 0)['model'])).toEqual(['any', 'any']);
  });

  test.each<[string, object[], string]>([
    ['two wildcards', [{ name: '*v*', routing: weighted({ model: 'x' }) }], 'may only appear once'],
    [
      'a pattern that hides a model',
      [{ name: '*', routing: weighted({ model: 'x' }) }],
      'takes the calls of the model `x`',
    ],
    [
      'a target that nobody answers',
      [{ name: 'v', routing: weighted({ model: 'y' }) }],
      'does not match any entry',
    ],
    [
      'two ways',
      [{ name: 'v', routing: { ...weighted({ model: 'x' }), ...conditional({ model: 'x' }) } }],
      'exactly one',
    ],
    ['no way', [{ name: 'v', routing: {} }], 'exactly one'],
    [
      'an early target without a condition',
      [{ name: 'v', routing: conditional({ model: 'x' }, { model: 'x', when: 'true' }) }],
      'to be the last',
    ],
    ['only weights of zero', [{ name: 'v', routing: weighted({ model: 'x', weight: 0 }) }], 'greater than 0'],
    [
      'one name twice',
      [
        { name: 'v', routing: weighted({ model: 'x' }) },
        { name: 'v', routing: weighted({ model: 'x' }) },
      ],
      'two virtual models',
    ],
  ])('a virtual model configuration with %s is an error', async (_, virtualModels, message) => {
    await expect(modelsGateway([{ name: 'x', provider: 'echo' }], { virtualModels })).rejects.toThrow(
      message,
    );
  });
});
