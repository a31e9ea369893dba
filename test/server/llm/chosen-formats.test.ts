import { describe, expect, test } from 'vitest';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { answering, completion, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

// Codex has only the Responses API, and some servers do not (frappe/raven#1790, webai-at-home/webai-at-home#214); Claude Code has
// only that of messages.

const CALLS = {
  responses: { model: 'm', input: 'Hi' },
  messages: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
  completions: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
} as const;

const PATHS = {
  responses: '/v1/responses',
  messages: '/v1/messages',
  completions: '/v1/chat/completions',
} as const;

/** The path that the provider is asked at for a call. */
async function pathOf(
  provider: HttpUpstream,
  call: keyof typeof CALLS,
  params: object,
  kind = 'oaiCompat',
): Promise<string | undefined> {
  const entry = {
    name: '*',
    provider: kind,
    params: { apiKey: 'sk-1', baseUrl: `http://${provider.address}/v1`, ...params },
  };
  await using gate = await modelsGateway([entry]);
  await send(`${gate.url}${PATHS[call]}`, { method: 'POST', body: JSON.stringify(CALLS[call]) });
  return provider.received.at(-1)?.target;
}

describe('the APIs that a server has', () => {
  test.each([
    ['responses', {}, 'oaiCompat', '/v1/responses'],
    ['responses', { responses: 'translate' }, 'oaiCompat', '/v1/chat/completions'],
    ['responses', { responses: 'pass' }, 'cerebras', '/v1/responses'],
    ['messages', {}, 'oaiCompat', '/v1/chat/completions'],
    ['messages', { messages: 'pass' }, 'oaiCompat', '/v1/messages'],
    ['messages', { messages: 'translate' }, 'fireworks', '/v1/chat/completions'],
    // agentgateway/agentgateway#2501, danny-avila/LibreChat#14231: as chat completions, OpenAI refuses tools for these models.
    ['messages', { model: 'gpt-5.6-terra', responses: 'pass' }, 'oaiCompat', '/v1/responses'],
    ['messages', { model: 'openai/gpt-6', responses: 'pass' }, 'oaiCompat', '/v1/responses'],
    // A proxy or another server that may have no Responses API.
    ['messages', { model: 'gpt-5.6-terra' }, 'oaiCompat', '/v1/chat/completions'],
    ['messages', { model: 'gpt-5.4' }, 'azure', '/v1/responses'],
    ['messages', { model: 'gpt-5.4', azureResourceType: 'foundry' }, 'azure', '/v1/responses'],
    [
      'messages',
      { model: 'gpt-5.4-mini', azureApiVersion: '2025-04-01-preview' },
      'azure',
      '/v1/responses?api-version=2025-04-01-preview',
    ],
    ['completions', { model: 'gpt-5.6' }, 'oaiCompat', '/v1/chat/completions'],
    ['messages', { model: 'gpt-5.6', responses: 'translate' }, 'oaiCompat', '/v1/chat/completions'],
    ['messages', { model: 'gpt-5.1', responses: 'pass' }, 'oaiCompat', '/v1/chat/completions'],
    ['messages', { model: 'gpt-oss-120b' }, 'oaiCompat', '/v1/chat/completions'],
  ] as const)('a call of %s with %j of %s goes to %s', async (call, params, kind, path) => {
    await using provider = await llmProvider(answering(completion('hi')));
    expect(await pathOf(provider, call, params, kind)).toBe(path);
  });

  test('a client of the Responses API gets the answer of a server that only has chat completions', async () => {
    await using provider = await llmProvider(answering(completion('hello')));
    const params = { baseUrl: `http://${provider.address}/v1`, responses: 'translate' };
    await using gate = await modelsGateway([{ name: '*', provider: 'oaiCompat', params }]);
    const reply = await send(`${gate.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify(CALLS.responses),
    });
    expect(JSON.parse(reply.text)).toMatchObject({
      object: 'response',
      output: [{ content: [{ text: 'hello' }] }],
    });
  });

  test('a provider without another API of chats cannot be translated to', async () => {
    const model = { name: 'c', provider: 'anthropic', params: { apiKey: 'sk-a', messages: 'translate' } };
    const yaml = JSON.stringify({ llm: { port: 0, models: [model] } });
    const found = await findProblems(loadConfigText(yaml, 'gateway.yaml', {}), { folder: '/', env: {} });
    expect(found.map(({ message }) => message)).toContain(
      '`messages`: the provider has no other API for chats that they could be translated to',
    );
  });
});
