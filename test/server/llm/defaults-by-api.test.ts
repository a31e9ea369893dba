import { expect, test } from 'vitest';
import { bodyOf, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const DEFAULTS = { temperature: 0.2, top_p: 0.5, max_tokens: 50, seed: 7, stop: ['x'] };
const messages = [{ role: 'user', content: 'Hi' }];
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];

test.each([
  ['oaiCompat', '/v1/chat/completions', { messages }, DEFAULTS],
  ['oaiCompat', '/v1/chat/completions', { messages, seed: 1 }, { ...DEFAULTS, seed: 1 }],
  ['oaiCompat', '/v1/messages', { messages, max_tokens: 9 }, { temperature: 0.2, top_p: 0.5, max_tokens: 9 }],
  ['oaiCompat', '/v1/responses', { input: 'Hi' }, { temperature: 0.2, top_p: 0.5, max_output_tokens: 50 }],
  ['oaiCompat', '/v1beta/models/m:generateContent', { contents, model: undefined }, {}],
  ['anthropic', '/v1/messages', { messages }, { temperature: 0.2, top_p: 0.5, max_tokens: 50 }],
  ['anthropic', '/v1/responses', { input: 'Hi' }, { temperature: 0.2, top_p: 0.5, max_tokens: 50 }],
])('defaults for %s at %s are those that the API of the client has', async (kind, path, body, expected) => {
  await using provider = await llmProvider();
  const params = { baseUrl: `http://${provider.address}/v1`, apiKey: 'k' };
  await using served = await modelsGateway([{ name: 'm', provider: kind, params, defaults: DEFAULTS }]);
  const headers = { 'content-type': 'application/json' };
  await send(`${served.url}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ model: 'm', ...body }),
  });
  const fields = [...Object.keys(DEFAULTS), 'max_output_tokens'];
  const sent = Object.entries(bodyOf(provider)).filter(([field]) => fields.includes(field));
  expect(Object.fromEntries(sent)).toEqual(expected);
});
