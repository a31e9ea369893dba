import { describe, expect, test } from 'vitest';
import { environment } from '../kit/environment.ts';
import type { TestGateway } from '../kit/gateway.ts';
import { answering, chat, completion, llmGateway, llmProvider, webhook } from '../kit/llm-provider.ts';
import { send } from '../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../kit/upstream.ts';

// `JSON.parse` reads millions of levels; a function that calls itself for each of them has stack for some thousands.

const around = (open: string, close: string, levels: number): string =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;
const DEEP = {
  lists: around('[', ']', 100_000),
  objects: around('{"action":', '}', 100_000),
  parts: around('[{"type":"text","text":', '}]', 20_000),
  'lists and a long number': around('[', ']', 6_000).replace('1', '12345678901234567890'),
};

/** Answers JSON that has `deep` where `value` has the text "HERE". */
const holding = (value: string, deep: string) => answering(value.replace('"HERE"', deep));

/** Reads the answer wherever a configuration can: expressions of the log, of a header, and the traces. */
const READING = {
  llm: {
    policies: { transformations: { response: { set: { 'x-size': 'string(size(json(response.body)))' } } } },
  },
  more: {
    frontendPolicies: {
      accessLog: { add: { said: 'llm.completion', all: 'toJson(llm.completion)' } },
    },
    config: { tracing: { otlpEndpoint: 'http://127.0.0.1:1', randomSampling: true } },
  },
};

const AWS = {
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'secret',
  AWS_SESSION_TOKEN: undefined,
};

/** Guardrails that ask a service, and an answer of it. */
const GUARDS = {
  'a webhook': { guard: webhook, answer: '{"action":{"body":{"messages":"HERE"}}}' },
  'Bedrock Guardrails': {
    guard: ({ address }: HttpUpstream) => ({
      bedrockGuardrails: {
        guardrailIdentifier: 'gr-1',
        guardrailVersion: 'DRAFT',
        region: 'eu-west-1',
        baseUrl: `http://${address}`,
        policies: { backendAuth: { aws: {} } },
      },
    }),
    answer: '{"action":"GUARDRAIL_INTERVENED","outputs":[{"text":"a"}],"assessments":["HERE"]}',
  },
};

const problems = ({ log }: TestGateway): string[] => log.filter((line) => line.includes('\terror\t'));

describe.each(Object.entries(DEEP))('%s inside of each other', (kind, deep) => {
  test(`an answer of a provider with thousands of ${kind} inside of each other fails at most its call`, async () => {
    const [content, all] = [completion('HERE'), '"HERE"'];
    for (const answer of [content, all]) {
      await using provider = await llmProvider(holding(answer, deep));
      await using gate = await llmGateway(provider, READING);
      expect([200, 502]).toContain((await chat(gate)).status);
      const message = { model: 'acme-mini', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] };
      const reply = await send(`${gate.url}/v1/messages`, { method: 'POST', body: JSON.stringify(message) });
      expect([200, 502]).toContain(reply.status);
      expect(problems(gate)).toEqual([]);
    }
  });

  test.each(Object.entries(GUARDS))(
    `an answer of %s with thousands of ${kind} inside of each other rejects the call`,
    async (_, { guard, answer }) => {
      await using provider = await llmProvider();
      await using service = await httpUpstream(holding(answer, deep));
      using _env = environment(AWS);
      await using gate = await llmGateway(provider, { model: { guardrails: { request: [guard(service)] } } });
      expect((await chat(gate)).status).toBeGreaterThan(400);
      expect(provider.received).toEqual([]);
      expect(problems(gate)).toEqual([]);
    },
  );
});
