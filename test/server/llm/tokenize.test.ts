import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { CHAT, chat, completion, llmProvider } from '../../kit/llm-provider.ts';
import { until } from '../../kit/until.ts';

const localRateLimit = [{ maxTokens: 200, tokensPerFill: 1, fillInterval: '1h', type: 'tokens' }];
/** 150 tokens, as they are estimated; the provider reports 19. */
const LONG = { ...CHAT, messages: [{ role: 'user', content: 'x'.repeat(600) }] };

const limited = (address: string, params: object) =>
  gateway(
    JSON.stringify({
      llm: {
        port: 0,
        policies: { localRateLimit },
        models: [{ name: '*', provider: 'openAI', params: { baseUrl: `http://${address}/v1`, ...params } }],
      },
    }),
  );

test.each([
  [true, 429],
  [false, 200],
])('with tokenize: %s, calls that are still running count: a third one gets %d', async (tokenize, status) => {
  const held: ServerResponse[] = [];
  let isHolding = true;
  const answer = (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(completion('Hello.'));
  };
  await using provider = await llmProvider((_, response) =>
    isHolding ? void held.push(response) : answer(response),
  );
  await using gate = await limited(provider.address, { tokenize });
  const first = [chat(gate, LONG), chat(gate, LONG)];
  await until(() => held.length === 2);
  isHolding = false;
  expect((await chat(gate, LONG)).status).toBe(status);
  for (const response of held) answer(response);
  expect((await Promise.all(first)).map((reply) => reply.status)).toEqual([200, 200]);
  // Afterwards the reported tokens count, and not the estimate: 38 or 57 of 200.
  await gate.accessLine(3);
  expect((await chat(gate, LONG)).status).toBe(200);
});

test('tokenize of a provider of `ai` has the same effect', async () => {
  const held: ServerResponse[] = [];
  await using provider = await llmProvider((_, response) => void held.push(response));
  const ai = { name: 'p', provider: { openAI: {} }, hostOverride: provider.address, tokenize: true };
  const routes = [{ policies: { localRateLimit }, backends: [{ ai }] }];
  await using gate = await gateway(JSON.stringify({ gateways: { default: { port: 0 } }, routes }));
  const first = [chat(gate, LONG), chat(gate, LONG)];
  await until(() => held.length === 2);
  expect((await chat(gate, LONG)).status).toBe(429);
  for (const response of held)
    response.writeHead(200, { 'content-type': 'application/json' }).end(completion(''));
  await Promise.all(first);
});

test('the policy `ai` of a provider is that of its backend, and is refused for one of several providers', async () => {
  await using provider = await llmProvider();
  const entry = {
    name: 'p',
    provider: { openAI: {} },
    hostOverride: provider.address,
    policies: { ai: { overrides: { temperature: 0.5 } } },
  };
  const config = (ai: object): string =>
    JSON.stringify({ gateways: { default: { port: 0 } }, routes: [{ backends: [{ ai }] }] });
  await using gate = await gateway(config(entry));
  await chat(gate, CHAT);
  expect(JSON.parse(provider.received[0]?.body ?? '')).toMatchObject({ temperature: 0.5 });
  await expect(gateway(config({ groups: [{ providers: [entry] }] }))).rejects.toThrow(
    'the policy `ai` of one of several providers has no effect',
  );
});
