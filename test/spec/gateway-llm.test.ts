import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfigText } from '../../src/server/config/load.ts';
import { planGateways } from '../../src/server/config/plan/plan-gateways.ts';
import { blocksIn } from '../kit/documentation.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  completion,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  webhook,
} from '../kit/llm-provider.ts';
import { send } from '../kit/send.ts';
import { verifies } from '../kit/verifies.ts';

const pass = () => guardrail(() => ({}));

describe('the specified LLM section', () => {
  verifies(
    [
      'gateway.service.7',
      'gateway.service.7.forward',
      'gateway.service.7.rewrite',
      'gateway.config.llm-models',
      'gateway.llm.model.provider',
      'gateway.llm.model.api-key',
      'gateway.llm.model.transformation',
      'gateway.llm.transformation.1',
      'gateway.cel.llm-request.max-tokens',
      'gateway.http.chat',
      'gateway.http.chat.response',
      'gateway.auth.provider',
      'gateway.versioning.2',
    ],
    'an LLM request is forwarded with bounded max_tokens and the configured key',
    async () => {
      await using provider = await llmProvider();
      await using served = await llmGateway(provider, {
        params: { apiKey: 'sk-configured' },
        model: { transformation: { max_tokens: 'min(llmRequest.max_tokens, 10)' } },
      });
      const request = { ...CHAT, max_tokens: 500, temperature: 0.5 };
      const reply = await chat(served, request, { authorization: 'Bearer sk-of-the-client' });
      expect(reply.status).toBe(200);
      expect(reply.text).toBe(completion('Hello.'));
      expect(bodyOf(provider)).toEqual({ ...request, max_tokens: 10 });
      expect(provider.received[0]?.target).toBe('/v1/chat/completions');
      expect(provider.received[0]?.headers['authorization']).toBe('Bearer sk-configured');
      await chat(served, { ...CHAT, max_tokens: 3 });
      expect(bodyOf(provider)['max_tokens']).toBe(3);
    },
  );

  verifies(
    [
      'gateway.service.7.guardrails',
      'gateway.llm.model.guardrails',
      'gateway.llm.model.webhook.host',
      'gateway.llm.model.webhook.headers',
      'gateway.llm.webhook-headers.1',
      'gateway.llm.webhook-headers.2',
      'gateway.llm.webhook-headers.4',
      'gateway.errors.guardrail-header',
      'gateway.outbound.webhook',
      'gateway.cel.llm-request.model',
    ],
    'LLM webhooks are called on /request and /response or a quoted path, without a header whose token is missing',
    async () => {
      await using provider = await llmProvider();
      await using hook = await pass();
      const headers = {
        ':path': '"/v3/check"',
        ':authority': '"guard.example"',
        'x-user': 'jwt.sub',
        'x-model': 'llmRequest.model',
        'x-tokens': 'string(llmRequest.max_tokens)',
        'x-path': 'request.path',
        'x-method': 'request.method',
      };
      await using served = await llmGateway(provider, {
        params: { model: 'acme-large' },
        model: {
          transformation: { max_tokens: '1' },
          guardrails: {
            request: [webhook(hook, { headers }), webhook(hook)],
            response: [webhook(hook, { headers: { ':method': '"PUT"' } })],
          },
        },
      });
      expect((await chat(served, { ...CHAT, max_tokens: 77 })).status).toBe(200);
      expect(hook.received.map(({ method, target }) => `${method} ${target}`)).toEqual([
        'POST /v3/check',
        'POST /request',
        'PUT /response',
      ]);
      const [first] = hook.received;
      expect(first?.headers).toMatchObject({
        host: 'guard.example',
        'x-model': 'acme-mini',
        'x-tokens': '77',
        'x-path': '/v1/chat/completions',
        'x-method': 'POST',
      });
      expect(first?.headers).not.toHaveProperty('x-user');
      expect(bodyOf(hook, 0)).toEqual({ body: { messages: CHAT.messages } });
      expect(bodyOf(hook, 2)).toEqual({
        body: { choices: [{ message: { role: 'assistant', content: 'Hello.' } }] },
      });
    },
  );

  verifies(
    'gateway.llm.webhook-headers.3',
    'an LLM webhook path that fails to evaluate falls back to the default path',
    async () => {
      await using provider = await llmProvider();
      await using hook = await pass();
      const paths = ['jwt.sub', '"//evil.example/x"', '"http://evil.example/"', '"/a b"'];
      const request = paths.map((path) => webhook(hook, { headers: { ':path': path } }));
      await using served = await llmGateway(provider, { model: { guardrails: { request } } });
      expect((await chat(served)).status).toBe(200);
      expect(hook.received.map(({ target }) => target)).toEqual(Array(4).fill('/request'));
    },
  );

  verifies('gateway.llm.webhook-headers.5', 'LLM response webhooks have no llmRequest variable', async () => {
    await using provider = await llmProvider();
    await using hook = await pass();
    const response = [
      webhook(hook, { headers: { 'x-model': 'llmRequest.model', 'x-path': 'request.path' } }),
    ];
    await expect(llmGateway(provider, { model: { guardrails: { response } } })).rejects.toThrow('llmRequest');
  });
});

