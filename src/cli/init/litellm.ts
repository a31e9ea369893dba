import { elementsOf, entryIn, isRecord, membersOf, stringIn } from '../../core/foreign.ts';
import { type Imported, NotImported } from './imported.ts';
import { addDeployments, type Deployment } from './litellm-groups.ts';
import { readServers } from './mcp-servers.ts';
import type { PlaceholderContext } from './placeholders.ts';
import { variableName } from './variables.ts';

type Entry = Readonly<Record<string, unknown>>;

/** LiteLLM's names of providers (the part of `model` before the first slash), as providers of a configuration. */
const PROVIDERS: Readonly<Record<string, string>> = {
  openai: 'oaiCompat',
  custom_openai: 'oaiCompat',
  hosted_vllm: 'oaiCompat',
  litellm_proxy: 'oaiCompat',
  lm_studio: 'oaiCompat',
  anthropic: 'anthropic',
  gemini: 'gemini',
  vertex_ai: 'vertex',
  bedrock: 'bedrock',
  azure: 'azure',
  azure_ai: 'azure',
  mistral: 'mistral',
  groq: 'groq',
  ollama: 'ollama',
  ollama_chat: 'ollama',
  openrouter: 'openrouter',
  deepseek: 'deepseek',
  xai: 'xai',
  cohere: 'cohere',
  cohere_chat: 'cohere',
  together_ai: 'togetherai',
  fireworks_ai: 'fireworks',
  cerebras: 'cerebras',
  deepinfra: 'deepinfra',
  huggingface: 'huggingface',
  baseten: 'baseten',
};

/** Members of `litellm_params` that are fields of each request. */
const FIELDS = [
  'temperature',
  'top_p',
  'max_tokens',
  'max_completion_tokens',
  'seed',
  'stop',
  'reasoning_effort',
];

/** Members of `litellm_params` that have a counterpart, besides `FIELDS`. */
const READ: ReadonlySet<string> = new Set([
  ...['model', 'api_key', 'api_base', 'base_url', 'api_version', 'weight'],
  ...['aws_region_name', 'vertex_project', 'vertex_location', 'custom_llm_provider'],
]);

export const isLitellm = (value: unknown): value is Entry =>
  isRecord(value) && Array.isArray(value['model_list']);

/** Adds the models of LiteLLM's `config.yaml`, the key of its clients, and its MCP servers. */
export function readLitellm(file: Entry, context: PlaceholderContext, imported: Imported): void {
  const deployments: Deployment[] = [];
  for (const [index, each] of elementsOf(file['model_list']).entries()) {
    const name = stringIn(membersOf(each)['model_name']) ?? `model_list[${index}]`;
    try {
      deployments.push(readModel(name, each, context, imported));
    } catch (error) {
      if (!(error instanceof NotImported)) throw error;
      imported.leftOut.push({ what: `${name} in ${context.source}`, reason: error.message });
    }
  }
  const general = section(file, 'general_settings');
  const litellm = section(file, 'litellm_settings');
  const router = section(file, 'router_settings');
  const masterKey = general['master_key'];
  if (typeof masterKey === 'string')
    imported.clientKeys.push(secret('LITELLM_MASTER_KEY', masterKey, 'general_settings', context));
  addDeployments(deployments, litellm['fallbacks'] ?? router['fallbacks'], context.source, imported);
  const servers = file['mcp_servers'];
  if (isRecord(servers)) readServers(withBearerTokens(servers), context, imported);
  reportRest(file, { general, litellm, router }, context, imported);
}

const section = (file: Entry, key: string): Entry => membersOf(file[key]);

