import type { Overview } from '../../../core/overview.ts';
import { type Loaded, useLoaded } from '../../shared/use-loaded.ts';
import { OVERVIEW } from './paths.ts';

const EVERY = 5_000;

/** The state of the gateway, refreshed every few seconds. */
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

/** A command that sends a first request to a gateway; undefined if no route is suitable. */
export function firstRequest({ gateways }: Pick<Overview, 'gateways'>): string | undefined {
  for (const { routes } of gateways)
    for (const { origin: url, matches, backends } of routes) {
      const [backend] = backends;
      const path = pathOf(matches[0] ?? '/*');
      if (backend?.api === 'mcp') return mcpCommand(`${url}${path === '/' ? '/mcp' : path}`);
      if (backend?.api === 'llm') return llmCommand(`${url}/v1/chat/completions`, backend.modelNames?.[0]);
      if (backend?.address !== undefined) return `curl -sS ${url}${path}`;
    }
  const [gateway] = gateways;
  return gateway === undefined ? undefined : `curl -sS ${gateway.url}/`;
}

/** `POST /mcp*` and `/mcp and 1 more` refer to `/mcp`. */
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
