import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { findProblems } from '../../../src/server/runtime/find-problems.ts';
import { CHAT, chat, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const MESSAGES = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] };

const postMessages = ({ url }: { url: string }, headers: Record<string, string> = {}): Promise<unknown> =>
  send(`${url}/v1/messages`, { method: 'POST', headers, body: JSON.stringify(MESSAGES) });

/** Messages of the problems of an `llm` section, each with its path. */
async function problems(llm: object): Promise<string[]> {
  const loaded = loadConfigText(stringify({ llm: { port: 0, ...llm } }), 'gateway.yaml', {});
  const found = await findProblems(loaded, { folder: '/', env: {} });
  return found.map(({ code, path, message }) => `${code} ${path.join('.')}: ${message}`);
}

describe('the anthropic provider', () => {
  test('the anthropic provider gets the key as x-api-key and the version header that it requires', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: { provider: 'anthropic' },
      params: { apiKey: 'sk-ant-api03-ours' },
    });
    await postMessages(gate, { 'x-api-key': 'client-key', authorization: 'Bearer client' });
    const { headers, target } = provider.received[0] ?? {};
    expect(target).toBe('/v1/messages');
    expect(headers).toMatchObject({ 'x-api-key': 'sk-ant-api03-ours', 'anthropic-version': '2023-06-01' });
    expect(headers).not.toHaveProperty('authorization');
  });

  test('the anthropic provider gets an OAuth token as bearer token, and the version of the client', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: { provider: 'anthropic' },
      params: { apiKey: 'sk-ant-oat01-ours' },
    });
    await postMessages(gate, { 'x-api-key': 'client-key', 'anthropic-version': '2099-01-01' });
    const { headers } = provider.received[0] ?? {};
    expect(headers).toMatchObject({
      authorization: 'Bearer sk-ant-oat01-ours',
      'anthropic-version': '2099-01-01',
    });
    expect(headers).not.toHaveProperty('x-api-key');
  });
});

describe('a custom provider', () => {
  const custom = (more: object, model: object = {}) => ({
    name: '*',
    provider: { custom: { formats: [{ type: 'completions' }], ...more } },
    ...model,
  });

  test('a custom provider is called at the path of its format, with its model, and is logged by its override', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: custom({
        model: 'theirs',
        providerOverride: 'perplexity',
        formats: [{ type: 'completions', path: '/api/chat' }, { type: 'embeddings' }],
      }),
    });
    await chat(gate, CHAT);
    expect(provider.received[0]?.target).toBe('/api/chat');
    expect(JSON.parse(provider.received[0]?.body ?? '')).toMatchObject({ model: 'theirs' });
    const line = await gate.accessLine(1);
    expect(line).toMatchObject({ 'gen_ai.provider.name': 'perplexity', 'gen_ai.request.model': 'acme-mini' });
  });

  test('a custom provider may be an entry of llm.providers, and is named custom by default', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: { provider: { reference: 'own' } },
      llm: { providers: [{ name: 'own', provider: { custom: { formats: [{ type: 'completions' }] } } }] },
    });
    await chat(gate, CHAT);
    expect(provider.received[0]?.target).toBe('/v1/chat/completions');
    expect(await gate.accessLine(1)).toMatchObject({ 'gen_ai.provider.name': 'custom' });
  });

  test('a custom provider without an address, without formats or with an unknown format is reported at its place', async () => {
    expect(await problems({ models: [custom({})] })).toEqual([
      'AGW0103 llm.models.0: provider `custom` needs `params.baseUrl`',
    ]);
    const params = { params: { baseUrl: 'http://127.0.0.1:1' } };
    const [none] = await problems({ models: [custom({ formats: [] }, params)] });
    expect(none).toContain('llm.models.0.provider');
    const [unknown] = await problems({ models: [custom({ formats: [{ type: 'gopher' }] }, params)] });
    expect(unknown).toContain('llm.models.0.provider');
  });
});
