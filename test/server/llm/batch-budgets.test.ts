import { describe, expect, test } from 'vitest';
import {
  BATCH_PRICES,
  batch,
  batchGateway,
  counted,
  FILE,
  get,
  OBJECT,
  output,
  PASSTHROUGH,
  RESULTS,
} from '../../kit/batches.ts';
import { budgetGateway, spentIn } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { answering, errorOf, guardrail, llmProvider, webhook } from '../../kit/llm-provider.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { freshly, workerGateway } from '../../kit/workers.ts';
import { recordingGateway } from '../record/recorded.ts';

describe('rights and budgets', () => {
  const policies = (limit: string) => ({ budgets: [{ name: 'all', limit }] });
  const ENTRY = { name: 'one', provider: 'oaiCompat', passthrough: PASSTHROUGH };
  const config = { modelCatalog: [{ inline: BATCH_PRICES }] };
  const create = (gate: { url: string }) =>
    send(`${gate.url}/v1/batches`, { method: 'POST', body: '{"input_file_id":"file-in"}' });

  test.each([
    ['tokens', '100tokens/day', 'all: 150 tokens'],
    ['USD', '0.05USD/day', 'all: 0.057 USD'],
  ])(
    'a budget of %s that a batch has used up refuses further batches, not their results',
    async (_, limit, spent) => {
      await using folder = await temporaryFolder();
      await using provider = await llmProvider((request, ...rest) =>
        answering(request.method === 'POST' ? batch({ status: 'validating', usage: null }) : batch())(
          request,
          ...rest,
        ),
      );
      await using gate = await budgetGateway(provider, folder.path, policies(limit), {
        model: ENTRY,
        config,
      });
      for (let poll = 0; poll < 3; poll += 1) expect((await get(gate, OBJECT)).status).toBe(200);
      expect(await spentIn(gate)).toEqual([spent]);
      const refused = await create(gate);
      expect([refused.status, errorOf(refused).code]).toEqual([429, 'insufficient_quota']);
      expect(provider.received.map(({ method }) => method)).not.toContain('POST');
      for (const path of [OBJECT, FILE]) expect((await get(gate, path)).status).toBe(200);
      expect((await send(`${gate.url}${OBJECT}/cancel`, { method: 'POST' })).status).toBe(200);
      expect(await spentIn(gate)).toEqual([spent]);
    },
  );

  test('a budget of USD lets files and batches pass whose models the call does not name, until it is used up', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider((request, ...rest) =>
      answering(request.method === 'POST' ? '{"id":"x"}' : batch())(request, ...rest),
    );
    const passthrough = [...PASSTHROUGH, { path: '/v1/files', methods: ['POST'] }];
    await using gate = await budgetGateway(provider, folder.path, policies('0.05USD/day'), {
      model: { ...ENTRY, name: '*', passthrough },
      config,
    });
    const upload = () => send(`${gate.url}/v1/files`, { method: 'POST', body: '{"custom_id":"a"}' });
    expect([(await upload()).status, (await create(gate)).status]).toEqual([200, 200]);
    expect(await spentIn(gate)).toEqual([]);
    await get(gate, OBJECT);
    expect([(await upload()).status, (await create(gate)).status]).toEqual([429, 429]);
    expect(await spentIn(gate)).toEqual(['all: 0.057 USD']);
  });

  test('limits of tokens are those of other calls', async () => {
    await using provider = await llmProvider(answering(batch()));
    await using gate = await batchGateway(provider, {
      llm: { policies: { localRateLimit: [{ maxTokens: 100, fillInterval: '24h', type: 'tokens' }] } },
    });
    await get(gate, OBJECT);
    expect(await counted(gate, 1)).toHaveLength(1);
    expect((await create(gate)).status).toBe(200);
  });

  test('results are charged to budgets, too', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider(answering(output({ input_tokens: 6, output_tokens: 3 })));
    const gate = await budgetGateway(provider, folder.path, policies('100tokens/day'), {
      model: ENTRY,
      config,
    });
    for (let turn = 0; turn < 2; turn += 1) await get(gate, FILE);
    expect(await spentIn(gate)).toEqual(['all: 9 tokens']);
    await gate.close();
  });

  test('a key that may not use the model gets no batch and is charged nothing', async () => {
    await using provider = await llmProvider(answering(batch()));
    const keys = [{ key: 'k', allowedModels: ['other'] }];
    await using gate = await batchGateway(provider, {
      model: { name: 'one' },
      llm: { policies: { apiKey: { mode: 'strict', keys } } },
    });
    for (const path of [OBJECT, FILE, RESULTS]) {
      expect((await get(gate, path)).status).toBe(401);
      expect(errorOf(await get(gate, path, { authorization: 'Bearer k' })).code).toBe('model_not_allowed');
    }
    expect(provider.received).toEqual([]);
    expect(await counted(gate, 6)).toEqual([]);
  });

  test('guardrails check a batch that is counted, and `opaque` counts none', async () => {
    await using provider = await llmProvider(answering(batch()));
    await using guard = await guardrail(() => ({ pass: {} }));
    await using gate = await batchGateway(provider, {
      model: { guardrails: { response: [webhook(guard)] } },
    });
    expect((await get(gate, OBJECT)).text).toBe(batch());
    expect(await counted(gate, 1)).toHaveLength(1);
    await using opaque = await batchGateway(provider, { model: { passthrough: 'opaque' } });
    for (const path of [OBJECT, FILE]) await get(opaque, path);
    expect(await counted(opaque, 2)).toEqual([]);
  });
});

