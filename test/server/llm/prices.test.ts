import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { callOf, WIRE } from '../../kit/llm-formats.ts';
import { EVERY_FORMAT, llmGateway, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import { realtimeClient, realtimeProvider } from '../../kit/realtime.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

/** USD per million tokens. */
const RATES = {
  plain: { rates: { input: '0.15', output: '0.6' } },
  cached: { rates: { input: '2.5', output: '10', cacheRead: '1.25' } },
  full: {
    rates: {
      input: '3',
      output: '15',
      cacheRead: '0.3',
      cacheWrite: '3.75',
      cacheWrite1h: '6',
      reasoning: '20',
      inputAudio: '40',
      outputAudio: '80',
    },
  },
  tiered: {
    rates: { input: '1.25', output: '10', cacheRead: '0.125' },
    tiers: [{ contextOver: 200_000, rates: { input: '2.5', output: '15', cacheRead: '0.25' } }],
  },
  tiny: { rates: { input: '0.000001', output: '0.123456' } },
};

const CATALOG = { providers: { openai: { models: RATES } } };

interface Row {
  readonly format: keyof typeof WIRE | 'realtime';
  readonly model: string;
  readonly usage: Record<string, unknown>;
  readonly total: string;
}

const ROWS: readonly Row[] = readFileSync(new URL('prices.txt', import.meta.url), 'utf8')
  .split('\n')
  .flatMap((line): Row[] => {
    const [, format, model, usage, total] = /^(\w+) (\w+) (\{.*\}) ([\d.]+)$/.exec(line) ?? [];
    if (format === undefined) return [];
    return [
      {
        format: format as Row['format'],
        model: String(model),
        usage: JSON.parse(String(usage)),
        total: String(total),
      },
    ];
  });

describe('prices of calls', () => {
  test.each(Object.keys(WIRE) as (keyof typeof WIRE)[])(
    'the price of %s calls is exact, for bodies and for streams',
    async (format) => {
      const rows = ROWS.filter((row) => row.format === format);
      expect(rows.length).toBeGreaterThanOrEqual(20);
      let answer: { type: string; text: string } = { type: '', text: '' };
      await using provider = await llmProvider((_, response) =>
        response.writeHead(200, { 'content-type': answer.type }).end(answer.text),
      );
      await using served = await llmGateway(provider, {
        model: { provider: EVERY_FORMAT },
        more: { config: { modelCatalog: [{ inline: CATALOG }] } },
      });
      const { body, stream } = WIRE[format];
      let calls = 0;
      for (const { model, usage, total } of rows) {
        const answered = { model, text: 'Hello there.', usage };
        const answers = [
          ...(body === undefined ? [] : [{ type: 'application/json', text: JSON.stringify(body(answered)) }]),
          ...(stream === undefined ? [] : [{ type: 'text/event-stream', text: stream(answered) }]),
        ];
        for (answer of answers) {
          const isStream = answer.type === 'text/event-stream';
          const call = callOf(format, model, isStream);
          await send(served.url + call.path, { method: 'POST', body: call.body });
          calls += 1;
          const line = await served.accessLine(calls);
          const what = `${answer.type} ${model} ${JSON.stringify(usage)}`;
          expect([what, line['gw.ai.usage.cost.total'], line['gw.ai.usage.estimated']]).toEqual([
            what,
            total,
            undefined,
          ]);
        }
      }
    },
  );

  test('the prices of realtime sessions are exact', async () => {
    const rows = ROWS.filter(({ format }) => format === 'realtime');
    expect(rows.length).toBeGreaterThanOrEqual(20);
    await using provider = await realtimeProvider((session, usage) =>
      session.send(`{"type":"response.done","event_id":"e1","response":{"usage":${usage}}}`),
    );
    const entry = { name: '*', provider: 'oaiCompat', params: { baseUrl: provider.baseUrl } };
    await using served = await modelsGateway(
      [entry],
      {},
      { config: { modelCatalog: [{ inline: CATALOG }] } },
    );
    for (const [index, { model, usage, total }] of rows.entries()) {
      await using client = await realtimeClient(`${served.url}/v1/realtime?model=${model}`);
      client.socket.send(JSON.stringify(usage));
      await until(() => client.received.length === 2);
      client.socket.close(1000);
      const line = await served.accessLine(index + 1);
      const what = `${model} ${JSON.stringify(usage)}`;
      expect([what, line['gw.ai.usage.cost.total']]).toEqual([what, total]);
    }
  });
});
