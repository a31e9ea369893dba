import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { WIRES, type WireName } from '../../kit/llm-events.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  EVERY_FORMAT,
  FINISH,
  llmProvider,
  streaming,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import { until } from '../../kit/until.ts';
import { type Answer, refusingPort } from '../../kit/upstream.ts';

interface Dumped {
  readonly active: Record<
    string,
    { info: { health: number; timesEjected: number; consecutiveFailures: number } }
  >;
  readonly rejected: Record<string, { info: { evictedUntil: string } }>;
}

const ok = answering(completion('Hello.'));
const ASKED = { ...CHAT, model: 'safe' };

const entry = (name: string, { address }: { address: string }, more: object = {}): object => ({
  name,
  provider: 'oaiCompat',
  params: { baseUrl: `http://${address}/v1` },
  ...more,
});

/** A gateway whose virtual model `safe` has these targets. */
function failing(
  models: readonly object[],
  first: object,
  second?: object,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const targets = second === undefined ? [first] : [first, second];
  const virtualModels = [{ name: 'safe', routing: { failover: { targets } } }];
  const config = { connectionTerminationDeadline: '100ms' };
  return gateway(JSON.stringify({ config, llm: { port: 0, models, virtualModels } }), {
    admin: true,
    ...options,
  });
}

/** The state of the endpoints of all models, from the admin server. */
async function endpoints({ admin }: TestGateway): Promise<Dumped> {
  const dump = JSON.parse((await send(`${admin}/config_dump`)).text) as {
    backends: { backend: { ai?: { target: { providers: Dumped[] } } } }[];
  };
  const sets = dump.backends.flatMap(({ backend }) => backend.ai?.target.providers ?? []);
  return {
    active: Object.assign({}, ...sets.map(({ active }) => active)),
    rejected: Object.assign({}, ...sets.map(({ rejected }) => rejected)),
  };
}

const FIRST = { model: 'first', priority: 0 };
const SECOND = { model: 'second', priority: 1 };
const evicted = (eviction: object): object => ({ health: { eviction } });

