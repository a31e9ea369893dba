import { expect, test } from 'vitest';
import { budgetGateway, spentIn } from '../../kit/budgets.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { CHAT, chat, errorOf, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

// A budget reserves what a request asks for. A number that is none must not reserve the default while the provider reads
// something else: Modular #6673 (`max_tokens` without a bound), AnythingLLM #1445 (one that is no number).

const post = (url: string, body: string): ReturnType<typeof send> =>
  send(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

const BAD = ['1e308', '9007199254740992', '-1', '1.5', '"5"', 'true', '[5]', '{}', '1e999'];

test.each([
  ['/v1/chat/completions', ['max_tokens', 'max_completion_tokens', 'n'], { ...CHAT }],
  ['/v1/completions', ['max_tokens', 'n', 'best_of'], { model: 'm', prompt: 'Hi' }],
  ['/v1/responses', ['max_output_tokens'], { model: 'm', input: 'Hi' }],
  ['/v1/messages', ['max_tokens'], { model: 'm', messages: CHAT.messages }],
  ['/v1/images/generations', ['n'], { model: 'm', prompt: 'Hi' }],
])('%s refuses numbers of tokens and answers that are none', async (path, names, request) => {
  await using provider = await llmProvider();
  await using gate = await llmGateway(provider);
  for (const name of names)
    for (const value of BAD) {
      const body = JSON.stringify(request).replace(/\}$/, `,"${name}":${value}}`);
      const reply = await post(gate.url + path, body);
      expect([name, value, reply.status]).toEqual([name, value, 400]);
      expect(reply.text).toContain(`\`${name}\` is not a whole number from `);
    }
  expect(provider.received).toEqual([]);
});

test.each(['generationConfig', 'generation_config'])(
  '%s of Gemini refuses numbers that are none',
  async (config) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    for (const name of ['maxOutputTokens', 'max_output_tokens', 'candidateCount', 'candidate_count'])
      for (const value of BAD) {
        const body = `{"contents":[],"${config}":{"${name}":${value}}}`;
        const reply = await post(`${gate.url}/v1beta/models/m:generateContent`, body);
        expect([name, value, reply.status]).toEqual([name, value, 400]);
        expect(reply.text).toContain(`${config}.${name}`);
      }
    expect(provider.received).toEqual([]);
    for (const value of ['null', '{}', '{"maxOutputTokens":null}']) {
      const body = `{"contents":[],"${config}":${value}}`;
      const reply = await post(`${gate.url}/v1beta/models/m:generateContent`, body);
      expect([value, reply.text]).not.toEqual([value, expect.stringContaining('whole number')]);
      expect([value, reply.status]).not.toEqual([value, 500]);
    }
  },
);

test('numbers of tokens that are one reach the provider as they were written, and null counts as absent', async () => {
  await using provider = await llmProvider();
  await using gate = await llmGateway(provider);
  for (const more of ['"max_tokens":9.0', '"max_tokens":null', '"n":1', '"max_completion_tokens":0'])
    expect(
      (await post(`${gate.url}/v1/chat/completions`, JSON.stringify(CHAT).replace(/\}$/, `,${more}}`)))
        .status,
    ).toBe(200);
  expect(provider.received.map(({ body }) => body.slice(-18))).toMatchObject([
    expect.stringContaining('"max_tokens":9.0'),
    ...Array.from({ length: 3 }, () => expect.anything()),
  ]);
});

test('a budget reserves the largest of several maximums, for each of the answers', async () => {
  await using folder = await temporaryFolder();
  await using provider = await llmProvider();
  const policies = { budgets: [{ name: 'all', limit: '5000tokens/day' }] };
  await using gate = await budgetGateway(provider, folder.path, policies);
  for (const more of [
    { max_tokens: 1e7 },
    { max_completion_tokens: 1, max_tokens: 1e6 },
    { max_tokens: 10, n: 1000 },
    { max_tokens: 10, best_of: 1000 },
  ]) {
    const reply = await chat(gate, { ...CHAT, ...more });
    expect([more, reply.status]).toEqual([more, 429]);
  }
  expect(errorOf(await chat(gate, { ...CHAT, Max_Tokens: 5 })).message).toContain('only by case');
  expect([provider.received.length, await spentIn(gate)]).toEqual([0, []]);
});
