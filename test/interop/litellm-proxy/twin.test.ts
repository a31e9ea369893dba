import { afterAll, beforeAll, test } from 'vitest';
import { PROXY_KEY } from './proxy.ts';
import { type Case, compareTwins, startTwins, type Twins } from './twins.ts';

// One `config.yaml`, served by LiteLLM itself and by a gateway that imported it: the provider must get the same calls.

const configFor = (base: string): string => `
model_list:
- { model_name: plain, litellm_params: { model: openai/gpt-plain, api_base: ${base}/v1, api_key: sk-plain } }
- { model_name: no-version, litellm_params: { model: openai/gpt-plain, api_base: ${base}, api_key: sk-plain } }
- { model_name: own-key, litellm_params: { model: gpt-5-mini, api_base: ${base}/v1 } }
- model_name: defaults
  litellm_params: { model: openai/gpt-plain, api_base: ${base}/v1, api_key: k, temperature: 0.2, max_tokens: 50, top_p: 0.5, seed: 7 }
- model_name: extras
  litellm_params: { model: openai/gpt-plain, api_base: ${base}/v1, api_key: k, extra_body: { chat_mode: 1 }, extra_headers: { x-team: red }, organization: org-1 }
- { model_name: claude, litellm_params: { model: anthropic/claude-sonnet-4-5, api_base: ${base}, max_tokens: 99 } }
- { model_name: claude-full, litellm_params: { model: anthropic/claude-sonnet-4-5, api_base: ${base}/v1/messages } }
- { model_name: claude-seed, litellm_params: { model: anthropic/claude-sonnet-4-5, api_base: ${base}, seed: 7 } }
- { model_name: "anthropic/*", litellm_params: { model: "anthropic/*", api_base: ${base} } }
- { model_name: "openai/*", litellm_params: { model: "openai/*", api_base: ${base}/v1 } }
- { model_name: "team/*", litellm_params: { model: "openai/big-*", api_base: ${base}/team/v1, api_key: sk-team } }
- { model_name: "*", litellm_params: { model: "openai/*", api_base: ${base}/rest/v1, api_key: sk-rest } }
- { model_name: azure, litellm_params: { model: azure/deployed, api_base: ${base}, api_version: "2024-10-21" } }
- { model_name: azure-default, litellm_params: { model: azure/deployed, api_base: ${base} } }
- { model_name: mistral, litellm_params: { model: mistral/small, api_base: ${base}, api_key: k } }
- { model_name: mistral-version, litellm_params: { model: mistral/small, api_base: ${base}/v1, api_key: k } }
- { model_name: groq, litellm_params: { model: groq/llama, api_base: ${base}/openai/v1, api_key: k } }
- { model_name: deepseek, litellm_params: { model: deepseek/chat, api_base: ${base}, api_key: k } }
- { model_name: vllm, litellm_params: { model: hosted_vllm/qwen, api_base: ${base}/v1 } }
- { model_name: local, litellm_params: { model: ollama_chat/llama3, api_base: ${base} } }
- { model_name: embed, litellm_params: { model: openai/embedder, api_base: ${base}/v1, api_key: k } }
- { model_name: broken, litellm_params: { model: openai/fails-500, api_base: ${base}/v1, api_key: k } }
- { model_name: busy, litellm_params: { model: openai/fails-429, api_base: ${base}/v1, api_key: k } }
- { model_name: refused, litellm_params: { model: openai/fails-400, api_base: ${base}/v1, api_key: k } }
- { model_name: gone, litellm_params: { model: openai/fails-404, api_base: ${base}/v1, api_key: k } }
- { model_name: late, litellm_params: { model: openai/fails-408, api_base: ${base}/v1, api_key: k } }
- { model_name: locked, litellm_params: { model: openai/fails-401, api_base: ${base}/v1, api_key: k } }
- { model_name: alone, litellm_params: { model: openai/fails-500, api_base: ${base}/v1, api_key: k } }
- { model_name: chained, litellm_params: { model: openai/fails-503, api_base: ${base}/v1, api_key: k } }
- { model_name: slow, litellm_params: { model: openai/slow, api_base: ${base}/v1, api_key: k } }
- { model_name: pair, litellm_params: { model: openai/never, api_base: ${base}/v1, api_key: k, weight: 0 } }
- { model_name: pair, litellm_params: { model: openai/always, api_base: ${base}/v1, api_key: k, weight: 3 } }
- { model_name: ordered, litellm_params: { model: openai/second, api_base: ${base}/v1, api_key: k, order: 2 } }
- { model_name: ordered, litellm_params: { model: openai/first, api_base: ${base}/v1, api_key: k, order: 1 } }
litellm_settings:
  num_retries: 0
  request_timeout: 1
  fallbacks: [{ broken: [plain] }, { busy: [plain] }, { refused: [plain] }, { locked: [plain] }, { gone: [plain] }, { late: [plain] }, { chained: [broken] }, { slow: [plain] }, { "openai/fails-500": [plain] }]
router_settings: { disable_cooldowns: true, model_group_alias: { nickname: defaults, "other-name": pair } }
general_settings: { master_key: ${PROXY_KEY} }
`;

const MESSAGES = '/v1/messages';
const RESPONSES = '/v1/responses';
const TOOLS = [
  { type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } },
];
const AS_RESPONSES: Case['differs'] = {
  in: ['path', 'body'],
  because: 'LiteLLM translates messages to responses, the gateway to chat completions',
};
const sampled = { temperature: 0.9, max_tokens: 5, top_p: 1, seed: 1 };