describe('a virtual model with failover', () => {
  test('failover uses the first priority, evicts it when it fails, and returns to it', async () => {
    const mood = { answer: ok };
    await using first = await llmProvider((...call) => mood.answer(...call));
    await using second = await llmProvider();
    const models = [entry('first', first, evicted({ duration: '300ms' })), entry('second', second)];
    await using served = await failing(models, SECOND, FIRST);
    for (let count = 0; count < 5; count += 1) expect((await chat(served, ASKED)).status).toBe(200);
    expect([first.received.length, second.received.length]).toEqual([5, 0]);

    mood.answer = answering('{"error":{}}', 500);
    expect((await chat(served, ASKED)).status).toBe(200);
    expect([first.received.length, second.received.length]).toEqual([6, 1]);
    expect((await chat(served, ASKED)).status).toBe(200);
    expect([first.received.length, second.received.length]).toEqual([6, 2]);
    expect(bodyOf(second)['model']).toBe('second');

    mood.answer = ok;
    await until(async () => {
      expect((await chat(served, ASKED)).status).toBe(200);
      return first.received.length > 6;
    });
  });

  test('failover reports in the trace which model is evicted and that no other choice is left', async () => {
    await using first = await llmProvider(answering('{"error":{}}', 500));
    await using second = await llmProvider(answering('{"error":{}}', 500));
    const long = evicted({ duration: '1h' });
    const models = [entry('first', first, long), entry('second', second, long)];
    await using served = await failing(models, FIRST, SECOND);
    const skipped = async (): Promise<unknown[]> => {
      const events = await recorded(served, () => chat(served, ASKED));
      return events.flatMap(({ message }) =>
        message.type === 'policyEvent' && message.kind === 'llm_evicted' ? [message.details] : [],
      );
    };
    const evictedFor = expect.stringMatching(/^(?:59m|1h0m)/) as string;
    // The first request has failed at both.
    expect((await chat(served, ASKED)).status).toBe(500);
    expect([first.received.length, second.received.length]).toEqual([1, 1]);
    expect(await skipped()).toEqual([
      { model: 'first', for: evictedFor, taken: 'used anyway: every target is evicted' },
      { model: 'second', for: evictedFor, taken: 'used anyway: every target is evicted' },
    ]);
  });

  test('failover resends a request immediately when no provider was reached, with the changes of the new entry only', async () => {
    await using second = await llmProvider();
    const refused = { address: `127.0.0.1:${await refusingPort()}` };
    const models = [
      entry('first', refused, { ...evicted({ duration: '1h' }), overrides: { top_p: 0.5 } }),
      entry('second', second, { overrides: { seed: 7 } }),
    ];
    await using served = await failing(models, FIRST, SECOND);
    for (let count = 0; count < 3; count += 1) expect((await chat(served, ASKED)).status).toBe(200);
    expect(bodyOf(second, 0)).toEqual({ ...CHAT, model: 'second', seed: 7 });
    const { 'gen_ai.request.model': asked, endpoint } = await served.accessLine(1);
    expect([asked, endpoint]).toEqual(['safe', second.address]);
    expect((await endpoints(served)).rejected).toHaveProperty('first');
  });

  test('failover names the last connection error when no provider is reached', async () => {
    const refused = { address: `127.0.0.1:${await refusingPort()}` };
    await using served = await failing([entry('first', refused), entry('second', refused)], FIRST, SECOND);
    const reply = await chat(served, ASKED);
    expect(reply.status).toBe(503);
    expect(reply.text).toContain('connection refused');
    const { active, rejected } = await endpoints(served);
    expect([Object.keys(active), Object.keys(rejected)]).toEqual([[], ['first', 'second']]);
  });

  test.each<[string, Answer]>([
    ['500', answering('{"error":{}}', 500)],
    ['429', answering('{"error":{}}', 429)],
    ['a broken connection', (request) => request.socket.destroy()],
    ['a redirect', answering('', 302, { location: 'http://127.0.0.1:9/' })],
    ['a web page', answering('<html>Sign in</html>', 200, { 'content-type': 'text/html; charset=utf-8' })],
  ])(
    'failover sends a request that one provider answers with %s to the next, which the client does not notice',
    async (_, answer) => {
      await using first = await llmProvider(answer);
      await using second = await llmProvider();
      await using served = await failing([entry('first', first), entry('second', second)], FIRST, SECOND);
      const reply = await chat(served, ASKED);
      expect(reply.status).toBe(200);
      expect(JSON.parse(reply.text)).toMatchObject({ choices: [{ message: { content: 'Hello.' } }] });
      expect([first.received.length, second.received.length]).toEqual([1, 1]);
      const line = await served.accessLine(1);
      expect(line).toMatchObject({
        'http.status': '200',
        endpoint: second.address,
        'gw.ai.failover.from': 'first',
      });
      for (const name of ['error', 'error.detail', 'error.type', 'reason'])
        expect(line).not.toHaveProperty(name);
    },
  );

  test('failover passes over a model that cannot be asked while others fail, and gives up no healthy one for it', async () => {
    await using down = await llmProvider((_, response) => response.writeHead(500).end('{}'));
    await using up = await llmProvider(ok);
    const claude = { name: 'claude', provider: 'anthropic', params: { baseUrl: 'http://127.0.0.1:1' } };
    const models = [entry('first', down), claude, entry('last', up)];
    const routing = (names: readonly string[]) => ({
      failover: { targets: names.map((model, priority) => ({ model, priority })) },
    });
    const virtualModels = [
      { name: 'safe', routing: routing(['first', 'claude', 'last']) },
      { name: 'claude-first', routing: routing(['claude', 'last']) },
    ];
    await using gate = await gateway(JSON.stringify({ llm: { port: 0, models, virtualModels } }));
    expect((await chat(gate, { ...ASKED, seed: 1 })).status).toBe(200);
    const refused = await chat(gate, { ...ASKED, model: 'claude-first', seed: 1 });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('`seed`')]);
  });

  test('failover does not resend what is no failure of the provider', async () => {
    await using first = await llmProvider(answering('{"error":{"code":"context_length_exceeded"}}', 400));
    await using second = await llmProvider();
    await using served = await failing([entry('first', first), entry('second', second)], FIRST, SECOND);
    expect((await chat(served, ASKED)).status).toBe(400);
    expect(second.received).toHaveLength(0);
  });

  test.each<[string, (response: ServerResponse) => unknown]>([
    ['ends early', (response) => response.write(chunk({ role: 'assistant' }), () => response.destroy())],
    [
      'reports an error',
      (response) => response.end(`${chunk({ role: 'assistant' })}data: {"error":{"code":"overloaded"}}\n\n`),
    ],
    ['sends nothing for too long', (response) => response.write(': ping\n\n')],
    ['ends without an event', (response) => response.end(': ping\n\n')],
  ])(
    'failover requests a stream from the next provider if one %s before its first output',
    async (_, write) => {
      await using first = await llmProvider(streaming(write));
      await using second = await llmProvider(
        streaming((response) => response.end(chunk({ content: 'Hello.' }) + FINISH + DONE)),
      );
      const models = [entry('first', first), entry('second', second)];
      await using served = await failing(models, FIRST, SECOND, { limits: { streamIdle: 1_000 } });
      const reply = await chat(served, { ...ASKED, stream: true });
      expect(reply.text).toBe(chunk({ content: 'Hello.' }) + FINISH + DONE);
      expect([first.received.length, second.received.length]).toEqual([1, 1]);
      // The next call does not wait for it again.
      expect((await endpoints(served)).rejected['first']?.info).toMatchObject({ consecutiveFailures: 1 });
    },
  );

  test.each(
    (['messages', 'responses', 'generateContent'] as const).flatMap((format) =>
      [false, true].map(
        (isTranslated) => [format, isTranslated ? 'chat completions' : 'its own format'] as const,
      ),
    ),
  )(
    'failover requests a stream of %s from the next provider if one of %s fails before its first output',
    async (format, api) => {
      const { path, request, events, text } = WIRES[format];
      const sent = events('content', ['Hello ', 'there.']);
      const begin = {
        messages: sent.slice(0, 3),
        responses: sent.slice(0, 2),
        generateContent: ['data: {"usageMetadata":{"promptTokenCount":1},"modelVersion":"m"}\n\n'],
      };
      const [head, error] =
        api === 'its own format'
          ? [begin[format].join(''), 'data: {"error":{"code":503,"status":"UNAVAILABLE","message":"no"}}\n\n']
          : [chunk({ role: 'assistant' }), 'data: {"error":{"code":"overloaded"}}\n\n'];
      const chats = { custom: { formats: [{ type: 'completions' }] } };
      await using second = await llmProvider(streaming((response) => response.end(sent.join(''))));
      for (const fails of [
        (response: ServerResponse) => response.write(head, () => response.destroy()),
        (response: ServerResponse) => response.end(head + error),
      ]) {
        await using first = await llmProvider(streaming(fails));
        const models = [
          entry('first', first, { provider: api === 'its own format' ? EVERY_FORMAT : chats }),
          entry('second', second, { provider: EVERY_FORMAT }),
        ];
        await using served = await failing(models, FIRST, SECOND);
        const members = format === 'generateContent' ? request : { ...request, model: 'safe' };
        const reply = await send(served.url + path.replace('/m:', '/safe:'), {
          method: 'POST',
          body: JSON.stringify(members),
        });
        expect(text('content', reply.text)).toBe('Hello there.');
        expect(first.received).toHaveLength(1);
      }
    },
  );

  test('failover judges a stream that begins with an error as a response with the status of that error', async () => {
    const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
    const bad = { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'too long' };
    const failed = (more: object): string =>
      data({
        type: 'response.failed',
        response: { object: 'response', status: 'failed', output: [], ...more },
      });
    const claude = (type: string): string =>
      `event: error\n${data({ type: 'error', error: { type, message: 'too long' } })}`;
    const cases: [WireName, begin: string, status: number | 'next'][] = [
      ['chat', data({ error: bad }), 400],
      ['chat', data({ error: { code: 404, message: 'too long' } }), 404],
      ['chat', data({ error: { code: '429', message: 'slow down' } }), 'next'],
      ['chat', data({ error: { message: 'no' } }), 'next'],
      ['chat', data({ error: { code: 401, message: 'bad key' } }), 'next'],
      ['chat', 'event: error\ndata: overloaded\n\n', 'next'],
      ['chat', data({ choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] }), 'next'],
      [
        'chat',
        data({
          choices: [
            { index: 0, delta: {}, finish_reason: 'error', error: { code: 400, message: 'too long' } },
          ],
        }),
        400,
      ],
      ['messages', claude('invalid_request_error'), 400],
      ['messages', claude('overloaded_error'), 'next'],
      ['messages', 'event: error\ndata: overloaded\n\n', 'next'],
      ['responses', data({ ...bad, type: 'error' }), 400],
      ['responses', failed({ error: { code: 'invalid_prompt', message: 'too long' } }), 400],
      ['responses', failed({ error: { code: 'server_error', message: 'no' } }), 'next'],
      ['responses', failed({ error: null }), 'next'],
      [
        'generateContent',
        data({ error: { code: 400, message: 'too long', status: 'INVALID_ARGUMENT' } }),
        400,
      ],
      ['generateContent', data({ error: { code: 503, message: 'no', status: 'UNAVAILABLE' } }), 'next'],
    ];
    let begin = '';
    let whole: readonly string[] = [];
    await using first = await llmProvider(streaming((response) => response.end(begin)));
    await using second = await llmProvider(streaming((response) => response.end(whole.join(''))));
    const models = [first, second].map((provider, index) =>
      entry(index === 0 ? 'first' : 'second', provider, {
        ...evicted({ consecutiveFailures: 100 }),
        provider: EVERY_FORMAT,
        params: { baseUrl: `http://${provider.address}/v1`, apiKey: 'sk-secret-of-the-gateway' },
      }),
    );
    await using served = await failing(models, FIRST, SECOND);
    let failures = 0;
    for (const [format, sent, expected] of cases) {
      const { path, request, events, text } = WIRES[format];
      begin = sent.replace('too long', 'too long for sk-secret-of-the-gateway');
      whole = events('content', ['Hello.']);
      failures = expected === 'next' ? failures + 1 : 0;
      const asked = second.received.length;
      const reply = await send(served.url + path.replace('/m:', '/safe:'), {
        method: 'POST',
        body: JSON.stringify(format === 'generateContent' ? request : { ...request, model: 'safe' }),
      });
      if (expected === 'next') expect([sent, text('content', reply.text)]).toEqual([sent, 'Hello.']);
      else {
        expect([sent, reply.status, second.received.length]).toEqual([sent, expected, asked]);
        expect(reply.headers['content-type']).toContain('application/json');
        const { error } = JSON.parse(reply.text) as { error: { message: string } };
        expect(error.message).toMatch(/^too long for (?!sk-secret)/);
      }
      const { active } = await endpoints(served);
      expect([sent, active['first']?.info]).toMatchObject([sent, { consecutiveFailures: failures }]);
    }
    // Without another target, the client gets the stream.
    for (const [error, counted] of [
      [bad, 0],
      [{ code: 503, message: 'no' }, 1],
    ] as const) {
      begin = data({ error });
      const reply = await chat(served, { ...ASKED, model: 'first', stream: true });
      expect([reply.status, reply.text]).toEqual([200, begin]);
      await until(
        async () => (await endpoints(served)).active['first']?.info.consecutiveFailures === counted,
      );
    }
  });

  test('failover requests a stream from the next provider if one sends no response headers for too long', async () => {
    await using first = await llmProvider(() => undefined);
    await using second = await llmProvider(
      streaming((response) => response.end(chunk({ content: 'Hello.' }) + FINISH + DONE)),
    );
    const models = [entry('first', first), entry('second', second)];
    await using served = await failing(models, FIRST, SECOND, { limits: { streamIdle: 1_000 } });
    const reply = await chat(served, { ...ASKED, stream: true });
    expect(reply.text).toBe(chunk({ content: 'Hello.' }) + FINISH + DONE);
  });

  const HEL = chunk({ content: 'Hel' });
  test.each<[how: string, write: (response: ServerResponse) => void]>([
    ['is cut off', (response) => response.write(HEL, () => response.destroy())],
    ['ends early', (response) => response.end(HEL)],
    ['falls silent', (response) => response.write(HEL)],
    ['reports an error', (response) => response.end(`${HEL}data: {"error":{"message":"overloaded"}}\n\n`)],
    [
      'ends with an error as its reason',
      (response) => response.end(HEL + FINISH.replace('"stop"', '"error"') + DONE),
    ],
  ])('failover repeats no stream that %s after its first output, and evicts its model', async (_, write) => {
    await using first = await llmProvider(streaming(write));
    await using second = await llmProvider(ok);
    const models = [entry('first', first, evicted({ consecutiveFailures: 2 })), entry('second', second)];
    await using served = await failing(models, FIRST, SECOND, { limits: { streamIdle: 500 } });
    for (let call = 1; call <= 2; call++) {
      const reply = await chat(served, { ...ASKED, stream: true });
      expect(reply.text).toContain(HEL);
      expect(reply.text).toContain('error');
      expect(second.received).toHaveLength(0);
    }
    await until(async () => (await endpoints(served)).rejected['first'] !== undefined);
    expect((await chat(served, ASKED)).text).toContain('Hello.');
    expect(second.received).toHaveLength(1);
  });

  test('a stream that its client leaves is no failure of its model', async () => {
    await using first = await llmProvider(streaming((response) => response.write(HEL)));
    await using second = await llmProvider();
    await using served = await failing([entry('first', first), entry('second', second)], FIRST, SECOND);
    const left = new AbortController();
    const reply = await fetch(`${served.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify({ ...ASKED, stream: true }),
      signal: left.signal,
    });
    await reply.body?.getReader().read();
    left.abort();
    await served.accessLine(1);
    const { active, rejected } = await endpoints(served);
    expect(rejected).toEqual({});
    expect(active['first']?.info).toMatchObject({ health: 1, consecutiveFailures: 0 });
  });

  test('failover passes on a stream whose beginning without output is too long to be held back', async () => {
    const pings = ': ping\n\n'.repeat(20_000);
    await using first = await llmProvider(
      streaming((response) => response.end(pings + chunk({ content: 'Hello.' }) + FINISH + DONE)),
    );
    await using second = await llmProvider();
    await using served = await failing([entry('first', first), entry('second', second)], FIRST, SECOND);
    const reply = await chat(served, { ...ASKED, stream: true });
    expect(reply.text).toBe(pings + chunk({ content: 'Hello.' }) + FINISH + DONE);
    expect(second.received).toHaveLength(0);
  });

  test.each([
    ['Retry-After', { 'retry-after': '50' }, /^4\d(\.\d)?s$|^50s$/],
    [
      'a date in Retry-After',
      { 'retry-after': new Date(Date.now() + 1_800_000).toUTCString() },
      /^2\dm|^30m/,
    ],
    [
      'x-ratelimit-reset',
      { 'x-ratelimit-reset-requests': '1m30s', 'x-ratelimit-reset-tokens': '6m0s' },
      /^1m(2\d(\.\d)?|30)s$/,
    ],
    // kdlbs/kandev#3811: OpenAI and others send milliseconds, and some send fractions of seconds.
    ['retry-after-ms', { 'retry-after-ms': '50000', 'retry-after': '60' }, /^4\d(\.\d)?s$|^50s$/],
    ['three days in retry-after-ms', { 'retry-after-ms': '274579000' }, /^59m|^1h0m0s$/],
    ['a fraction', { 'retry-after': '49.5' }, /^4\d(\.\d)?s$/],
    ['nothing', {}, /^2\.\ds$|^3s$/],
    ['a text without a time', { 'retry-after': 'in 45' }, /^2\.\ds$|^3s$/],
    ['a year', { 'retry-after': '31536000' }, /^59m|^1h0m0s$/],
  ])('failover evicts a provider for as long as its 429 response says: %s', async (_, headers, left) => {
    await using first = await llmProvider(answering('{}', 429, headers as Record<string, string>));
    await using second = await llmProvider();
    await using served = await failing([entry('first', first), entry('second', second)], FIRST, SECOND);
    expect((await chat(served, ASKED)).status).toBe(200);
    const { rejected } = await endpoints(served);
    expect(Object.keys(rejected)).toEqual(['first']);
    expect(rejected['first']?.info.evictedUntil).toMatch(left);
  });

  test('failover evicts a provider for longer each time until a call succeeds', async () => {
    const mood = { answer: answering('{}', 500) };
    await using first = await llmProvider((...call) => mood.answer(...call));
    await using second = await llmProvider();
    const models = [entry('first', first, evicted({ duration: '1ms' })), entry('second', second)];
    await using served = await failing(models, FIRST, SECOND);
    const fail = async (times: number): Promise<void> => {
      const before = first.received.length;
      await until(async () => {
        await chat(served, ASKED);
        return first.received.length >= before + times;
      });
    };
    const started = performance.now();
    await fail(30);
    // 1 + 2 + … + 29 ms.
    expect(performance.now() - started).toBeGreaterThan(435);
    mood.answer = ok;
    await fail(2);
    expect((await endpoints(served)).active['first']?.info.timesEjected).toBeGreaterThanOrEqual(30);
  });

  test('failover uses evicted models when there are no others', async () => {
    const mood = { answer: answering('{}', 503) };
    await using first = await llmProvider((...call) => mood.answer(...call));
    await using served = await failing([entry('first', first)], FIRST);
    expect((await chat(served, ASKED)).status).toBe(503);
    expect((await chat(served, ASKED)).status).toBe(503);
    mood.answer = ok;
    expect((await chat(served, ASKED)).status).toBe(200);
  });

  test('failover evicts a model after as many consecutive failures as configured', async () => {
    await using first = await llmProvider(answering('{}', 500));
    await using second = await llmProvider();
    const models = [entry('first', first, evicted({ consecutiveFailures: 3 })), entry('second', second)];
    await using served = await failing(models, FIRST, SECOND);
    for (let count = 0; count < 5; count += 1) expect((await chat(served, ASKED)).status).toBe(200);
    expect([first.received.length, second.received.length]).toEqual([3, 5]);
  });

  test('failover evicts a model when its health falls below the configured value', async () => {
    await using first = await llmProvider(answering('{}', 500));
    await using second = await llmProvider();
    const health = { healthThreshold: 0.6, restoreHealth: 0.9, duration: '1ms' };
    const models = [entry('first', first, evicted(health)), entry('second', second)];
    await using served = await failing(models, FIRST, SECOND);
    // 0.8, 0.64, 0.51.
    for (let count = 0; count < 3; count += 1) await chat(served, ASKED);
    expect(first.received).toHaveLength(3);
    await until(async () => (await endpoints(served)).active['first']?.info.health === 0.9);
  });

  test('failover evicts on the configured failure condition', async () => {
    await using first = await llmProvider(answering('{}', 404, { 'x-state': 'down' }));
    await using second = await llmProvider();
    const unhealthyExpression = 'response.code == 404 && response.headers["x-state"] == "down"';
    const models = [entry('first', first, { health: { unhealthyExpression } }), entry('second', second)];
    await using served = await failing(models, FIRST, SECOND);
    for (let count = 0; count < 2; count += 1) expect((await chat(served, ASKED)).status).toBe(200);
    expect([first.received.length, second.received.length]).toEqual([1, 2]);
  });

  test('failover prefers the faster of two models with equal priority', async () => {
    await using slow = await llmProvider((_, response, received) =>
      setTimeout(() => ok(_, response, received), 400),
    );
    await using quick = await llmProvider();
    const models = [entry('first', slow), entry('second', quick)];
    await using served = await failing(models, { model: 'first' }, { model: 'second' });
    for (let count = 0; count < 12; count += 1) expect((await chat(served, ASKED)).status).toBe(200);
    // Each is tried once, whichever comes first.
    expect(slow.received.length).toBeLessThanOrEqual(2);
  });

  test('failover evicts models of one wildcard entry separately', async () => {
    await using provider = await llmProvider((request, response, received) => {
      const isFirst = received.body.includes('"acme-first"');
      return answering(isFirst ? '{}' : completion('Hi.'), isFirst ? 429 : 200)(request, response, received);
    });
    await using served = await failing(
      [entry('acme-*', provider)],
      { model: 'acme-first' },
      { model: 'acme-second', priority: 1 },
    );
    for (let count = 0; count < 2; count += 1) expect((await chat(served, ASKED)).status).toBe(200);
    expect(provider.received.map(({ body }) => (JSON.parse(body) as { model: string }).model)).toEqual([
      'acme-first',
      'acme-second',
      'acme-second',
    ]);
  });

  test('a call whose client disconnects does not count for or against the provider', async () => {
    await using first = await llmProvider(() => undefined);
    await using second = await llmProvider();
    await using served = await failing([entry('first', first), entry('second', second)], FIRST, SECOND);
    const left = new AbortController();
    const asked = fetch(`${served.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(ASKED),
      signal: left.signal,
    });
    await until(() => first.received.length === 1);
    left.abort();
    await expect(asked).rejects.toThrow();
    await served.accessLine(1);
    const { active } = await endpoints(served);
    expect(active['first']?.info).toMatchObject({ health: 1, pendingRequests: 0, consecutiveFailures: 0 });
  });
});

test.each<[string, object, string]>([
  ['without a target', { targets: [] }, 'targets'],
  ['for a model that nobody answers', { targets: [{ model: 'other' }] }, 'does not match any entry'],
  ['with a priority below zero', { targets: [{ model: 'first', priority: -1 }] }, 'priority'],
])('a failover %s is a configuration error', async (_, failover, message) => {
  const models = [{ name: 'first', provider: 'echo' }];
  const virtualModels = [{ name: 'safe', routing: { failover } }];
  await expect(gateway(JSON.stringify({ llm: { port: 0, models, virtualModels } }))).rejects.toThrow(message);
});
