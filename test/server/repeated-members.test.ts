import { describe, expect, test } from 'vitest';
import { chat, errorOf, guardrail, llmGateway, llmProvider, textOf, webhook } from '../kit/llm-provider.ts';
import { proxyGateway } from '../kit/routes.ts';
import { send } from '../kit/send.ts';
import { httpUpstream } from '../kit/upstream.ts';

/** JSON with duplicate keys: a policy and the backend may read different values. */

const NESTED: readonly (readonly [what: string, body: string, name: string])[] = [
  [
    'in a message',
    '{"model":"m","messages":[{"role":"user","content":"FORBIDDEN","content":"ok"}]}',
    'content',
  ],
  [
    'once with an escape',
    '{"model":"m","messages":[{"role":"user","content":"FORBIDDEN","c\\u006fntent":"ok"}]}',
    'content',
  ],
  ['deep in a tool', '{"model":"m","messages":[],"tools":[{"f":{"p":{"a":[{"x y":1,"x y":2}]}}}]}', 'x y'],
  ['named like the prototype', '{"model":"m","messages":[{"__proto__":1,"__proto__":2}]}', '__proto__'],
  ['with other members between', '{"model":"m","a":{"é":{"b":1},"c":[{},{"d":2}],"\\u00e9":3}}', 'é'],
];

/** Equal keys in different objects, and strings that look like members. */
const UNIQUE =
  '{"model":"m","messages":[{"role":"user","content":"{\\"a\\":1,\\"a\\":2}"},{"role":"user","content":"a"}],"a":{"a":{"a":[{"a":1},{"a":"a"}]}}}';

describe('bodies with duplicate keys', () => {
  test.each(NESTED)(
    '%s: an LLM request with a duplicate key is rejected before guardrails and providers',
    async (_what, body, name) => {
      await using provider = await llmProvider();
      await using guard = await guardrail(() => ({}));
      await using served = await llmGateway(provider, { llm: { guardrails: { request: [webhook(guard)] } } });
      const reply = await chat(served, body);
      expect(reply.status).toBe(400);
      expect(errorOf(reply)).toMatchObject({
        code: 'invalid_request_body',
        message: `LLM request body must be valid JSON: duplicate member ${JSON.stringify(name)} in one object`,
      });
      expect([guard.received, provider.received]).toEqual([[], []]);
    },
  );

  test.each(NESTED)(
    '%s: a request with a duplicate key is rejected where a rule parses its body as JSON',
    async (_what, body, name) => {
      await using backend = await httpUpstream();
      // This rule is true for any body, which shows that no rule decides.
      const rules = ['true || json(request.body).model == "m"'];
      await using gate = await proxyGateway(backend.address, { authorization: { rules } });
      expect(await send(gate.url, { method: 'POST', body })).toMatchObject({
        status: 400,
        text: `the member ${JSON.stringify(name)} is repeated in one object of the request body`,
      });
      expect(backend.received).toEqual([]);
    },
  );

  test.each([
    ['the text of the body', { authorization: { rules: ['!string(request.body).contains("evil")'] } }],
    ['its beginning', { authorization: { rules: [{ deny: 'request.bodyPrefix.contains(b"evil")' }] } }],
    ['the request as a whole', { authorization: { rules: ['toJson(request).contains("a") || true'] } }],
    [
      'a key of a limit',
      {
        localRateLimit: [
          { maxTokens: 9, tokensPerFill: 9, fillInterval: '1m', key: 'string(json(request.body).a.b)' },
        ],
      },
    ],
  ])('a body with a duplicate key is rejected where an expression reads %s', async (_what, policies) => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, policies);
    const post = async (body: string) => (await send(gate.url, { method: 'POST', body })).status;
    expect(await post('{"a":{"b":1,"b":2}}')).toBe(400);
    expect(await post('{"a":{"b":1}}')).toBe(200);
    expect(await post('no JSON: {"a":1,"a":2}')).toBe(200);
    expect(backend.received).toHaveLength(2);
  });

  test('a body with a duplicate key is rejected where only its prefix is buffered', async () => {
    await using backend = await httpUpstream();
    const policies = { authorization: { rules: ['size(request.bodyPrefix) > 0'] } };
    const more = { frontendPolicies: { http: { maxBufferSize: 100 } } };
    await using gate = await proxyGateway(backend.address, policies, more);
    const post = async (body: string) => (await send(gate.url, { method: 'POST', body })).status;
    const rest = ' '.repeat(200);
    expect(await post(`{"a":{"b":1,"b":2},${rest}"c":1}`)).toBe(400);
    expect(await post(`{"a":{"b":1},${rest}"c":1}`)).toBe(200);
  });

  test('a body with a duplicate key passes byte for byte when no policy expression reads it', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, {
      authorization: { rules: ['request.method == "POST"'] },
    });
    const body = '{"a":1,"a":2}';
    expect((await send(gate.url, { method: 'POST', body })).status).toBe(200);
    expect(textOf(backend)).toBe(body);
  });
});

test('equal keys in different objects are not duplicates', async () => {
  await using provider = await llmProvider();
  await using served = await llmGateway(provider);
  expect((await chat(served, UNIQUE)).status).toBe(200);
  expect(textOf(provider)).toBe(UNIQUE);

  await using backend = await httpUpstream();
  await using gate = await proxyGateway(backend.address, {
    authorization: { rules: ['json(request.body).a.a.a[1].a == "a"'] },
  });
  expect((await send(gate.url, { method: 'POST', body: UNIQUE })).status).toBe(200);
});

test('a body with more members than the limit is rejected where a rule reads it', async () => {
  await using backend = await httpUpstream();
  await using gate = await proxyGateway(backend.address, {
    authorization: { rules: ['size(request.body) > 0'] },
  });
  const many = (count: number) => `[${Array.from({ length: count }, () => '{"a":1}').join(',')}]`;
  const post = async (body: string) => await send(gate.url, { method: 'POST', body });
  expect((await post(many(50_000))).status).toBe(200);
  const refused =
    'the request body nests deeper than 128 or has more than 50000 members, which is over the limit for rules that read it';
  expect(await post(many(50_001))).toMatchObject({ status: 400, text: refused });
  expect(await post('['.repeat(129))).toMatchObject({ status: 400, text: refused });
});