test('usage and metrics show a batch with its model, for the key that has retrieved it', async () => {
  await using provider = await llmProvider(answering(batch()));
  const keys = [
    { key: 'a', metadata: { name: 'ann' } },
    { key: 'b', metadata: { name: 'bob' } },
  ];
  await using recording = await recordingGateway({
    config: { modelCatalog: [{ inline: BATCH_PRICES }] },
    more: {
      llm: {
        port: 0,
        models: [
          {
            name: '*',
            provider: 'oaiCompat',
            params: { baseUrl: `http://${provider.address}/v1`, apiKey: 'sk-provider' },
            passthrough: PASSTHROUGH,
          },
        ],
        policies: { apiKey: { mode: 'strict', keys } },
      },
    },
  });
  for (const key of ['b', 'a', 'b']) await get(recording.gate, OBJECT, { authorization: `Bearer ${key}` });
  await recording.records('', 3);
  const { rows } = await recording.get('/api/usage?by=key,model');
  expect(rows).toContainEqual({
    group: { key: 'bob', model: 'one' },
    requests: 1,
    errors: 0,
    refused: 0,
    inputTokens: 100,
    outputTokens: 50,
    cachedInputTokens: 40,
    costUsd: '0.057',
  });
  expect(rows).toHaveLength(3);
  const text = await recording.gate.running.metrics.render();
  expect(text).toMatch(
    /^gw_gen_ai_client_token_usage_sum\{gen_ai_token_type="output",.*gen_ai_request_model="one".*\} 50$/m,
  );
  expect(text.match(/^gw_gen_ai_client_cost_usd_total\{.*$/gm)).toEqual([
    expect.stringMatching(/gen_ai_request_model="one".*\} 0\.057$/),
  ]);
});

describe.skipIf(REDIS_SERVER === undefined)('with config.shared', () => {
  test('two gateways count a batch once, and count it without the server', async () => {
    const file = output({ input_tokens: 100, output_tokens: 50 });
    await using provider = await llmProvider((request, ...rest) =>
      answering(request.url?.endsWith('/content') === true ? file : batch({ id: 'x', output_file_id: null }))(
        request,
        ...rest,
      ),
    );
    const redis = await redisServer();
    const config = { shared: { redis: redis.url } };
    await using one = await batchGateway(provider, { config });
    await using two = await batchGateway(provider, { config });
    // Both have reached the server.
    await until(async () => String(await redis.client.client('LIST')).split(' name=agctl ').length === 3);
    await Promise.all([one, two, one, two].map((gate) => get(gate, OBJECT)));
    for (const gate of [one, two, two]) expect((await get(gate, FILE)).text).toBe(file);
    const [ofOne, ofTwo] = [await counted(one, 3), await counted(two, 4)];
    // The batch, and results that do not belong to it.
    expect([...ofOne, ...ofTwo]).toHaveLength(2);
    const [key] = await redis.client.keys('*batch*');
    expect(await redis.client.pttl(key as string)).toBeGreaterThan(80 * 24 * 3_600_000);
    await redis[Symbol.asyncDispose]();
    await get(one, '/v1/batches/batch_2');
    expect(await counted(one, 4)).toHaveLength(ofOne.length + 1);
  });
});

test('the workers of a gateway count a batch once', async () => {
  await using provider = await llmProvider(answering(batch()));
  await using gate = await workerGateway({
    config: { adminAddr: 'off', workers: 2, connectionTerminationDeadline: '100ms' },
    llm: {
      port: 0,
      models: [
        {
          name: '*',
          provider: 'oaiCompat',
          params: { baseUrl: `http://${provider.address}/v1` },
          passthrough: PASSTHROUGH,
        },
      ],
    },
  });
  for (let poll = 0; poll < 6; poll += 1) expect((await freshly(`${gate.url}${OBJECT}`)).text).toBe(batch());
  await until(() => gate.accessLog.length === 6);
  expect(gate.accessLog.filter((line) => line.includes('gen_ai.usage.input_tokens='))).toHaveLength(1);
});