const CASES: readonly Case[] = [
  { name: 'a chat', model: 'plain' },
  { name: 'a stream', model: 'plain', body: { stream: true } },
  { name: 'an address without a version', model: 'no-version' },
  { name: 'a key of the environment', model: 'own-key' },
  { name: 'defaults', model: 'defaults' },
  { name: 'defaults of a stream', model: 'defaults', body: { stream: true } },
  { name: 'values of the client instead of defaults', model: 'defaults', body: sampled },
  { name: 'one value of the client', model: 'defaults', body: { temperature: 1 } },
  { name: 'an alias', model: 'nickname' },
  { name: 'an alias of a group', model: 'other-name' },
  { name: 'further members and headers', model: 'extras' },
  { name: 'Claude', model: 'claude', body: { max_tokens: 20 } },
  { name: 'a default of Claude', model: 'claude' },
  { name: 'a stream of Claude', model: 'claude', body: { stream: true, max_tokens: 20 } },
  { name: 'Claude at its whole address', model: 'claude-full', body: { max_tokens: 20 } },
  { name: 'messages of Claude', model: 'claude', path: MESSAGES, body: { max_tokens: 20 } },
  { name: 'a stream of messages', model: 'claude', path: MESSAGES, body: { max_tokens: 20, stream: true } },
  { name: 'a wildcard of Anthropic', model: 'anthropic/claude-x', body: { max_tokens: 20 } },
  { name: 'messages of a wildcard', model: 'anthropic/claude-x', path: MESSAGES, body: { max_tokens: 20 } },
  { name: 'a wildcard of OpenAI', model: 'openai/gpt-x' },
  { name: 'a wildcard of another name', model: 'team/model' },
  { name: 'every other name', model: 'whatever' },
  { name: 'a deployment of Azure', model: 'azure' },
  { name: 'the default version of Azure', model: 'azure-default' },
  { name: 'Mistral', model: 'mistral' },
  { name: 'Mistral with a version', model: 'mistral-version' },
  {
    ...{ name: 'Groq', model: 'groq' },
    differs: { in: ['status'], because: 'LiteLLM does not read the answer of this provider' },
  },
  { name: 'DeepSeek', model: 'deepseek' },
  { name: 'vLLM', model: 'vllm' },
  {
    ...{ name: 'Ollama', model: 'local' },
    differs: {
      in: ['status', 'path', 'body'],
      because: 'the gateway uses its OpenAI API, at the same address',
    },
  },
  { name: 'embeddings', model: 'embed', path: '/v1/embeddings', body: { input: 'Hi' } },
  { name: 'a fallback after 500', model: 'broken' },
  { name: 'a fallback of a stream', model: 'broken', body: { stream: true } },
  { name: 'a fallback after 429', model: 'busy' },
  { name: 'a fallback after 404', model: 'gone' },
  { name: 'a fallback after 408', model: 'late' },
  {
    ...{ name: 'a fallback after 400', model: 'refused' },
    differs: { in: ['count', 'status'], because: 'a request that a provider refuses is not sent to others' },
  },
  { name: 'a fallback after 401', model: 'locked' },
  { name: 'a fallback of a fallback', model: 'chained' },
  { name: 'a fallback of a name that a wildcard matches', model: 'openai/fails-500' },
  { name: 'a fallback after the timeout', model: 'slow' },
  { name: 'a failure without a fallback', model: 'alone' },
  { name: 'a group by weight', model: 'pair' },
  { name: 'a group by order', model: 'ordered' },
  {
    ...{ name: 'messages of a model of OpenAI', model: 'plain', path: MESSAGES, body: { max_tokens: 20 } },
    differs: AS_RESPONSES,
  },
  {
    ...{ name: 'defaults of messages', model: 'defaults', path: MESSAGES, body: { max_tokens: 20 } },
    differs: AS_RESPONSES,
  },
  { name: 'responses of a model of OpenAI', model: 'plain', path: RESPONSES, body: { input: 'Hi' } },
  { name: 'a second name of max_tokens', model: 'defaults', body: { max_completion_tokens: 9 } },
  {
    ...{ name: 'responses with defaults', model: 'defaults', path: RESPONSES, body: { input: 'Hi' } },
    differs: { in: ['body'], because: 'LiteLLM leaves out `max_tokens`, which is `max_output_tokens` here' },
  },
  { name: 'responses of Claude with defaults', model: 'claude', path: RESPONSES, body: { input: 'Hi' } },
  {
    ...{ name: 'responses of Claude', model: 'claude-full', path: RESPONSES, body: { input: 'Hi' } },
    differs: { in: ['body'], because: 'Claude needs `max_tokens`: each has a maximum of its own' },
  },
  { name: 'embeddings with defaults', model: 'defaults', path: '/v1/embeddings', body: { input: 'Hi' } },
  { name: 'a chat of Claude with seed', model: 'claude-seed' },
  { name: 'messages of Claude with seed', model: 'claude-seed', path: MESSAGES, body: { max_tokens: 9 } },
  { name: 'a completion', model: 'defaults', path: '/v1/completions', body: { prompt: 'Hi' } },
  { name: 'tools', model: 'claude', body: { max_tokens: 9, tools: TOOLS } },
];

const stack = new AsyncDisposableStack();
let twins: Twins;
beforeAll(async () => {
  twins = stack.use(await startTwins(configFor));
}, 300_000);
afterAll(() => stack.disposeAsync());

test.each(CASES)('LiteLLM and the gateway make the same calls of the provider: $name', (each) =>
  compareTwins(twins, each),
);
