import { once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { batchGateway, counted, get, RESULTS, result } from '../../kit/batches.ts';
import { answering, llmProvider } from '../../kit/llm-provider.ts';

describe('results of a batch of the Messages API', () => {
  const lines = [
    result({ input_tokens: 10, output_tokens: 5, cache_read_input_tokens: 20 }),
    result({ input_tokens: 1, output_tokens: 1 }, 'claude-b'),
    result({ input_tokens: 3, output_tokens: 2 }, 'claude-c'),
    `${JSON.stringify({ custom_id: 'e', result: { type: 'errored', error: { type: 'x' } } })}\n`,
    `${JSON.stringify({ custom_id: 'f', result: { type: 'expired' } })}\n`,
  ];

  /** A provider that sends these texts or bytes one after the other. */
  const sending = (parts: readonly (string | Buffer)[]) =>
    llmProvider((_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-jsonl' });
      for (const part of parts) response.write(part);
      response.end();
    });

  test('are summed over three models, each at its own price, whatever chunks they come in', async () => {
    const bytes = Buffer.from(lines.join(''));
    const torn = [...bytes].map((byte) => Buffer.from([byte]));
    await using provider = await sending(torn);
    await using gate = await batchGateway(provider, { model: { provider: 'anthropic' } });
    expect((await get(gate, RESULTS)).text).toBe(bytes.toString());
    await get(gate, RESULTS);
    const found = await counted(gate, 2);
    expect(found).toHaveLength(1);
    // 10 + 5 of `claude-a` at 0.0005, its 20 from the cache at 0.00005; 2 of `claude-b` at 0.001; `claude-c` has no price.
    expect(found[0]).toMatchObject({
      'gen_ai.request.model': 'claude-a, claude-b, claude-c',
      'gen_ai.usage.input_tokens': '34',
      'gen_ai.usage.cache_read.input_tokens': '20',
      'gen_ai.usage.output_tokens': '8',
      'gw.ai.usage.cost.total': '0.0105',
      'gw.ai.usage.cost.problem': 'no prices for anthropic claude-c',
    });
  });

  test("do not have the provider's key, whatever chunks it comes in", async () => {
    const apiKey = 'sk-provider-of-the-gateway';
    const line = result({ input_tokens: 3, output_tokens: 4 }, 'claude-a', { note: `for ${apiKey}.` });
    const at = line.indexOf(apiKey);
    for (const cut of [at, at + 9, at + 21]) {
      await using provider = await sending([
        lines[0] ?? '',
        line.slice(0, cut),
        line.slice(cut),
        lines[1] ?? '',
      ]);
      const params = { baseUrl: `http://${provider.address}/v1`, apiKey };
      await using gate = await batchGateway(provider, { model: { provider: 'anthropic', params } });
      const { text } = await get(gate, RESULTS);
      expect(text).not.toMatch(/sk-provider|the-gateway/);
      expect(text).toBe(`${lines[0]}${line.replace(apiKey, '<redacted>****************')}${lines[1]}`);
      expect((await counted(gate, 1))[0]).toMatchObject({ 'gen_ai.usage.output_tokens': '10' });
    }
  });

  test('lines of nonsense count nothing, and the others do', async () => {
    const nonsense = [
      '\n',
      'null\n',
      '[]\n',
      '{"custom_id":\n',
      result(null),
      result('5'),
      result({ input_tokens: '5', output_tokens: -1 }),
      result({ input_tokens: 0.5, output_tokens: 1e300 }, 7),
      result({ input_tokens: 2 ** 41 }),
      result({ input_tokens: 7, output_tokens: 7 }, 'claude-a', { type: 'errored' }),
      `{"custom_id":"x","result":${'['.repeat(5000)}${']'.repeat(5000)}}\n`,
    ];
    await using provider = await sending([...nonsense, result({ input_tokens: 3, output_tokens: 4 })]);
    await using gate = await batchGateway(provider, { model: { provider: 'anthropic' } });
    expect((await get(gate, RESULTS)).status).toBe(200);
    const [line] = await counted(gate, 1);
    expect(line).toMatchObject({
      'gen_ai.request.model': 'claude-a',
      'gen_ai.usage.input_tokens': '3',
      'gen_ai.usage.output_tokens': '4',
      'gw.ai.usage.estimated': '4 lines of the batch were not read: too long, or not the result of a request',
    });
  });

  test('pass unchanged, without waiting for their end, and lines over the limit are skipped', async () => {
    const limits = { batchLineBytes: 1000 };
    const { promise: isRead, resolve } = Promise.withResolvers<void>();
    await using provider = await llmProvider(async (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-jsonl' });
      response.write(result({ input_tokens: 3, output_tokens: 4 }));
      await isRead;
      // Held back, these would exceed every limit of a test.
      for (let part = 0; part < 512; part += 1) {
        if (!response.write('x'.repeat(64 * 1024))) await once(response, 'drain');
      }
      response.end(`\n${result({ input_tokens: 1, output_tokens: 1 })}`);
    });
    await using gate = await batchGateway(provider, {
      model: { provider: 'anthropic' },
      options: { limits },
    });
    const reply = await fetch(gate.url + RESULTS);
    let size = 0;
    for await (const chunk of reply.body as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      resolve();
    }
    expect(size).toBeGreaterThan(512 * 64 * 1024);
    const [line] = await counted(gate, 1);
    expect(line).toMatchObject({ 'gen_ai.usage.input_tokens': '4', 'gen_ai.usage.output_tokens': '5' });
    expect(line?.['gw.ai.usage.estimated']).toMatch(/^1 lines of the batch were not read/);
  });

  test('of 100 MB are never held', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const LINES = 20;
    const line = result({ input_tokens: 1, output_tokens: 1 });
    const padded = `${line.slice(0, -2)},"x":"${'x'.repeat(50_000)}"}\n`;
    await using provider = await llmProvider(async (_, response) => {
      response.writeHead(200, { 'content-type': 'application/x-jsonl' });
      for (let part = 0; part < 100; part += 1)
        if (!response.write(padded.repeat(LINES))) await once(response, 'drain');
      response.end();
    });
    await using gate = await batchGateway(provider, { model: { provider: 'anthropic' } });
    const reply = await fetch(gate.url + RESULTS);
    let size = 0;
    // What was held would be in all samples after it; buffers on their way are not.
    let least = Number.POSITIVE_INFINITY;
    let measured = 0;
    const used = (): number => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = used();
    for await (const chunk of reply.body as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size - measured < 10_000_000) continue;
      measured = size;
      if (size > 50_000_000) least = Math.min(least, used() - before);
    }
    expect(size).toBe(100 * LINES * Buffer.byteLength(padded));
    expect(least).toBeLessThan(20_000_000);
    expect((await counted(gate, 1))[0]).toMatchObject({ 'gen_ai.usage.input_tokens': String(100 * LINES) });
  });

  test('that a client has not read to the end count as far as they came, and the rest later', async () => {
    const { promise: isAborted, resolve } = Promise.withResolvers<void>();
    let turn = 0;
    await using provider = await llmProvider(async (_, response) => {
      turn += 1;
      response.writeHead(200, { 'content-type': 'application/x-jsonl' });
      response.write(result({ input_tokens: 3, output_tokens: 4 }));
      if (turn === 1) await isAborted;
      response.end(result({ input_tokens: 10, output_tokens: 10 }));
    });
    await using gate = await batchGateway(provider, { model: { provider: 'anthropic' } });
    const aborting = new AbortController();
    const reply = await fetch(gate.url + RESULTS, { signal: aborting.signal });
    await reply.body?.getReader().read();
    aborting.abort();
    await gate.accessLine(1);
    resolve();
    await get(gate, RESULTS);
    const found = await counted(gate, 2);
    expect(found.map((line) => line['gen_ai.usage.input_tokens'])).toEqual(['3', '10']);
  });

  test('are asked for as a whole, and an error counts nothing', async () => {
    await using provider = await llmProvider(answering(lines.join(''), 404));
    await using gate = await batchGateway(provider, { model: { provider: 'anthropic' } });
    expect((await get(gate, RESULTS, { range: 'bytes=0-10' })).status).toBe(404);
    expect(provider.received[0]?.headers).not.toHaveProperty('range');
    expect(await counted(gate, 1)).toEqual([]);
  });
});
