import { entryIn } from '../../../core/foreign.ts';

/** A provider of Portkey as one of a configuration. */
export interface KnownProvider {
  readonly provider: string;
  /** The variable with the key of a target that has none. */
  readonly key?: string;
  /** The address, if it is not that of `provider`. */
  readonly base?: string;
  /** What Portkey appends to `custom_host`, and `baseUrl` has. */
  readonly version?: string;
}

const compatible = (base: string, key: string, version?: string): KnownProvider => ({
  provider: 'oaiCompat',
  base,
  key,
  ...(version !== undefined && { version }),
});

/** Portkey's names of providers. */
const PROVIDERS: Readonly<Record<string, KnownProvider>> = {
  openai: { provider: 'oaiCompat', key: 'OPENAI_API_KEY' },
  anthropic: { provider: 'anthropic', key: 'ANTHROPIC_API_KEY' },
  google: { provider: 'gemini', key: 'GEMINI_API_KEY', version: '/v1beta' },
  'vertex-ai': { provider: 'vertex' },
  bedrock: { provider: 'bedrock' },
  'azure-openai': { provider: 'azure', key: 'AZURE_API_KEY' },
  'mistral-ai': { provider: 'mistral', key: 'MISTRAL_API_KEY' },
  groq: { provider: 'groq', key: 'GROQ_API_KEY' },
  ollama: { provider: 'ollama', version: '/v1' },
  openrouter: { provider: 'openrouter', key: 'OPENROUTER_API_KEY', version: '/v1' },
  deepseek: { provider: 'deepseek', key: 'DEEPSEEK_API_KEY', version: '/v1' },
  'x-ai': { provider: 'xai', key: 'XAI_API_KEY' },
  'together-ai': { provider: 'togetherai', key: 'TOGETHERAI_API_KEY', version: '/v1' },
  'fireworks-ai': { provider: 'fireworks', key: 'FIREWORKS_API_KEY' },
  cerebras: { provider: 'cerebras', key: 'CEREBRAS_API_KEY' },
  deepinfra: { provider: 'deepinfra', key: 'DEEPINFRA_API_KEY' },
  'perplexity-ai': compatible('https://api.perplexity.ai', 'PERPLEXITYAI_API_KEY'),
  moonshot: compatible('https://api.moonshot.cn/v1', 'MOONSHOT_API_KEY', '/v1'),
  sambanova: compatible('https://api.sambanova.ai/v1', 'SAMBANOVA_API_KEY', '/v1'),
  nebius: compatible('https://api.studio.nebius.ai/v1', 'NEBIUS_API_KEY'),
};

export const providerOf = (name: string): KnownProvider | undefined => entryIn(PROVIDERS, name);

/** The provider whose name a virtual key begins with, as Portkey proposes: `openai-prod-1a2b`. */
export function providerInName(name: string): string | undefined {
  const plain = name.toLowerCase();
  const found = Object.keys(PROVIDERS).filter((known) =>
    [known, known.replace(/-ai$|-openai$/, '')].some(
      (start) => plain === start || plain.startsWith(`${start}-`) || plain.startsWith(`${start}_`),
    ),
  );
  return found.toSorted((a, b) => b.length - a.length)[0];
}
