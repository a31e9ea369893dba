import type { Path } from '../../core/diagnostic.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import type { HeaderChanges } from '../../server/kernel/header-changes.ts';
import { findProvider } from '../../server/llm/providers/index.ts';
import type { CheckContext } from './check.ts';

/** A place where models are asked, with what is sent there to be let in. */
export interface LlmEndpoint {
  /** Models that are asked there, as configured. */
  readonly models: string[];
  readonly provider: string;
  /** URL before `/models`. */
  readonly url: URL;
  /** The configuration says where; otherwise the kind of provider does. */
  readonly isConfigured: boolean;
  readonly key: string | undefined;
  /** Environment variable that holds the key, when it is one and nothing else. */
  readonly variable: string | undefined;
  /** Changes of the headers that it receives. */
  readonly headers: HeaderChanges | undefined;
}

type LlmConfig = NonNullable<
  CheckContext['gateways'][number]['routes'][number]['config']['backends'][number]['llm']
>;

/** Every place that models of the configuration are asked at, once for each key that it gets. */
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

/** Undefined for a model that is answered here, and for one whose mistakes `config` reports. */
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

/** The environment variable that a value of the file is, when it is one and nothing else. */
export function variableAt(path: Path, source: YamlSource): string | undefined {
  if (!source.isReference(path)) return undefined;
  const { start, end } = source.valueRange(path);
  return /^["']?\$\{?([A-Za-z_]\w*)\}?["']?$/.exec(source.text.slice(start.offset, end.offset))?.[1];
}