describe('transformation', () => {
  verifies(
    ['gateway.llm.transformation.3', 'gateway.llm.transformation.4', 'gateway.errors.transformation'],
    'a transformation takes precedence over an override, removes the field when it fails, and defaults fill the field',
    async () => {
      await using provider = await llmProvider();
      const fields = {
        overrides: { max_tokens: 99 },
        transformation: { max_tokens: 'min(llmRequest.max_tokens, 10)' },
      };
      await using plain = await llmGateway(provider, { model: fields });
      await using filled = await llmGateway(provider, { model: { ...fields, defaults: { max_tokens: 5 } } });
      const sent = async (served: typeof plain, value: unknown): Promise<unknown> => {
        expect((await chat(served, { ...CHAT, max_tokens: value })).status).toBe(200);
        return bodyOf(provider)['max_tokens'];
      };
      const values = [500, 3, undefined, null];
      const without = [];
      const withDefaults = [];
      for (const value of values) {
        without.push(await sent(plain, value));
        withDefaults.push(await sent(filled, value));
      }
      expect(without).toEqual([10, 3, undefined, undefined]);
      expect(withDefaults).toEqual([10, 3, 5, 5]);
    },
  );

  test('the limit of docs/first-steps.md holds for each name of the field, and without one', async () => {
    const block = blocksIn('docs/first-steps.md').find(({ text }) => text.includes('max_completion_tokens:'));
    const { transformation } = parse(block?.text ?? '').llm.models[0];
    await using provider = await llmProvider();
    await using served = await llmGateway(provider, { model: { transformation } });
    const sent = async (fields: object): Promise<unknown[]> => {
      expect((await chat(served, { ...CHAT, ...fields })).status).toBe(200);
      const { max_tokens, max_completion_tokens } = bodyOf(provider);
      return [max_tokens, max_completion_tokens];
    };
    for (const [fields, limit] of [
      [{ max_tokens: 99_999 }, 1000],
      [{ max_tokens: 7 }, 7],
      [{ max_completion_tokens: 99_999 }, 1000],
      [{ max_completion_tokens: 7 }, 7],
      [{}, 1000],
      [{ max_tokens: null }, 1000],
    ] as const)
      expect([fields, await sent(fields)]).toEqual([fields, [limit, undefined]]);
    const post = (path: string, body: object) =>
      send(`${served.url}${path}`, { method: 'POST', body: JSON.stringify({ model: CHAT.model, ...body }) });
    for (const [body, limit] of [
      [{ input: 'x', max_output_tokens: 99_999 }, 1000],
      [{ input: 'x' }, 1000],
    ] as const) {
      await post('/v1/responses', body);
      expect(bodyOf(provider)).toMatchObject({ input: 'x', max_output_tokens: limit });
    }
    await post('/v1/embeddings', { input: 'x' });
    expect(Object.keys(bodyOf(provider)).toSorted()).toEqual(['input', 'model']);
  });

  verifies(
    ['gateway.llm.transformation.2', 'gateway.limits.transformations'],
    'a model may have 64 transformations and not 65',
    async () => {
      await using provider = await llmProvider();
      const many = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`field_${index}`, `${index}`]));
      await using served = await llmGateway(provider, { model: { transformation: many(64) } });
      await chat(served);
      expect(bodyOf(provider)['field_63']).toBe(63);
      await expect(llmGateway(provider, { model: { transformation: many(65) } })).rejects.toThrow(
        'at most 64',
      );
    },
  );
});

