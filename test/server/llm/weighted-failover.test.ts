import { expect, test } from 'vitest';
import { answering, CHAT, chat, completion, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import type { Answer } from '../../kit/upstream.ts';

const entry = (name: string, { address }: { address: string }): object => ({
  name,
  provider: 'oaiCompat',
  params: { baseUrl: `http://${address}/v1` },
});

test('healthy targets of the same priority are chosen by weight; others take over if they fail', async () => {
  let isBroken = false;
  const answer: Answer = (...call) =>
    isBroken ? answering('{}', 500)(...call) : answering(completion('Hello.'))(...call);
  await using large = await llmProvider(answer);
  await using small = await llmProvider(answer);
  await using spare = await llmProvider();
  const targets = [
    { model: 'large', weight: 9 },
    { model: 'small', weight: 1 },
    { model: 'spare', weight: 0 },
  ];
  const models = [entry('large', large), entry('small', small), entry('spare', spare)];
  const virtualModels = [{ name: 'safe', routing: { failover: { targets } } }];
  await using served = await modelsGateway(models, { virtualModels });
  const asked = { ...CHAT, model: 'safe' };
  for (let count = 0; count < 100; count += 1) expect((await chat(served, asked)).status).toBe(200);
  // 90 are expected; fewer than 60 or 100 of 100 happen once in ten thousand runs or less, and by latency half would be.
  expect(large.received.length).toBeGreaterThan(60);
  expect(small.received.length).toBe(100 - large.received.length);
  expect(spare.received.length).toBe(0);
  isBroken = true;
  expect((await chat(served, asked)).status).toBe(200);
  expect(spare.received.length).toBe(1);
});
