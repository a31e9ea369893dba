import type { Path } from '../../core/diagnostic.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { HeaderChanges } from '../../server/kernel/header-changes.ts';
import { findProvider } from '../../server/llm/providers/index.ts';
import type { CheckContext } from './check.ts';

/** An endpoint that lists models, with the credentials for it. */
export interface LlmEndpoint {
  /** Names of the models in the configuration. */
  readonly models: string[];
  readonly provider: string;
  /** URL before `/models`. */
  readonly url: URL;
  /** Whether the configuration sets the URL; otherwise the provider's default applies. */
  readonly isConfigured: boolean;
  readonly key: string | undefined;
  /** Environment variable with the key, if the value is nothing but a reference to it. */
  readonly variable: string | undefined;
  /** Changes to the request headers. */
  readonly headers: HeaderChanges | undefined;
}

type LlmConfig = NonNullable<
  CheckContext['gateways'][number]['routes'][number]['config']['backends'][number]['llm']
>;

/** Every endpoint that serves models of the configuration, once per key. */
export function llmEndpoints({ gateways, loaded: { source } }: CheckContext): LlmEndpoint[] {
  const endpoints = new Map<string, LlmEndpoint>();
  for (const { config, path, backendPath } of gateways.flatMap(({ routes }) => routes)) {
    for (const [index, { llm }] of config.backends.entries()) {
      const at = backendPath ?? [...path, 'backends', index, 'llm'];
      for (const [place] of (llm?.models ?? []).entries()) {
        const endpoint = endpointOf(llm as LlmConfig, place, at, source);
        if (endpoint === undefined) continue;
        const { url, key, headers, models } = endpoint;
        const id = JSON.stringify([url.href, key, headers]);
        const known = endpoints.get(id);
        if (known === undefined) endpoints.set(id, endpoint);
        else if (!known.models.includes(models[0] as string)) known.models.push(...models);
      }
    }
  }
  return [...endpoints.values()];
}

/** Undefined for a model that the gateway answers itself, and for one whose mistakes the `config` group reports. */
function endpointOf(
  { models, providers }: LlmConfig,
  place: number,
  at: Path,
  source: YamlSource,
): LlmEndpoint | undefined {
  const model = models[place] as LlmConfig['models'][number];
  const { provider, params, requestHeaders } = model;
  const entryAt =
    typeof provider === 'string' ? -1 : providers.findIndex((e) => e.name === provider.reference);
  const entry = providers[entryAt];
  const kind = findProvider(typeof provider === 'string' ? provider : (entry?.provider ?? ''));
  const configured = params.baseUrl ?? entry?.params.baseUrl;
  const url = configured ?? kind?.baseUrl;
  if (kind === undefined || kind.answer !== undefined || url === undefined) return undefined;
  const keyAt = params.apiKey === undefined ? ['providers', entryAt] : ['models', place];
  return {
    models: [model.name],
    provider: kind.key,
    url: new URL(url),
    isConfigured: configured !== undefined,
    key: params.apiKey ?? entry?.params.apiKey,
    variable: variableAt([...at, ...keyAt, 'params', 'apiKey'], source),
    headers: requestHeaders,
  };
}

/** The environment variable that a value refers to, if the value is nothing but that reference. */
export function variableAt(path: Path, source: YamlSource): string | undefined {
  if (!source.isReference(path)) return undefined;
  const { start, end } = source.valueRange(path);
  return /^["']?\$\{?([A-Za-z_]\w*)\}?["']?$/.exec(source.text.slice(start.offset, end.offset))?.[1];
}
