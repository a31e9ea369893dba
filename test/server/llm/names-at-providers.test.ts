import { expect, test } from 'vitest';
import { bodyOf, CHAT, chat, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

test.each([
  ['anthropic/*', '*', 'anthropic/claude-x', 'claude-x'],
  ['my/*', 'meta/llama-*', 'my/70b', 'meta/llama-70b'],
  ['*-latest', '*', 'gpt-latest', 'gpt'],
  ['*', 'team/*', 'gpt', 'team/gpt'],
  ['price-*', 'one', 'price-$&', 'one'],
  ['price-*', 'a-*', 'price-$&', 'a-$&'],
  // Without a star in the name it is a name like any other.
  ['plain', 'a*', 'plain', 'a*'],
])('the model `%s` with `params.model: %s` sends %s as %s', async (name, model, requested, sent) => {
  await using provider = await llmProvider();
  const params = { baseUrl: `http://${provider.address}/v1`, model };
  await using served = await modelsGateway([{ name, provider: 'oaiCompat', params }]);
  expect((await chat(served, { ...CHAT, model: requested })).status).toBe(200);
  expect(bodyOf(provider, 0)['model']).toBe(sent);
});

test('the path of a Gemini call, and the target of a virtual model, get the text of the star', async () => {
  await using provider = await llmProvider();
  const params = { baseUrl: `http://${provider.address}/v1beta`, model: '*', apiKey: 'k' };
  const virtualModels = [{ name: 'any', routing: { weighted: { targets: [{ model: 'gemini/pro' }] } } }];
  const models = [{ name: 'gemini/*', provider: 'gemini', params }];
  await using served = await modelsGateway(models, { virtualModels });
  const body = JSON.stringify({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] });
  const headers = { 'content-type': 'application/json' };
  for (const name of ['gemini/flash', 'any'])
    await send(`${served.url}/v1beta/models/${name}:generateContent`, { method: 'POST', headers, body });
  expect(provider.received.map(({ target }) => target)).toEqual([
    '/v1beta/models/flash:generateContent',
    '/v1beta/models/pro:generateContent',
  ]);
});
