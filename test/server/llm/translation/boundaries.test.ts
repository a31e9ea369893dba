import { describe, expect, test } from 'vitest';
import {
  APIS,
  askAs,
  BODIES,
  claude,
  gatewayTo,
  openAi,
  providerOf,
  sendJson,
} from '../../../kit/llm-answers.ts';
import {
  bodyOf,
  chunk,
  DONE,
  FINISH,
  llmGateway,
  modelsGateway,
  streaming,
} from '../../../kit/llm-provider.ts';
import { send } from '../../../kit/send.ts';
import { recorded } from '../../../kit/trace.ts';

const CHAT = JSON.stringify({ model: 'acme', messages: [{ role: 'user', content: 'Hi' }] });
const MESSAGE = JSON.stringify({ model: 'acme', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] });

describe('headers, keys and paths of translated calls', () => {
  test('headers and query of the API of the client are not sent to another API, which gets its own', async () => {
    await using provider = await providerOf('messages');
    await using gate = await gatewayTo(provider, 'messages', { params: { apiKey: 'sk-ours' } });
    const headers = {
      'openai-beta': 'responses=v1',
      'openai-organization': 'org',
      'anthropic-beta': 'x',
      'idempotency-key': 'once',
      authorization: 'Bearer client',
    };
    await send(`${gate.url}/v1/chat/completions?beta=true`, { method: 'POST', headers, body: CHAT });
    const { headers: sent = {}, target } = provider.received[0] ?? {};
    expect(target).toBe('/v1/messages');
    expect(sent).toMatchObject({
      'anthropic-version': '2023-06-01',
      'idempotency-key': 'once',
      'content-type': 'application/json',
      authorization: 'Bearer sk-ours',
    });
    for (const name of ['openai-beta', 'openai-organization', 'anthropic-beta'])
      expect(sent).not.toHaveProperty(name);
  });

  test("a client's own key is sent as the provider expects it if the model has none", async () => {
    await using provider = await providerOf('messages');
    await using toAnthropic = await llmGateway(provider, { model: { provider: 'anthropic' } });
    await openAi(toAnthropic).chat.completions.create({
      model: 'a',
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(provider.received[0]?.headers).toMatchObject({ 'x-api-key': 'client-key' });
    expect(provider.received[0]?.headers).not.toHaveProperty('authorization');
    await using other = await providerOf('completions');
    await using toOpenAi = await llmGateway(other, {
      model: { provider: { custom: { formats: [{ type: 'completions' }] } } },
    });
    await claude(toOpenAi).messages.create(JSON.parse(MESSAGE) as never);
    expect(other.received[0]?.headers).toMatchObject({ authorization: 'Bearer client-key' });
    expect(other.received[0]?.headers).not.toHaveProperty('x-api-key');
  });

  test('a translated call is sent to the path of the format that the provider is configured with', async () => {
    await using provider = await providerOf('messages');
    const custom = {
      formats: [{ type: 'embeddings' }, { type: 'messages', path: '/anthropic/v1/messages' }],
    };
    await using gate = await llmGateway(provider, { model: { provider: { custom } } });
    await askAs('responses', gate, true);
    expect(provider.received[0]?.target).toBe('/anthropic/v1/messages');
  });

  test('the format of the client is used if the provider has it, else the first one of the provider', async () => {
    await using provider = await providerOf('completions');
    const custom = { formats: [{ type: 'completions' }, { type: 'responses' }] };
    await using gate = await llmGateway(provider, { model: { provider: { custom } } });
    await send(`${gate.url}/v1/messages`, { method: 'POST', body: MESSAGE });
    await send(`${gate.url}/v1/responses`, { method: 'POST', body: '{"model":"acme","input":"Hi"}' });
    expect(provider.received.map(({ target }) => target)).toEqual(['/v1/chat/completions', '/v1/responses']);
  });

  test('a call whose format the provider has is not changed by a byte', async () => {
    await using provider = await providerOf('messages');
    await using gate = await gatewayTo(provider, 'messages');
    const body =
      '{ "model":"acme", "max_tokens":50, "top_k":9007199254740993, "messages":[], "unknown":1.0 }';
    await send(`${gate.url}/v1/messages?beta=true`, {
      method: 'POST',
      headers: { 'anthropic-beta': 'x' },
      body,
    });
    expect(provider.received[0]).toMatchObject({ body, target: '/v1/messages?beta=true' });
    expect(provider.received[0]?.headers).toMatchObject({ 'anthropic-beta': 'x' });
    expect(provider.received[0]?.headers).not.toHaveProperty('anthropic-version');
  });
});

describe('changes to translated requests', () => {
  test('overrides and transformations change the format of the client, finalTransformation that of the provider', async () => {
    await using provider = await providerOf('messages');
    await using gate = await gatewayTo(provider, 'messages', {
      params: { model: 'theirs' },
      model: {
        overrides: { max_completion_tokens: 77, temperature: 0.5 },
        finalTransformation: { top_k: 'llmRequest.messages.size()', temperature: 'llmRequest.absent' },
      },
    });
    await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body: CHAT });
    expect(bodyOf(provider)).toMatchObject({ model: 'theirs', max_tokens: 77, top_k: 1 });
    expect(bodyOf(provider)).not.toHaveProperty('temperature');
  });

  test('finalTransformation also changes calls that are not translated, and keeps the rest', async () => {
    await using provider = await providerOf('completions');
    await using gate = await gatewayTo(provider, 'completions', {
      model: { finalTransformation: { seed: '7' } },
    });
    await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body: CHAT });
    expect(provider.received[0]?.body).toBe(`${CHAT.slice(0, -1)},"seed":7}`);
  });

  test('a failover target with another API gets the original request in its own format', async () => {
    await using dead = await providerOf('completions');
    const { address } = dead;
    await dead.close();
    await using works = await providerOf('messages');
    const models = [
      { name: 'm0', provider: 'oaiCompat', params: { baseUrl: `http://${address}/v1` }, overrides: { n: 1 } },
      { name: 'm1', provider: 'anthropic', params: { baseUrl: `http://${works.address}/v1` } },
    ];
    const targets = models.map(({ name }, priority) => ({ model: name, priority }));
    await using gate = await modelsGateway(models, {
      virtualModels: [{ name: 'acme', routing: { failover: { targets } } }],
    });
    const reply = await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body: CHAT });
    expect(reply.status).toBe(200);
    expect(JSON.parse(reply.text)).toMatchObject({ object: 'chat.completion' });
    expect(bodyOf(works)).toMatchObject({ model: 'm1' });
  });
});

