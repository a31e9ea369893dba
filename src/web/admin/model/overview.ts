import { type Loaded, useLoaded } from '../../shared/use-loaded.ts';
import { OVERVIEW } from './paths.ts';

/** What `/api/overview` answers, as far as pages show it. */
export interface Overview {
  readonly version: string;
  readonly pid: number;
  readonly node: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  /** Path of the file. */
  readonly config: string;
  readonly openRequests: number;
  readonly logLevel: string;
  readonly problems: {
    readonly errorCount: number;
    readonly warningCount: number;
    readonly diagnostics: readonly Diagnostic[];
  };
  /** How reading the configuration again goes; `failure` while the last change could not be used. */
  readonly reload?: {
    readonly failure?: { readonly at: string; readonly diagnostics: readonly Diagnostic[] };
  };
  readonly gateways: readonly GatewayView[];
}

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  readonly code: string;
  readonly message: string;
  readonly range: {
    readonly file: string;
    readonly start: { readonly line: number; readonly column: number };
  };
  readonly help?: string;
}

export interface GatewayView {
  readonly key: string;
  readonly name: string;
  readonly port: number;
  readonly url: string;
  readonly routes: readonly RouteView[];
}

export interface RouteView {
  readonly key: string;
  readonly name: string;
  readonly hostnames: readonly string[];
  readonly matches: readonly string[];
  readonly policies: readonly string[];
  readonly line: number;
  readonly backends: readonly BackendView[];
}

export interface BackendView {
  readonly kind: 'mcp' | 'llm' | 'host';
  readonly weight: number;
  readonly address?: string;
  readonly sessions?: number;
  readonly targets?: readonly TargetView[];
  readonly models?: readonly ModelView[];
}

export interface TargetView {
  readonly name: string;
  readonly state: string;
  readonly kind: string;
  readonly at: string;
  readonly connections: number;
  readonly problem?: string;
}

export interface ModelView {
  readonly name: string;
  readonly provider: string;
  readonly address?: string;
  readonly requests: number;
  readonly pending: number;
  readonly failures: number;
  /** ms. */
  readonly latency: number;
}

const EVERY = 5_000;

/** The gateway as it is, looked at again every few seconds. */
export function useOverview(): Loaded<Overview> {
  return useLoaded<Overview>(OVERVIEW, EVERY);
}

/** `3 d 4 h`, `12 min`, `40 s`. */
export function uptimeText(seconds: number): string {
  if (seconds >= 86_400)
    return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min` : `${seconds} s`;
}

/** A command that sends a first request to a gateway; undefined when it has no route that one could guess. */
export function firstRequest({ gateways }: Pick<Overview, 'gateways'>): string | undefined {
  for (const { url, routes } of gateways)
    for (const { matches, backends } of routes) {
      const kind = backends[0]?.kind;
      const path = pathOf(matches[0] ?? '/*');
      if (kind === 'mcp') return mcpCommand(`${url}${path === '/' ? '/mcp' : path}`);
      if (kind === 'llm') return llmCommand(`${url}/v1/chat/completions`, backends[0]?.models?.[0]?.name);
      if (kind === 'host') return `curl -sS ${url}${path}`;
    }
  const [gateway] = gateways;
  return gateway === undefined ? undefined : `curl -sS ${gateway.url}/`;
}

/** `POST /mcp*` and `/mcp and 1 more` are about `/mcp`. */
function pathOf(match: string): string {
  const path = /(\/[^\s*]*)/.exec(match)?.[1] ?? '/';
  return match.includes('~') ? '/' : path;
}

function mcpCommand(url: string): string {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'curl', version: '1' },
    },
  };
  return [
    `curl -sS ${url} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -H 'accept: application/json, text/event-stream' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n');
}

function llmCommand(url: string, model = '*'): string {
  const body = {
    model: model.includes('*') ? 'gpt-4o-mini' : model,
    messages: [{ role: 'user', content: 'hi' }],
  };
  return [
    `curl -sS ${url} \\`,
    `  -H 'content-type: application/json' \\`,
    `  -d '${JSON.stringify(body)}'`,
  ].join('\n');
}