describe('models', () => {
  verifies(
    ['gateway.llm.model.name', 'gateway.llm.model.model'],
    'models are matched by name, the most specific first, and may be renamed for the provider',
    async () => {
      await using provider = await llmProvider();
      const entry = (name: string, model?: string) => ({
        name,
        provider: 'oaiCompat',
        params: { baseUrl: `http://${provider.address}/v1`, ...(model && { model }) },
      });
      await using served = await modelsGateway([
        entry('*', 'any'),
        entry('acme-*', 'prefix'),
        entry('*-mini', 'suffix-longer-by-order'),
        entry('acme-mini', 'exact'),
        entry('same'),
      ]);
      const models = [];
      for (const model of ['acme-mini', 'acme-large', 'other-mini', 'other', 'same', 'gpt-x']) {
        await chat(served, { ...CHAT, model });
        models.push(bodyOf(provider)['model']);
      }
      expect(models).toEqual(['exact', 'prefix', 'suffix-longer-by-order', 'any', 'same', 'any']);
    },
  );
});

describe('ports', () => {
  verifies(
    ['gateway.http.llm-port', 'gateway.limits.llm-port'],
    'the LLM endpoint listens on port 4000 by default',
    () => {
      const text = 'llm:\n  models:\n    - { name: "*", provider: echo }\n';
      const { config } = loadConfigText(text, 'test.yaml', {});
      if (config === undefined) throw new Error('the configuration is not valid');
      const { gateways } = planGateways(config);
      expect(gateways.map(({ name, port }) => ({ name, port }))).toEqual([{ name: 'llm', port: 4000 }]);
    },
  );
});

describe('limits and logs', () => {
  verifies(
    'gateway.errors.rate-limit',
    'a rate-limited LLM request gets 429 and is logged with that reason',
    async () => {
      const localRateLimit = [{ maxTokens: 1, fillInterval: '1h' }];
      await using served = await modelsGateway([{ name: '*', provider: 'echo' }], {
        policies: { localRateLimit },
      });
      expect((await chat(served)).status).toBe(200);
      const refused = await chat(served);
      expect(refused.status).toBe(429);
      expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0' });
      expect(JSON.parse(refused.text)).toMatchObject({
        error: { message: expect.stringMatching(/^rate limit exceeded/) as string },
      });
      const line = await served.accessLine(2);
      expect(line).toMatchObject({ 'http.status': '429', error: 'rate limit exceeded', reason: 'RateLimit' });
    },
  );

  verifies(
    ['gateway.log.gen-ai', 'gateway.log.cost', 'gateway.cel.cost'],
    'LLM access log lines have the model, the tokens and the cost in the order of the specification',
    async () => {
      const rates = { input: '0.20', output: '0.80', cacheRead: '0.05' };
      const usage = {
        prompt_tokens: 1000,
        prompt_tokens_details: { cached_tokens: 400 },
        completion_tokens: 100,
        completion_tokens_details: { reasoning_tokens: 30 },
      };
      await using provider = await llmProvider(answering(completion('Hello.', { usage })));
      const inline = { providers: { openai: { models: { 'acme-mini-1': { rates } } } } };
      await using served = await llmGateway(provider, {
        more: {
          config: { modelCatalog: [{ inline }] },
          frontendPolicies: {
            accessLog: { add: { 'cost.output': 'llm.cost.output', 'rate.input': 'llm.costRates.input' } },
          },
        },
      });
      await chat(served, { ...CHAT, max_tokens: 50 });
      const line = await served.accessLine(1);
      expect(line).toMatchObject({
        protocol: 'llm',
        endpoint: provider.address,
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'openai',
        'gen_ai.request.model': 'acme-mini',
        'gen_ai.response.model': 'acme-mini-1',
        'gen_ai.usage.input_tokens': '1000',
        'gen_ai.usage.output_tokens': '100',
        'gw.ai.usage.cost.total': '0.00022',
        'cost.output': '0.000056',
        'rate.input': '0.2',
      });
      const named = Object.keys(line);
      const order = [
        'gateway',
        'listener',
        'route',
        'endpoint',
        'http.status',
        'protocol',
        'gen_ai.operation.name',
        'gen_ai.provider.name',
        'gen_ai.request.model',
        'gen_ai.response.model',
        'gen_ai.usage.input_tokens',
        'gen_ai.usage.output_tokens',
        'gw.ai.usage.cost.total',
        'duration',
        'cost.output',
      ];
      expect(named.filter((name) => order.includes(name))).toEqual(order);
    },
  );
});
