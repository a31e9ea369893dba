import { goDuration } from '../../core/duration.ts';
import type { BackendView } from '../../core/overview.ts';
import type { DumpPlace } from '../kernel/backend.ts';
import type { DumpBackend } from '../kernel/config-dump.ts';
import type { BackendState } from '../kernel/inspection.ts';
import type { McpBackendConfig } from './backend-config.ts';
import { type EndpointConfig, endpointText } from './targets/endpoint.ts';

/** One line for people. */
export function describeMcp({ targets, toolSearch }: McpBackendConfig): string {
  const shown = targets.map(({ name, stdio }) => `${name} (${stdio ? `stdio: ${stdio.cmd}` : 'http'})`);
  return `mcp ${shown.join(', ')}${toolSearch === undefined ? '' : ' with toolSearch'}`;
}

/** The backend in the overview of the admin server. */
export function viewMcp(
  { targets: configured }: McpBackendConfig,
  { sessions, targets }: BackendState,
): Pick<BackendView, 'sessions' | 'targets'> {
  return {
    sessions: sessions ?? 0,
    targets: configured.map(({ name, stdio, mcp, sse, openapi }) => ({
      ...(targets?.find((target) => target.name === name) ?? { name, state: 'idle', connections: 0 }),
      kind: stdio === undefined ? 'http' : 'stdio',
      at: stdio?.cmd ?? (mcp ?? sse ?? openapi)?.host ?? '',
    })),
  };
}

/** The backend in configuration dumps, with a backend for each server that it reaches over HTTP. */
export function* dumpMcp(config: McpBackendConfig, place: DumpPlace): Generator<DumpBackend> {
  const {
    targets,
    statefulMode,
    prefixMode,
    failureMode,
    toolPinning,
    toolSearch,
    bundles,
    dnsRebindingProtection,
  } = config;
  const { name, sessionIdle } = place;
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
          ...(toolSearch === undefined ? {} : { toolSearch }),
          ...(bundles.length === 0 ? {} : { bundles }),
          ...(dnsRebindingProtection === 'auto' ? {} : { dnsRebindingProtection }),
        },
      },
    },
  };
  for (const [index, { mcp, sse, openapi, policies }] of targets.entries()) {
    const remote = mcp ?? sse ?? openapi;
    if (remote === undefined) continue;
    const inlinePolicies = place.policies(policies ?? {});
    yield {
      backend: { host: { name: remoteName(index), namespace: '', target: remoteAddress(remote).authority } },
      ...(inlinePolicies.length > 0 && { inlinePolicies }),
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