function readModel(name: string, each: unknown, context: PlaceholderContext, imported: Imported): Deployment {
  const params = membersOf(membersOf(each)['litellm_params']);
  if (typeof params['model'] !== 'string') throw new NotImported('it has no `litellm_params.model`');
  const [kind, model] = providerAndModel(params['model'], params['custom_llm_provider']);
  const provider = entryIn(PROVIDERS, kind);
  if (provider === undefined) throw new NotImported(`the provider \`${kind}\` has no counterpart`);
  const overrides = Object.fromEntries(
    FIELDS.flatMap((key) => (params[key] === undefined ? [] : [[key, params[key]]])),
  );
  const weight = typeof params['weight'] === 'number' ? Math.max(1, Math.round(params['weight'])) : 1;
  const ignored = Object.keys(params).filter((key) => !READ.has(key) && !FIELDS.includes(key));
  if (ignored.length > 0)
    imported.leftOut.push({
      what: `${ignored.map((key) => `\`${key}\``).join(', ')} of ${name} in ${context.source}`,
      reason: 'no counterpart in a model',
    });
  return {
    name,
    weight,
    model: {
      provider,
      params: { ...(model.includes('*') ? {} : { model }), ...connection(provider, params, name, context) },
      ...(Object.keys(overrides).length > 0 && { overrides }),
    },
  };
}

/** LiteLLM takes a model without a provider for one of OpenAI, or of Anthropic if its name says so. */
function providerAndModel(model: string, custom: unknown): [string, string] {
  if (typeof custom === 'string') return [custom, model.replace(`${custom}/`, '')];
  const slash = model.indexOf('/');
  if (slash > 0) return [model.slice(0, slash), model.slice(slash + 1)];
  return [model.startsWith('claude') ? 'anthropic' : 'openai', model];
}

/** Variables that LiteLLM reads if `api_key` is not set. */
const KEY_VARIABLES: Readonly<Record<string, string>> = {
  oaiCompat: 'OPENAI_API_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  gemini: 'GEMINI_API_KEY',
  azure: 'AZURE_API_KEY',
  mistral: 'MISTRAL_API_KEY',
  groq: 'GROQ_API_KEY',
  openrouter: 'OPENROUTER_API_KEY',
  deepseek: 'DEEPSEEK_API_KEY',
  xai: 'XAI_API_KEY',
  cohere: 'COHERE_API_KEY',
  togetherai: 'TOGETHERAI_API_KEY',
  fireworks: 'FIREWORKS_API_KEY',
  cerebras: 'CEREBRAS_API_KEY',
  deepinfra: 'DEEPINFRA_API_KEY',
};

function connection(provider: string, params: Entry, name: string, context: PlaceholderContext): Entry {
  const text = (...keys: readonly string[]): string | undefined => {
    const value = keys.map((key) => params[key]).find((each) => typeof each === 'string' && each !== '');
    return typeof value === 'string' ? withoutOsEnviron(value, context) : undefined;
  };
  const base = text('api_base', 'base_url');
  const key = params['api_key'];
  const variable = KEY_VARIABLES[provider];
  const needsKey = variable !== undefined && (provider !== 'oaiCompat' || base === undefined);
  const apiKey =
    typeof key === 'string' && key !== ''
      ? secret(`${name}_API_KEY`, key, name, context)
      : needsKey
        ? reference(variable, context)
        : undefined;
  const azure = provider === 'azure' ? azureParams(base, text('api_version')) : undefined;
  return {
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(azure ?? (base === undefined ? {} : { baseUrl: baseUrl(provider, base) })),
    ...(provider === 'bedrock' ? { awsRegion: text('aws_region_name') ?? 'us-east-1' } : {}),
    ...(provider === 'vertex' && text('vertex_project') !== undefined
      ? { vertexProject: text('vertex_project') }
      : {}),
    ...(provider === 'vertex' && text('vertex_location') !== undefined
      ? { vertexRegion: text('vertex_location') }
      : {}),
  };
}

/** `api_base` of Ollama has no version; that of `params.baseUrl` has. */
function baseUrl(provider: string, base: string): string {
  const trimmed = base.replace(/\/+$/, '');
  return provider === 'ollama' && !trimmed.endsWith('/v1') ? `${trimmed}/v1` : trimmed;
}

function azureParams(base: string | undefined, version: string | undefined): Entry {
  const [, resource, kind] =
    /^https:\/\/([A-Za-z0-9-]+)\.(openai|services\.ai|cognitiveservices)\.azure\.com/.exec(base ?? '') ?? [];
  if (resource === undefined)
    throw new NotImported('its `api_base` is not `https://NAME.openai.azure.com`: write the model by hand');
  return {
    azureResourceName: resource,
    ...(kind === 'services.ai' ? { azureResourceType: 'foundry' } : {}),
    ...(version === undefined ? {} : { azureApiVersion: version }),
  };
}

/** `os.environ/NAME` is LiteLLM's reference to a variable. */
function withoutOsEnviron(text: string, context: PlaceholderContext): string {
  const [, name] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(text) ?? [];
  return name === undefined ? text.replaceAll('$', '$$$$') : reference(name, context);
}

function reference(name: string, { variables, source }: PlaceholderContext): string {
  variables.need(name, source);
  return `$\{${name}}`;
}

function secret(name: string, value: string, owner: string, context: PlaceholderContext): string {
  if (value.startsWith('os.environ/')) return withoutOsEnviron(value, context);
  return context.variables.reference(variableName(name), value, owner, `${owner} in ${context.source}`);
}

/** LiteLLM writes the token of an MCP server apart from its headers. */
function withBearerTokens(servers: Entry): Entry {
  return Object.fromEntries(
    Object.entries(servers).map(([name, each]) => {
      if (!isRecord(each)) return [name, each];
      const { auth_type: type, auth_value: value, authentication_token: token, ...rest } = each;
      const given = [value, token].find((one) => typeof one === 'string');
      if (type !== 'bearer_token' || typeof given !== 'string') return [name, rest];
      const [, variable] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(given) ?? [];
      const written = variable === undefined ? given : `\${${variable}}`;
      return [name, { ...rest, headers: { Authorization: `Bearer ${written}` } }];
    }),
  );
}

function reportRest(
  file: Entry,
  read: { general: Entry; litellm: Entry; router: Entry },
  { source }: PlaceholderContext,
  { leftOut }: Imported,
): void {
  const report = (prefix: string, entry: Entry, known: readonly string[]): void => {
    const keys = Object.keys(entry).filter((key) => !known.includes(key));
    if (keys.length > 0)
      leftOut.push({
        what: `${keys.map((key) => `\`${prefix}${key}\``).join(', ')} in ${source}`,
        reason: 'no counterpart, or set it by hand',
      });
  };
  report('', file, ['model_list', 'general_settings', 'litellm_settings', 'router_settings', 'mcp_servers']);
  report('general_settings.', read.general, ['master_key']);
  report('litellm_settings.', read.litellm, ['fallbacks', 'drop_params', 'set_verbose']);
  report('router_settings.', read.router, ['fallbacks']);
  if (read.litellm['drop_params'] === true)
    leftOut.push({
      what: `\`litellm_settings.drop_params\` in ${source}`,
      reason:
        'a parameter that a provider does not know is an error (400), never dropped: `transformation` of a model removes one',
    });
}
