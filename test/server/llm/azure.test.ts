import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { CompileContext } from '../../../src/server/kernel/compile-context.ts';
import { azure } from '../../../src/server/llm/providers/azure.ts';
import { paramsSchema } from '../../../src/server/llm/providers/params.ts';
import { environment } from '../../kit/environment.ts';
import { CHAT, chat, errorOf, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

const gatewayTo = ({ address }: HttpUpstream, path: string, params: object, more: object = {}) =>
  llmGateway(
    { address },
    { model: { provider: 'azure' }, params: { baseUrl: `http://${address}${path}`, ...params }, ...more },
  );

const MESSAGES = { max_tokens: 9, messages: CHAT.messages };

/**
 * The command line of Azure as a program that numbers its tokens; the first one expires after a minute. Other sources of
 * the library keep their tokens for the life of the process.
 */
function commandLine(): Disposable & { readonly calls: () => string[] } {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-az-'));
  const calls = join(folder, 'calls');
  const script = `#!/bin/sh
echo "$*" >> '${calls}'
n=$(($(wc -l < '${calls}')))
if [ $n = 1 ]; then left=60; else left=7200; fi
echo "{\\"accessToken\\":\\"entra-$n\\",\\"expires_on\\":$(($(date +%s) + left))}"
`;
  writeFileSync(calls, '');
  writeFileSync(join(folder, 'az'), script, { mode: 0o700 });
  const env = environment({
    ...NO_AZURE,
    AZURE_TOKEN_CREDENTIALS: 'AzureCliCredential',
    PATH: `${folder}:${process.env['PATH']}`,
  });
  return {
    calls: () => readFileSync(calls, 'utf8').trim().split('\n'),
    [Symbol.dispose]() {
      env[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

const NO_AZURE = {
  AZURE_CLIENT_ID: undefined,
  AZURE_TENANT_ID: undefined,
  AZURE_CLIENT_SECRET: undefined,
  AZURE_FEDERATED_TOKEN_FILE: undefined,
  IDENTITY_ENDPOINT: undefined,
  IDENTITY_HEADER: undefined,
  // The chain asks the metadata service of a virtual machine only if it is told to, and no other program.
  AZURE_TOKEN_CREDENTIALS: 'EnvironmentCredential',
};

describe('addresses of the azure provider', () => {
  test.each([
    [{ azureResourceName: 'acme' }, 'https://acme.openai.azure.com/openai/v1'],
    [{ azureResourceName: 'acme', azureApiVersion: '2024-10-21' }, 'https://acme.openai.azure.com/openai'],
    [
      { azureResourceName: 'acme', azureResourceType: 'foundry', azureProjectName: 'p1' },
      'https://acme.services.ai.azure.com/api/projects/p1/openai/v1',
    ],
    [
      { azureResourceName: 'acme', azureResourceType: 'aiServices' },
      'https://acme.services.ai.azure.com/api/projects/acme/openai/v1',
    ],
  ] as const)('the base URL of %j is %s', (params, url) => {
    expect(azure.connect?.({ apiKey: 'key', ...params }, {} as CompileContext, {})?.baseUrl).toBe(url);
  });

  test.each([
    [undefined, '/openai/v1', '/v1/chat/completions', '/openai/v1/chat/completions'],
    ['preview', '/openai/v1', '/v1/responses', '/openai/v1/responses?api-version=preview'],
    ['latest', '/openai/v1', '/v1/responses', '/openai/v1/responses?api-version=latest'],
    [
      '2024-10-21',
      '/openai',
      '/v1/chat/completions',
      '/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21',
    ],
    [
      '2024-10-21',
      '/openai',
      '/v1/audio/translations',
      '/openai/deployments/my%20gpt/audio/translations?api-version=2024-10-21',
    ],
    ['2025-04-01-preview', '/openai', '/v1/responses', '/openai/responses?api-version=2025-04-01-preview'],
  ])(
    'with the API version %s, a call goes to the path of its deployment',
    async (version, base, path, target) => {
      await using upstream = await llmProvider();
      const params = { apiKey: 'azure-key', model: 'my gpt', ...(version && { azureApiVersion: version }) };
      await using gate = await gatewayTo(upstream, base, params);
      await send(`${gate.url}${path}`, {
        method: 'POST',
        headers: { 'api-key': 'client', authorization: 'Bearer client' },
        body: JSON.stringify({ ...CHAT, input: 'Hi' }),
      });
      const received = upstream.received[0];
      expect(received?.target).toBe(target);
      expect(received?.headers).toMatchObject({ 'api-key': 'azure-key' });
      expect(received?.headers).not.toHaveProperty('authorization');
    },
  );

  test.each(['v1', 'latest', 'preview', '2024-10-21', '2025-04-01-preview'])(
    'the API version %s of azure is valid',
    (azureApiVersion) => {
      expect(paramsSchema.safeParse({ azureApiVersion }).success).toBe(true);
    },
  );

  test.each(['yesterday', '2024-13-21', '2024-10-21-beta', '20241021', 'V1', '2024-10-21&x=1'])(
    'the API version %s of azure is rejected, with the forms that versions have',
    async (azureApiVersion) => {
      await using upstream = await llmProvider();
      await expect(gatewayTo(upstream, '', { apiKey: 'k', azureApiVersion })).rejects.toThrow(
        /azureApiVersion: expected `v1`, `latest`, `preview` or a date/,
      );
    },
  );

  test('Claude models of a Foundry resource get messages, other models chat completions', async () => {
    await using upstream = await llmProvider();
    const params = { apiKey: 'azure-key', azureResourceType: 'foundry' };
    await using gate = await gatewayTo(upstream, '/api/projects/p/openai/v1', params);
    const call = (model: string) =>
      send(`${gate.url}/v1/messages`, { method: 'POST', body: JSON.stringify({ model, ...MESSAGES }) });
    await call('claude-sonnet-4-5');
    await call('gpt-5');
    await chat(gate, { ...CHAT, model: 'claude-sonnet-4-5' });
    expect(upstream.received.map(({ target }) => target)).toEqual([
      '/anthropic/v1/messages',
      '/api/projects/p/openai/v1/chat/completions',
      '/anthropic/v1/messages',
    ]);
    expect(upstream.received[0]?.headers).toMatchObject({ 'anthropic-version': '2023-06-01' });
  });
});

describe('credentials of the azure provider', () => {
  test('without a key, calls carry a token for the kind of resource, which is shared and replaced before it expires', async () => {
    using az = commandLine();
    await using upstream = await llmProvider();
    await using gate = await gatewayTo(upstream, '/openai/v1', {}, { options: { level: 'trace' } });
    const call = () => chat(gate, CHAT, { 'api-key': 'client', authorization: 'Bearer client' });
    await Promise.all([call(), call()]);
    await call();
    await call();
    const sent = upstream.received.map(({ headers }) => headers['authorization']);
    expect(sent).toEqual(['entra-1', 'entra-1', 'entra-2', 'entra-2'].map((token) => `Bearer ${token}`));
    expect(upstream.received[0]?.headers).not.toHaveProperty('api-key');
    await using foundry = await gatewayTo(upstream, '', { azureResourceType: 'foundry' });
    await chat(foundry);
    const audiences = az.calls().map((call) => /--resource (\S+)/.exec(call)?.[1]);
    const ours = 'https://cognitiveservices.azure.com';
    expect(audiences).toEqual([ours, ours, 'https://ai.azure.com']);
    await gate.accessLine(4);
    expect([...gate.log, ...gate.accessLog].join('\n')).not.toContain('entra-');
  });

  test('without credentials, the client gets a 503, and the log names the places that were searched', async () => {
    using _env = environment(NO_AZURE);
    await using upstream = await llmProvider();
    await using gate = await gatewayTo(upstream, '/openai/v1', {});
    const reply = await chat(gate);
    expect(reply.status).toBe(503);
    expect(errorOf(reply).message).toBe(
      'upstream call failed: the gateway has no valid credentials for the provider',
    );
    expect((await gate.accessLine(1))['error.detail']).toContain('AZURE_CLIENT_ID, AZURE_TENANT_ID');
    expect(upstream.received).toHaveLength(0);
  });

  test('a model without a resource is reported', async () => {
    await using upstream = await llmProvider();
    await expect(gatewayTo(upstream, '', { baseUrl: undefined, apiKey: 'k' })).rejects.toThrow(
      'provider `azure` needs `azureResourceName` or `baseUrl`',
    );
  });
});
