import { afterEach, describe, expect, test, vi } from 'vitest';
import { budgetGateway, FORMATS, PRICES, spentIn } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import {
  answering,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  errorOf,
  llmProvider,
  modelsGateway,
  streaming,
  USAGE,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import type { Answer } from '../../kit/upstream.ts';

/** May use 21 tokens, and uses 19. */
const SMALL = { ...CHAT, max_tokens: 20 };
const budget = (limit: string, more: object = {}) => ({ budgets: [{ name: 'all', limit, ...more }] });

afterEach(() => void vi.useRealTimers());

describe('budgets of tokens', () => {
  test('calls go on until the budget has less left than the next call may use', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget('50tokens/day'));
    expect((await chat(gate, SMALL)).status).toBe(200);
    expect((await chat(gate, SMALL)).status).toBe(200);
    const refused = await chat(gate, SMALL);
    expect(refused.status).toBe(429);
    expect(errorOf(refused).message).toMatch(
      /^budget `all` \(50tokens\/day\) has 12 tokens left, and this call may use 21 tokens: ask for fewer output tokens, or wait; it resets at \d{4}-\d\d-\d\dT00:00:00Z$/,
    );
    expect(errorOf(refused)).toMatchObject({ type: 'insufficient_quota', code: 'insufficient_quota' });
    expect(provider.received.length).toBe(2);
    expect(await spentIn(gate)).toEqual(['all: 38 tokens']);
    expect((await chat(gate, { ...CHAT, max_tokens: 5 })).status).toBe(200);
    expect(errorOf(await chat(gate, SMALL)).message).toContain('is used up; it resets at');
  });

  test('a refusal says when the window ends, and that a retry is in vain', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-03-04T22:59:30Z') });
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget('10tokens/hour'));
    expect((await chat(gate, SMALL)).headers).toMatchObject({
      'retry-after': '30',
      'x-budget-reset': '2026-03-04T23:00:00Z',
      'x-should-retry': 'false',
    });
  });

  test.each([
    ['hour', '2026-02-28T22:59:59Z', '2026-02-28T23:00:00Z'],
    ['day', '2026-02-28T23:59:59Z', '2026-03-01T00:00:00Z'],
    ['week', '2026-03-01T23:59:59Z', '2026-03-02T00:00:00Z'],
    ['month', '2026-02-28T23:59:59Z', '2026-03-01T00:00:00Z'],
  ])(
    'a budget per %s starts again in UTC, and not when the clock jumps back',
    async (window, before, after) => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.parse(before) });
      await using folder = await temporaryFolder();
      await using provider = await llmProvider();
      await using gate = await budgetGateway(provider, folder.path, budget(`30tokens/${window}`));
      const statuses = async (): Promise<number[]> => [
        (await chat(gate, SMALL)).status,
        (await chat(gate, SMALL)).status,
      ];
      expect(await statuses()).toEqual([200, 429]);
      vi.setSystemTime(Date.parse(after));
      expect(await statuses()).toEqual([200, 429]);
      vi.setSystemTime(Date.parse(before));
      expect(await statuses()).toEqual([429, 429]);
    },
  );

  test('a budget of total never starts again, and survives a restart', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const start = () => budgetGateway(provider, folder.path, budget('30tokens/total'));
    {
      await using gate = await start();
      expect((await chat(gate, SMALL)).status).toBe(200);
    }
    await using gate = await start();
    const refused = await chat(gate, SMALL);
    expect(errorOf(refused).message).toContain('it does not reset');
    expect(refused.headers['retry-after']).toBeUndefined();
  });

  test('open calls reserve what they may use', async () => {
    await using folder = await temporaryFolder();
    const answers: (() => void)[] = [];
    await using provider = await llmProvider((_, response) => {
      answers.push(() =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(completion('Hi')),
      );
    });
    await using gate = await budgetGateway(provider, folder.path, budget('50tokens/day'));
    const first = chat(gate, SMALL);
    const second = chat(gate, SMALL);
    await until(() => answers.length === 2);
    expect((await chat(gate, SMALL)).status).toBe(429);
    for (const answer of answers) answer();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
    expect(await spentIn(gate)).toEqual(['all: 38 tokens']);
  });

  test('a call that a provider refuses costs nothing and releases its reservation', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider(answering('{"error":{"message":"no","type":"x"}}', 400));
    await using gate = await budgetGateway(provider, folder.path, budget('30tokens/day'));
    for (let count = 1; count <= 3; count++) {
      expect((await chat(gate, SMALL)).status).toBe(400);
      await gate.accessLine(count);
    }
    expect(await spentIn(gate)).toEqual([]);
  });

  test('what a target of failover has used before it failed is charged with the answer of the next', async () => {
    await using folder = await temporaryFolder();
    const error = { message: 'no', type: 'server_error' };
    const begun = chunk({ content: 'a'.repeat(400) });
    // The first target: reports tokens, reports none, is a chat that failed, or broke off behind a guardrail.
    const cases: [Answer, stream: boolean, tokens: number][] = [
      [answering(JSON.stringify({ error, usage: USAGE }), 500), false, 19],
      [answering(JSON.stringify({ error }), 500), false, 0],
      [answering(JSON.stringify({ error, usage: USAGE })), false, 19],
      [
        streaming((response) => response.end(`data: ${JSON.stringify({ error, usage: USAGE })}\n\n`)),
        true,
        19,
      ],
      // 2 bytes of prompt, 400 of output.
      [streaming((response) => response.write(begun, () => response.destroy())), true, 101],
    ];
    let failing: Answer = answering('');
    await using first = await llmProvider((...call) => failing(...call));
    await using second = await llmProvider((request, response, received) =>
      (received.body.includes('"stream":true')
        ? streaming((sent) => sent.end(chunk({ content: 'Hi' }) + chunk(undefined, { usage: USAGE }) + DONE))
        : answering(completion('Hi')))(request, response, received),
    );
    const regex = { action: 'reject', rules: [{ pattern: 'SECRET' }] };
    const models = [first, second].map(({ address }, index) => ({
      name: ['first', 'second'][index],
      provider: { custom: { providerOverride: 'openai', formats: FORMATS } },
      params: { baseUrl: `http://${address}/v1`, model: 'acme-mini' },
      guardrails: { response: [{ regex }] },
      health: { eviction: { consecutiveFailures: 100 } },
    }));
    const targets = [
      { model: 'first', priority: 0 },
      { model: 'second', priority: 1 },
    ];
    const budgets = ['9000tokens/day', '10USD/day'].map((limit) => ({
      name: limit.replace('/', '-'),
      limit,
    }));
    await using gate = await modelsGateway(
      models,
      { policies: { budgets }, virtualModels: [{ name: 'safe', routing: { failover: { targets } } }] },
      { config: { database: { url: 'sqlite://./agctl.db' }, modelCatalog: [{ inline: PRICES }] } },
      { folder: folder.path },
    );
    let spent = 0;
    for (const [index, [answer, stream, tokens]] of cases.entries()) {
      failing = answer;
      const { status, text } = await chat(gate, { ...SMALL, model: 'safe', ...(stream && { stream }) });
      expect([index, status, text]).toEqual([index, 200, expect.stringContaining('Hi')]);
      const line = await gate.accessLine(index + 1);
      expect([index, line['gw.ai.failover.tokens'], line['gen_ai.usage.input_tokens']]).toEqual([
        index,
        tokens === 0 ? undefined : String(tokens),
        '12',
      ]);
      spent += 19 + tokens;
      expect(await spentIn(gate)).toEqual([
        `10USD-day: ${spent / 1000} USD`,
        `9000tokens-day: ${spent} tokens`,
      ]);
    }
  });

  test('each value of `key` has the whole amount for itself', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const key = 'request.headers["x-team"]';
    await using gate = await budgetGateway(provider, folder.path, budget('30tokens/day', { key }));
    const by = async (team: string) => (await chat(gate, SMALL, { 'x-team': team })).status;
    expect([await by('red'), await by('red'), await by('blue'), await by('blue')]).toEqual([
      200, 429, 200, 429,
    ]);
    expect(await spentIn(gate)).toEqual(['all blue: 19 tokens', 'all red: 19 tokens']);
    const long = 'x'.repeat(500);
    expect([await by(`${long}1`), await by(`${long}2`), await by(`${long}1`)]).toEqual([200, 200, 429]);
    // Failing does not bypass the budget: those calls share an amount.
    expect([(await chat(gate, SMALL)).status, (await chat(gate, SMALL)).status]).toEqual([200, 429]);
    expect(gate.log.filter((line) => line.includes('the key of a budget fails'))).toHaveLength(1);
  });

  test('budgets of a gateway hold for a route with budgets of its own', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1` };
    const llm = { models: [{ name: '*', provider: 'openAI', params }] };
    const ofGateway = {
      name: { name: 'wide', namespace: 'default' },
      target: { gateway: { gatewayName: 'default', gatewayNamespace: 'default' } },
      phase: 'route',
      policy: { budgets: [{ name: 'gateway', limit: '30tokens/day' }] },
    };
    await using gate = await gateway(
      JSON.stringify({
        config: { adminAddr: 'off', database: { url: 'sqlite://./agctl.db' } },
        gateways: { default: { port: 0 } },
        routes: [{ policies: budget('1000tokens/day'), backends: [{ llm }] }],
        policies: [ofGateway],
      }),
      { folder: folder.path },
    );
    expect((await chat(gate, SMALL)).status).toBe(200);
    expect(errorOf(await chat(gate, SMALL)).message).toContain('`gateway`');
    expect(await spentIn(gate)).toEqual(['all: 19 tokens', 'gateway: 19 tokens']);
  });

  test('a call takes from all of its budgets or from none', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const budgets = [
      { name: 'wide', limit: '1000tokens/day' },
      { name: 'narrow', limit: '30tokens/hour' },
    ];
    await using gate = await budgetGateway(provider, folder.path, { budgets });
    expect((await chat(gate, SMALL)).status).toBe(200);
    expect(errorOf(await chat(gate, SMALL)).message).toContain('`narrow`');
    expect(await spentIn(gate)).toEqual(['narrow: 19 tokens', 'wide: 19 tokens']);
  });

  test('the model list is free', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget('1tokens/day'));
    expect((await send(`${gate.url}/v1/models`)).status).toBe(200);
  });

  test('metrics count calls by budget and outcome', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget('30tokens/day'));
    await chat(gate, SMALL);
    await chat(gate, SMALL);
    const metrics = await gate.running.metrics.render();
    expect(metrics).toContain('gw_budget_calls_total{budget="all",outcome="allowed"} 1');
    expect(metrics).toContain('gw_budget_calls_total{budget="all",outcome="refused"} 1');
  });
});

describe('budgets of money', () => {
  test('calls are charged by the catalog', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget('0.05USD/day'));
    expect([(await chat(gate, SMALL)).status, (await chat(gate, SMALL)).status]).toEqual([200, 200]);
    expect(errorOf(await chat(gate, SMALL)).message).toContain(
      'budget `all` (0.05USD/day) has 0.012 USD left, and this call may use 0.021 USD',
    );
    expect(await spentIn(gate)).toEqual(['all: 0.038 USD']);
  });

  test('a model without a price is refused, or not counted with failOpen', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    const open = { name: 'open', limit: '1USD/day', failureMode: 'failOpen' };
    const closed = { name: 'closed', limit: '1USD/day' };
    const other = { ...SMALL, model: 'unknown' };
    {
      await using gate = await budgetGateway(provider, folder.path, { budgets: [open, closed] });
      const refused = await chat(gate, other);
      expect(refused.status).toBe(403);
      expect(errorOf(refused).message).toBe(
        'budget `closed` does not allow calls that cannot be counted: the price of `unknown` (openai) is unknown: add it to `config.modelCatalog`, or set `failureMode: failOpen` where the budget or the key is configured',
      );
    }
    await using gate = await budgetGateway(provider, folder.path, { budgets: [open] });
    expect((await chat(gate, other)).status).toBe(200);
    expect(await gate.running.metrics.render()).toContain(
      'gw_budget_calls_total{budget="open",outcome="uncounted"} 1',
    );
  });
});

describe('budgets of streams', () => {
  const stream = { ...SMALL, stream: true };

  test('the end of a stream is sent only when the call is charged', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider(
      streaming((response) =>
        response.end(chunk({ content: 'Hello' }) + chunk(undefined, { usage: USAGE }) + DONE),
      ),
    );
    await using gate = await budgetGateway(provider, folder.path, budget('50tokens/day'));
    const { text } = await chat(gate, stream);
    expect(text).toContain('[DONE]');
    expect(await spentIn(gate)).toEqual(['all: 19 tokens']);
  });

  test('a stream that is cut before its usage event is charged by an estimate', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider(
      streaming((response) => {
        response.write(chunk({ content: 'a'.repeat(400) }));
        setImmediate(() => response.destroy());
      }),
    );
    await using gate = await budgetGateway(provider, folder.path, budget('500tokens/day'));
    await chat(gate, stream);
    await gate.accessLine(1);
    // 2 bytes of prompt, 400 of output.
    expect(await spentIn(gate)).toEqual(['all: 101 tokens']);
  });
});

describe('errors of budgets', () => {
  test('the error has the format of the client', async () => {
    await using folder = await temporaryFolder();
    await using provider = await llmProvider();
    await using gate = await budgetGateway(provider, folder.path, budget('1tokens/day'));
    const post = (path: string, body: object, headers: Record<string, string> = {}) =>
      send(`${gate.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
    const anthropic = await post('/v1/messages', SMALL, { 'anthropic-version': '2023-06-01' });
    expect(anthropic.status).toBe(429);
    expect(JSON.parse(anthropic.text)).toMatchObject({ type: 'error', error: { type: 'rate_limit_error' } });
    const google = await post('/v1beta/models/acme-mini:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    });
    expect(google.status).toBe(429);
    expect(JSON.parse(google.text)).toMatchObject({ error: { code: 429, status: 'RESOURCE_EXHAUSTED' } });
  });

  test.each([
    ['10USD', 'expected an amount per window'],
    ['10EUR/day', 'expected an amount per window'],
    ['0USD/day', 'expected an amount per window'],
    ['1.5tokens/day', 'expected an amount per window'],
    ['10USD/year', 'windows: hour, day, week, month, total'],
  ])('the limit `%s` is an error that says what is expected', async (limit, message) => {
    await using folder = await temporaryFolder();
    const starting = budgetGateway({ address: '127.0.0.1:1' }, folder.path, budget(limit));
    await expect(starting).rejects.toThrow(message);
  });

  test('budgets without a database are an error that names the setting', async () => {
    const models = [{ name: '*', provider: 'echo' }];
    const config = { llm: { port: 0, models, policies: budget('1USD/day') } };
    await expect(gateway(JSON.stringify(config))).rejects.toThrow('`budgets` needs a database');
  });
});
