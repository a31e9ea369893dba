import type { ModelView } from '../../core/overview.ts';
import type { DumpPlace } from '../kernel/backend.ts';
import type {
  DumpBackend,
  DumpEndpoint,
  DumpEndpointInfo,
  DumpEndpointSet,
  DumpModel,
} from '../kernel/config-dump.ts';
import { type ModelConfig, modelBackend } from './models/model.ts';
import { shownProvider } from './models/model-provider.ts';
import type { VirtualModelConfig } from './models/virtual-models.ts';

interface LlmConfig {
  readonly models: readonly ModelConfig[];
  readonly virtualModels: readonly VirtualModelConfig[];
}

/** A model or provider in the overview, with the state of its endpoint. */
export function modelView(
  {
    name,
    provider,
    loggedProvider,
    address,
  }: Pick<ModelView, 'name' | 'provider' | 'loggedProvider'> & { readonly address: string | undefined },
  info: DumpEndpointInfo | undefined,
): ModelView {
  return {
    name,
    provider,
    loggedProvider,
    ...(address === undefined ? {} : { address }),
    requests: info?.totalRequests ?? 0,
    pending: info?.pendingRequests ?? 0,
    failures: info?.consecutiveFailures ?? 0,
    latency: Math.round((info?.requestLatency ?? 0) * 1000),
  };
}

/** Names and patterns that clients may request of an `llm` backend. */
export function clientModels({ models, virtualModels }: LlmConfig): string[] {
  return [
    ...models.flatMap(({ name, visibility }) => (visibility === 'public' ? [name] : [])),
    ...virtualModels.map(({ name }) => name),
  ];
}

/** An `llm` backend of a route: its models are its providers. That of a section: a router, and a backend for each model. */
export function* dumpLlm({ models, virtualModels }: LlmConfig, place: DumpPlace): Generator<DumpBackend> {
  const endpoints = models.map((model, index) => endpointOf(model, index, place));
  if (!place.isSection) {
    yield dumpProviders(place.name, [endpoints]);
    return;
  }
  const target = {
    models: models.map((model, index) => modelBackend(model.name, index)),
    virtualModels: virtualModels.map(({ name }) => name),
  };
  yield { backend: { llmRouter: { name: place.name, namespace: '', target } } };
  for (const [index, endpoint] of endpoints.entries())
    yield dumpProviders(modelBackend(models[index]?.name ?? '', index), [[endpoint]]);
}

/** Models of a section. */
export function* dumpLlmModels(
  { models, virtualModels }: LlmConfig,
  listenerKey: string,
): Generator<DumpModel> {
  const routerKey = 'llm:router';
  for (const [index, { name, visibility }] of models.entries()) {
    const key = modelBackend(name, index);
    yield { listenerKey, key, name, routerKey, kind: { concrete: { backend: `/${key}`, visibility } } };
  }
  for (const { name, routing } of virtualModels)
    yield { listenerKey, key: `llm:virtual:${name}`, name, routerKey, kind: { virtual: routing } };
}

/** A backend with groups of providers, by descending priority. */
export function dumpProviders(name: string, groups: readonly (readonly DumpEndpoint[])[]): DumpBackend {
  return { backend: { ai: { name, namespace: '', target: { providers: groups.map(endpointSet) } } } };
}

/** Lists evicted endpoints separately, as `rejected`. */
function endpointSet(endpoints: readonly DumpEndpoint[]): DumpEndpointSet {
  const byName = (evicted: boolean): DumpEndpointSet['active'] =>
    Object.fromEntries(
      endpoints
        .filter(({ info }) => (info.evictedUntil !== null) === evicted)
        .map((endpoint) => [endpoint.endpoint['name'], endpoint]),
    );
  return { active: byName(false), rejected: byName(true) };
}

const INITIAL_INFO: DumpEndpointInfo = {
  health: 1,
  requestLatency: 0,
  pendingRequests: 0,
  totalRequests: 0,
  consecutiveFailures: 0,
  timesEjected: 0,
  evictedUntil: null,
};

/** What dumps show of one provider. Undefined members are those of the provider itself. */
interface ShownEndpoint {
  readonly name: string;
  readonly provider: string;
  readonly model: string | undefined;
  readonly host: string | undefined;
  readonly pathOverride?: string | undefined;
  readonly pathPrefix: string | undefined;
  readonly tokenize?: boolean | undefined;
  /** One key each. */
  readonly policies: readonly object[];
}

export function dumpEndpoint(shown: ShownEndpoint, info: DumpEndpointInfo | undefined): DumpEndpoint {
  const { name, provider, model, host, pathOverride, pathPrefix, tokenize, policies } = shown;
  return {
    endpoint: {
      name,
      provider: { [provider]: model === undefined ? {} : { model } },
      hostOverride: host ?? null,
      pathOverride: pathOverride ?? null,
      pathPrefix: pathPrefix ?? null,
      tokenize: tokenize ?? false,
      ...(policies.length === 0 ? {} : { inlinePolicies: policies }),
    },
    info: info ?? INITIAL_INFO,
    capacity: 1,
  };
}

function endpointOf(model: ModelConfig, index: number, place: DumpPlace): DumpEndpoint {
  const { baseUrl, model: upstreamModel, apiKey } = model.params;
  const url = baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const { guardrails, transformation, defaults, overrides } = model;
  const ai = {
    ...(guardrails === undefined ? {} : { promptGuard: guardrails }),
    ...(Object.keys(transformation).length === 0 ? {} : { transformations: transformation }),
    ...(Object.keys(defaults).length === 0 ? {} : { defaults }),
    ...(Object.keys(overrides).length === 0 ? {} : { overrides }),
  };
  const policies = [
    ...(apiKey === undefined ? [] : [{ backendAuth: { key: apiKey } }]),
    ...(Object.keys(ai).length === 0 ? [] : [{ ai }]),
    ...place.policies({
      ...(model.requestHeaders === undefined ? {} : { requestHeaderModifier: model.requestHeaders }),
      ...(model.responseHeaders === undefined ? {} : { responseHeaderModifier: model.responseHeaders }),
    }),
  ];
  return dumpEndpoint(
    {
      name: model.name,
      provider: shownProvider(model.provider),
      model: upstreamModel,
      host: url?.host,
      pathPrefix:
        url === undefined || url.pathname === '/' ? undefined : url.pathname.replace(/(?<!\/)\/+$/, ''),
      policies,
    },
    place.endpoint(index),
  );
}