describe('guardrails of translated calls', () => {
  const CARD = '4111 1111 1111 1111';
  const rules = [{ builtin: 'creditCard' }];

  test.each(['messages', 'responses'] as const)(
    'a card number in pieces does not reach a client of %s under a masking rule, and none reaches the provider',
    async (client) => {
      const pieces = [...`Pay with ${CARD} now.`].map((content) => chunk({ content }));
      await using provider = await providerOf(
        'completions',
        streaming((response) => response.end([...pieces, FINISH, DONE].join(''))),
      );
      const guardrails = { request: [{ regex: { rules } }], response: [{ regex: { rules } }] };
      await using gate = await gatewayTo(provider, 'completions', { model: { guardrails } });
      const question = `My card is ${CARD}.`;
      const text =
        client === 'responses'
          ? (await openAi(gate).responses.stream({ model: 'acme', input: question }).finalResponse())
              .output_text
          : await claude(gate)
              .messages.stream({
                model: 'acme',
                max_tokens: 9,
                messages: [{ role: 'user', content: question }],
              })
              .finalText();
      expect(text).toBe('Pay with <CREDIT_CARD> now.');
      expect(provider.received[0]?.body).toContain('My card is <CREDIT_CARD>.');
    },
  );

  test('cache writes for an hour have their own price also for clients whose format does not tell them apart', async () => {
    const usage = {
      input_tokens: 10,
      cache_creation_input_tokens: 30,
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
      output_tokens: 1,
    };
    await using provider = await providerOf('messages', (_, response) =>
      sendJson(response, { ...BODIES.messages, usage }),
    );
    const rates = { input: '1', output: '10', cacheWrite: '2', cacheWrite1h: '4' };
    const inline = { providers: { custom: { models: { 'model-1': { rates } } } } };
    await using gate = await gatewayTo(provider, 'messages', {
      more: { config: { modelCatalog: [{ inline }] } },
    });
    await askAs('completions', gate, false);
    // 10 of input, 10 into the cache for five minutes, 20 for an hour, 1 of output.
    expect((await gate.accessLine(1))['gw.ai.usage.cost.total']).toBe('0.00012');
  });

  test('the price of a translated call is that of all classes of tokens which its provider reported', async () => {
    await using provider = await providerOf('messages');
    const rates = { input: '1', output: '10', cacheRead: '0.1', cacheWrite: '2' };
    const inline = { providers: { custom: { models: { 'model-1': { rates } } } } };
    await using gate = await gatewayTo(provider, 'messages', {
      more: { config: { modelCatalog: [{ inline }] } },
    });
    let calls = 0;
    for (const client of APIS)
      for (const isStream of [false, true]) {
        await askAs(client, gate, isStream);
        calls += 1;
        const line = await gate.accessLine(calls);
        // 15 tokens of input, 100 from the cache, 5 into it, 40 of output.
        expect([client, isStream, line['gw.ai.usage.cost.total']]).toEqual([client, isStream, '0.000435']);
      }
  });
});

test('a trace tells the format of the client and that of the provider', async () => {
  await using provider = await providerOf('completions');
  await using gate = await gatewayTo(provider, 'completions');
  const events = await recorded(gate, () => askAs('messages', gate, true));
  const messages = events.map(({ message }) => message);
  const formats = { inputFormat: 'Messages', upstreamRouteType: 'Completions' };
  expect(messages).toContainEqual(expect.objectContaining({ type: 'llmRequestDetected', ...formats }));
  expect(messages).toContainEqual(expect.objectContaining({ type: 'llmStreamingTranslation', ...formats }));
});
