/** A provider of LiteLLM as one of a configuration. */
export interface KnownProvider {
  readonly provider: string;
  /** The variable that LiteLLM reads if `api_key` is not set. */
  readonly key?: string;
  /** Whether LiteLLM sends a made-up key if there is none, because such servers need none. */
  readonly needsNoKey?: boolean;
  /** The address, if it is not that of `provider`. */
  readonly base?: string;
  /** How `api_base` becomes `baseUrl`; by default they are the same. `NONE`: it cannot. */
  readonly baseUrl?: (base: string) => string | undefined;
}

const local = (key: string): KnownProvider => ({ provider: 'oaiCompat', key, needsNoKey: true });
const compatible = (base: string, key: string): KnownProvider => ({ provider: 'oaiCompat', base, key });

/** LiteLLM appends the version to `api_base` of some providers, where `baseUrl` has it. */
const withVersion = (base: string): string => (base.endsWith('/v1') ? base : `${base}/v1`);

const OPENAI: KnownProvider = { provider: 'oaiCompat', key: 'OPENAI_API_KEY' };
const OLLAMA: KnownProvider = { provider: 'ollama', needsNoKey: true, baseUrl: withVersion };
const COHERE: KnownProvider = {
  provider: 'cohere',
  key: 'COHERE_API_KEY',
  // The whole address of a call in Cohere's own API.
  baseUrl: (base) =>
    base.startsWith('https://api.cohere.') ? 'https://api.cohere.ai/compatibility/v1' : undefined,
};

/** LiteLLM's names of providers: the part of `model` before the first slash. */
export const PROVIDERS: Readonly<Record<string, KnownProvider>> = {
  openai: OPENAI,
  custom_openai: OPENAI,
  'text-completion-openai': OPENAI,
  hosted_vllm: local('HOSTED_VLLM_API_KEY'),
  litellm_proxy: local('LITELLM_PROXY_API_KEY'),
  lm_studio: local('LM_STUDIO_API_KEY'),
  anthropic: {
    provider: 'anthropic',
    key: 'ANTHROPIC_API_KEY',
    baseUrl: (base) => (base.endsWith('/v1/messages') ? base.slice(0, -'/messages'.length) : `${base}/v1`),
  },
  gemini: { provider: 'gemini', key: 'GEMINI_API_KEY' },
  vertex_ai: { provider: 'vertex' },
  vertex_ai_beta: { provider: 'vertex' },
  bedrock: { provider: 'bedrock' },
  bedrock_converse: { provider: 'bedrock' },
  azure: { provider: 'azure', key: 'AZURE_API_KEY' },
  azure_ai: { provider: 'azure', key: 'AZURE_AI_API_KEY' },
  mistral: { provider: 'mistral', key: 'MISTRAL_API_KEY', baseUrl: withVersion },
  groq: { provider: 'groq', key: 'GROQ_API_KEY' },
  ollama: OLLAMA,
  ollama_chat: OLLAMA,
  openrouter: { provider: 'openrouter', key: 'OPENROUTER_API_KEY' },
  deepseek: { provider: 'deepseek', key: 'DEEPSEEK_API_KEY' },
  xai: { provider: 'xai', key: 'XAI_API_KEY' },
  cohere: COHERE,
  cohere_chat: COHERE,
  together_ai: { provider: 'togetherai', key: 'TOGETHERAI_API_KEY' },
  fireworks_ai: { provider: 'fireworks', key: 'FIREWORKS_API_KEY' },
  cerebras: { provider: 'cerebras', key: 'CEREBRAS_API_KEY' },
  deepinfra: { provider: 'deepinfra', key: 'DEEPINFRA_API_KEY' },
  huggingface: { provider: 'huggingface', key: 'HUGGINGFACE_API_KEY', baseUrl: withVersion },
  baseten: { provider: 'baseten', key: 'BASETEN_API_KEY' },
  perplexity: compatible('https://api.perplexity.ai', 'PERPLEXITYAI_API_KEY'),
  nvidia_nim: compatible('https://integrate.api.nvidia.com/v1', 'NVIDIA_NIM_API_KEY'),
  sambanova: compatible('https://api.sambanova.ai/v1', 'SAMBANOVA_API_KEY'),
  moonshot: compatible('https://api.moonshot.ai/v1', 'MOONSHOT_API_KEY'),
  codestral: compatible('https://codestral.mistral.ai/v1', 'CODESTRAL_API_KEY'),
  dashscope: compatible('https://dashscope-intl.aliyuncs.com/compatible-mode/v1', 'DASHSCOPE_API_KEY'),
  friendliai: compatible('https://api.friendli.ai/serverless/v1', 'FRIENDLIAI_API_KEY'),
  github: compatible('https://models.inference.ai.azure.com', 'GITHUB_API_KEY'),
  meta_llama: compatible('https://api.llama.com/compat/v1', 'LLAMA_API_KEY'),
  nebius: compatible('https://api.studio.nebius.ai/v1', 'NEBIUS_API_KEY'),
  volcengine: compatible('https://ark.cn-beijing.volces.com/api/v3', 'VOLCENGINE_API_KEY'),
  zai: compatible('https://api.z.ai/api/paas/v4', 'ZAI_API_KEY'),
};
