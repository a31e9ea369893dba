import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { budgetGateway, spentIn } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { CHAT, chat, completion, llmProvider } from '../../kit/llm-provider.ts';
import { realtimeClient, realtimeProvider } from '../../kit/realtime.ts';
import { until } from '../../kit/until.ts';

const SMALL = { ...CHAT, max_tokens: 20 };

describe('a call that runs', () => {
  test('is charged with the prices with which it began, although a reload has changed them', async () => {
    await using folder = await temporaryFolder();
    const answers: (() => void)[] = [];
    await using provider = await llmProvider((_, response) => {
      answers.push(() =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(completion('Hi')),
      );
    });
    const budgets = [{ name: 'all', limit: '10USD/total' }];
    await using gate = await budgetGateway(
      provider,
      folder.path,
      { budgets },
      { options: { live: 'asked' } },
    );
    const call = chat(gate, SMALL);
    await until(() => answers.length === 1);
    const file = join(folder.path, 'test.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('"1000"', '"5000"'));
    await gate.live.reload();
    answers[0]?.();
    await call;
    expect(await spentIn(gate)).toEqual(['all: 0.019 USD']);
    const later = chat(gate, SMALL);
    await until(() => answers.length === 2);
    answers[1]?.();
    await later;
    expect(await spentIn(gate)).toEqual(['all: 0.114 USD']);
  });

  test('is charged although its budget is removed by a reload', async () => {
    await using folder = await temporaryFolder();
    const answers: (() => void)[] = [];
    await using provider = await llmProvider((_, response) => {
      answers.push(() =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(completion('Hi')),
      );
    });
    const budgets = [{ name: 'all', limit: '100tokens/total' }];
    await using gate = await budgetGateway(
      provider,
      folder.path,
      { budgets },
      { options: { live: 'asked' } },
    );
    const call = chat(gate, SMALL);
    await until(() => answers.length === 1);
    const file = join(folder.path, 'test.yaml');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace(/"policies":\{"budgets":\[.*?\]\}/, '"policies":{}'),
    );
    await gate.live.reload();
    answers[0]?.();
    expect((await call).status).toBe(200);
    expect(await spentIn(gate)).toEqual(['all: 19 tokens']);
  });

  test('of the Realtime API reserves 1000 tokens, and is charged after each response', async () => {
    await using folder = await temporaryFolder();
    const usage = { input_tokens: 400, output_tokens: 300, total_tokens: 700 };
    await using provider = await realtimeProvider((session) =>
      session.send(JSON.stringify({ type: 'response.done', response: { usage } })),
    );
    const budgets = [{ name: 'all', limit: '1500tokens/total' }];
    const model = { params: { baseUrl: provider.baseUrl } };
    await using gate = await budgetGateway({ address: '' }, folder.path, { budgets }, { model });
    const url = `${gate.url}/v1/realtime?model=acme-mini`;
    {
      await using client = await realtimeClient(url);
      await expect(realtimeClient(url)).rejects.toThrow(/^429 .*insufficient_quota/s);
      client.socket.send('1');
      await until(() => client.received.length === 2);
      await until(async () => (await spentIn(gate))[0] === 'all: 700 tokens');
      client.socket.close(1000);
      await gate.accessLine(2);
    }
    expect(await spentIn(gate)).toEqual(['all: 700 tokens']);
    await expect(realtimeClient(url)).rejects.toThrow(/800 tokens left/);
  });
});
