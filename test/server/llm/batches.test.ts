import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { batch, batchGateway, counted, FILE, get, OBJECT, output, USED } from '../../kit/batches.ts';
import { answering, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

// How others have failed to count batches: each status check counted again (BerriAI/litellm#37050, #39980,
// mozilla-ai/otari#290), also at the same time and at two processes; batches that expired or were cancelled counted nothing,
// although they had results (BerriAI/litellm#37156, #37205); one bad line or none at all lost the rest (#37457, #34067);
// cached and reasoning tokens were left out or had no discount (#38341, #37208); a batch was priced like one long prompt
// (#39861), or like another model (#32307); zeros beside the counts hid them (#14884).

describe('a batch of the OpenAI API', () => {
  test('counts once at half its price, however often it is polled, also at the same time', async () => {
    await using provider = await llmProvider(answering(batch()));
    await using gate = await batchGateway(provider);
    await Promise.all(Array.from({ length: 8 }, () => get(gate, OBJECT)));
    for (let poll = 0; poll < 5; poll += 1) expect((await get(gate, OBJECT)).text).toBe(batch());
    const lines = await counted(gate, 13);
    expect(lines).toHaveLength(1);
    // 60 new and 40 cached input tokens, 50 of output: 0.5 × (60 + 4 + 50) / 1000.
    expect(lines[0]).toMatchObject({
      'gen_ai.request.model': 'one',
      'gen_ai.response.model': 'one',
      'gen_ai.usage.input_tokens': '100',
      'gen_ai.usage.cache_read.input_tokens': '40',
      'gen_ai.usage.output_tokens': '50',
      'gen_ai.usage.reasoning_tokens': '20',
      'gw.ai.usage.cost.total': '0.057',
    });
    expect(lines[0]).not.toHaveProperty(['gw.ai.usage.estimated']);
  });

  test.each(['validating', 'in_progress', 'finalizing', 'cancelling', 7, undefined])(
    'counts nothing with the status %s',
    async (status) => {
      let state: unknown = status;
      await using provider = await llmProvider((...call) => answering(batch({ status: state }))(...call));
      await using gate = await batchGateway(provider);
      await get(gate, OBJECT);
      expect(await counted(gate, 1)).toEqual([]);
      state = 'completed';
      await get(gate, OBJECT);
      expect(await counted(gate, 2)).toHaveLength(1);
    },
  );

  test.each(['failed', 'expired', 'cancelled'])('counts what was done before it was %s', async (status) => {
    await using provider = await llmProvider(answering(batch({ status, output_file_id: null })));
    await using gate = await batchGateway(provider);
    for (let turn = 0; turn < 2; turn += 1) {
      expect((await send(`${gate.url}${OBJECT}/cancel`, { method: 'POST' })).status).toBe(200);
      await get(gate, OBJECT);
    }
    expect(await counted(gate, 4)).toHaveLength(1);
  });

  test('is not counted from a list, nor from another object', async () => {
    let text = JSON.stringify({ object: 'list', data: [JSON.parse(batch())] });
    await using provider = await llmProvider((...call) => answering(text)(...call));
    await using gate = await batchGateway(provider);
    await get(gate, '/v1/batches');
    await get(gate, OBJECT);
    text = batch({ object: 'response' });
    await get(gate, OBJECT);
    text = 'no JSON';
    expect((await get(gate, OBJECT)).text).toBe('no JSON');
    expect(await counted(gate, 4)).toEqual([]);
  });

  test('has its counts also beside those of chat completions, which are zeros', async () => {
    const usage = { ...USED, prompt_tokens: 0, completion_tokens: 0, prompt_tokens_details: null };
    await using provider = await llmProvider(answering(batch({ usage })));
    await using gate = await batchGateway(provider);
    await get(gate, OBJECT);
    expect((await counted(gate, 1))[0]).toMatchObject({
      'gen_ai.usage.input_tokens': '100',
      'gen_ai.usage.output_tokens': '50',
    });
  });

  test.each([
    ['the average of its requests is short', 10, '0.55'],
    ['that is long', 1, '4.55'],
  ])('has the price of long inputs only if %s', async (_, completed, cost) => {
    const usage = { input_tokens: 1001, output_tokens: 99 };
    const counts = { total: completed, completed, failed: 0 };
    await using provider = await llmProvider(
      answering(batch({ model: 'long', usage, request_counts: counts })),
    );
    await using gate = await batchGateway(provider);
    await get(gate, OBJECT);
    expect(Number((await counted(gate, 1))[0]?.['gw.ai.usage.cost.total'])).toBeCloseTo(Number(cost), 1);
  });

  test('has the rates of `batch` in a catalog, and half of the others', async () => {
    const usage = { input_tokens: 10, output_tokens: 10 };
    await using provider = await llmProvider(answering(batch({ model: 'two', usage })));
    await using gate = await batchGateway(provider);
    await get(gate, OBJECT);
    expect((await counted(gate, 1))[0]?.['gw.ai.usage.cost.total']).toBe('0.05');
  });

  test('without a price is counted and has no cost, not that of the model that allows the path', async () => {
    await using provider = await llmProvider(answering(batch({ model: 'unknown' })));
    await using gate = await batchGateway(provider, { model: { name: 'one' } });
    await get(gate, OBJECT);
    const [line] = await counted(gate, 1);
    expect(line).toMatchObject({
      'gen_ai.usage.input_tokens': '100',
      'gw.ai.usage.cost.problem': 'no prices for openai unknown',
    });
    expect(line).not.toHaveProperty(['gw.ai.usage.cost.total']);
  });

  test.each<[string, readonly string[]]>([
    ['after the batch', [OBJECT, FILE, FILE]],
    ['before the batch', [FILE, OBJECT, OBJECT]],
  ])('and the file of its results count once, with the file retrieved %s', async (_, paths) => {
    const file =
      output({ input_tokens: 60, output_tokens: 30 }) + output({ input_tokens: 40, output_tokens: 20 });
    await using provider = await llmProvider((request, ...rest) =>
      answering(request.url === FILE ? file : batch({ usage: { input_tokens: 100, output_tokens: 50 } }))(
        request,
        ...rest,
      ),
    );
    await using gate = await batchGateway(provider);
    for (const path of paths) await get(gate, path);
    const lines = await counted(gate, 3);
    expect(lines.map((line) => line['gw.ai.usage.cost.total'])).toEqual(['0.075']);
  });

  test('of a server that reports no usage counts by the file of its results', async () => {
    const file = [
      output({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }),
      // Of a request that has failed.
      `${JSON.stringify({ custom_id: 'b', response: null, error: { code: 'x' } })}\n`,
      output(undefined),
      // Without an end of the line.
      output({ prompt_tokens: 1, total_tokens: 1 }, 'two').trim(),
    ].join('');
    await using provider = await llmProvider((request, ...rest) =>
      answering(request.url === FILE ? file : batch({ usage: null }))(request, ...rest),
    );
    await using gate = await batchGateway(provider);
    const openai = new OpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'k', maxRetries: 0 });
    expect((await openai.batches.retrieve('batch_1')).output_file_id).toBe('file-out');
    expect(await (await openai.files.content('file-out')).text()).toBe(file);
    await get(gate, `${FILE}?x=1`);
    const lines = await counted(gate, 3);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      'gen_ai.request.model': 'one, two',
      'gen_ai.usage.input_tokens': '11',
      'gen_ai.usage.output_tokens': '5',
      'gw.ai.usage.cost.total': '0.0085',
    });
  });

  test.each([
    ['requests of a batch', `${JSON.stringify({ custom_id: 'a', body: { usage: { input_tokens: 9 } } })}\n`],
    ['something else', `text\n${output({ input_tokens: 9, output_tokens: 9 })}`],
    ['nothing', ''],
  ])('is not counted from a file with %s', async (_, file) => {
    await using provider = await llmProvider(answering(file));
    await using gate = await batchGateway(provider);
    expect((await get(gate, FILE)).text).toBe(file);
    expect(await counted(gate, 1)).toEqual([]);
    expect(gate.accessLog[0]).not.toContain('estimated');
  });
});
