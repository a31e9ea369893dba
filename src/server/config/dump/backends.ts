import type {
  DumpBackend,
  DumpEndpoint,
  DumpEndpointInfo,
  DumpEndpointSet,
  DumpModel,
} from '../../../core/config-dump.ts';
import { goDuration } from '../../../core/duration.ts';
import { modelBackend } from '../../llm/models/model.ts';
import { shownProvider } from '../../llm/models/model-provider.ts';
import { type EndpointConfig, endpointText } from '../../mcp/targets/endpoint.ts';
import { type BackendPlan, type ListenerPlan, type RoutePlan, settingsPath } from '../plan/plan.ts';
import { inlinePolicies } from './policies.ts';

type BackendConfig = BackendPlan['config'];
type McpConfig = NonNullable<BackendConfig['mcp']>;
type LlmConfig = NonNullable<BackendConfig['llm']>;
type ModelConfig = LlmConfig['models'][number];

/** State of an endpoint of an LLM backend; undefined if unknown. */
export type EndpointInfo = (place: string, model: number) => DumpEndpointInfo | undefined;

/** What backends need besides the configuration. */
export interface BackendState {
  readonly sessionIdle: number;
  readonly endpointInfo: EndpointInfo;
}

/** The backends of one route, with those that they refer to. */
export function* backendsOf(
  _listener: ListenerPlan,
  route: RoutePlan,
  state: BackendState,
): Generator<DumpBackend> {
  for (const backend of route.backends) {
    const { name } = backend;
    const { mcp, llm, host } = backend.config;
    if (host !== undefined) yield { backend: { host: { name, namespace: '', target: host } } };
    if (mcp !== undefined) yield* mcpBackends(name, mcp, state);
    if (llm !== undefined) {
      const place = settingsPath(backend, 'llm').join('.');
      if (!route.isShortForm) yield aiBackend(name, place, llm, state);
      else yield* routerBackends(name, place, llm, state);
    }
  }
}

function* mcpBackends(
  name: string,
  config: McpConfig,
  { sessionIdle }: BackendState,
): Generator<DumpBackend> {
  const { targets, statefulMode, prefixMode, failureMode, toolPinning, dnsRebindingProtection } = config;
  const remoteName = (index: number): string => `mcp//${name}/${index}`;
  const shown = targets.map(({ name: target, stdio, mcp, sse, openapi, tools }, index) => {
    const view = tools === undefined ? {} : { tools };
    if (stdio !== undefined) {
      const { cmd, args, env, clear_env } = stdio;
      return {
        name: target,
        stdio: {
          cmd,
          ...(args.length === 0 ? {} : { args }),
          ...(Object.keys(env).length === 0 ? {} : { env }),
          ...(clear_env ? { clear_env } : {}),
        },
        ...view,
      };
    }
    const backend = { backend: `/${remoteName(index)}` };
    if (openapi !== undefined) return { name: target, openapi: { backend }, ...view };
    if (sse !== undefined)
      return { name: target, sse: { backend, path: remoteAddress(sse, '/sse').path }, ...view };
    const path = mcp === undefined ? '/mcp' : remoteAddress(mcp).path;
    return { name: target, mcp: { backend, path }, ...view };
  });
  yield {
    backend: {
      mcp: {
        name,
        namespace: '',
        target: {
          targets: shown,
          stateful: statefulMode === 'stateful',
          prefixMode,
          failureMode,
          sessionIdleTtl: goDuration(sessionIdle),
          ...(toolPinning === 'off' ? {} : { toolPinning }),
          ...(dnsRebindingProtection === 'auto' ? {} : { dnsRebindingProtection }),
        },
      },
    },
  };
  for (const [index, { mcp, sse, openapi }] of targets.entries()) {
    const remote = mcp ?? sse ?? openapi;
    if (remote === undefined) continue;
    yield {
      backend: { host: { name: remoteName(index), namespace: '', target: remoteAddress(remote).authority } },
    };
  }
}

function remoteAddress(
  endpoint: EndpointConfig,
  defaultPath = '/mcp',
): { readonly authority: string; readonly path: string } {
  const { host, port, path = defaultPath } = endpoint;
  if (host.startsWith('unix:')) return { authority: host, path };
  if (port !== undefined) return { authority: `${host}:${port}`, path };
  const text = endpointText(endpoint);
  if (!URL.canParse(text)) return { authority: host, path: defaultPath };
  const url = new URL(text);
  const implied = url.protocol === 'https:' ? '443' : '80';
  return {
    authority: `${url.hostname}:${url.port === '' ? implied : url.port}`,
    path: url.pathname === '/' && !text.endsWith('/') ? defaultPath : url.pathname,
  };
}

/** An LLM backend of a route: its models are its providers. */
function aiBackend(name: string, place: string, { models }: LlmConfig, state: BackendState): DumpBackend {
  const endpoints = models.map((model, index) => endpointOf(model, state.endpointInfo(place, index)));
  return { backend: { ai: { name, namespace: '', target: { providers: [endpointSet(endpoints)] } } } };
}

/** The top-level `llm`: a router, and one backend for each of its models. */
function* routerBackends(
  name: string,
  place: string,
  { models, virtualModels }: LlmConfig,
  state: BackendState,
): Generator<DumpBackend> {
  const target = {
    models: models.map((model, index) => modelBackend(model.name, index)),
    virtualModels: virtualModels.map(({ name: virtual }) => virtual),
  };
  yield { backend: { llmRouter: { name, namespace: '', target } } };
  for (const [index, model] of models.entries()) {
    const endpoint = endpointOf(model, state.endpointInfo(place, index));
    yield {
      backend: {
        ai: {
          name: modelBackend(model.name, index),
          namespace: '',
          target: { providers: [endpointSet([endpoint])] },
        },
      },
    };
  }
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

/** Models of the top-level `llm`. */
export function* modelsOf(listener: ListenerPlan, route: RoutePlan): Generator<DumpModel> {
  if (!route.isShortForm) return;
  for (const {
    config: { llm },
  } of route.backends) {
    for (const [index, model] of (llm?.models ?? []).entries()) {
      const key = modelBackend(model.name, index);
      yield {
        listenerKey: listener.key,
        key,
        name: model.name,
        routerKey: 'llm:router',
        kind: { concrete: { backend: `/${key}`, visibility: model.visibility } },
      };
    }
    for (const { name, routing } of llm?.virtualModels ?? []) {
      const key = `llm:virtual:${name}`;
      yield {
        listenerKey: listener.key,
        key,
        name,
        routerKey: 'llm:router',
        kind: { virtual: routing },
      };
    }
  }
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

function endpointOf(model: ModelConfig, info: DumpEndpointInfo | undefined): DumpEndpoint {
  const { baseUrl, model: upstreamModel, apiKey } = model.params;
  const url = baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const kind = shownProvider(model.provider);
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
    ...inlinePolicies({
      ...(model.requestHeaders === undefined ? {} : { requestHeaderModifier: model.requestHeaders }),
      ...(model.responseHeaders === undefined ? {} : { responseHeaderModifier: model.responseHeaders }),
    }),
  ];
  return {
    endpoint: {
      name: model.name,
      provider: { [kind]: upstreamModel === undefined ? {} : { model: upstreamModel } },
      hostOverride: url === undefined ? null : url.host,
      pathOverride: null,
      pathPrefix: url === undefined || url.pathname === '/' ? null : url.pathname.replace(/\/+$/, ''),
      tokenize: false,
      ...(policies.length === 0 ? {} : { inlinePolicies: policies }),
    },
    info: info ?? INITIAL_INFO,
    capacity: 1,
  };
}
