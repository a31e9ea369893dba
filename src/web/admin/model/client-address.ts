import type { RouteView } from '../../../core/overview.ts';

const CHAT = '/chat/completions';

/** Where clients of a route find MCP or chat completions. `POST /mcp*` and `/mcp and 1 more` are about `/mcp`. */
export function pathTo(match: string, kind: 'mcp' | 'llm'): string {
  const path = match.includes('~') ? '/' : (/(\/[^\s*]*)/.exec(match)?.[1] ?? '/');
  if (kind === 'mcp') return path === '/' ? '/mcp' : path;
  if (path.endsWith(CHAT)) return path;
  const base = path.replace(/\/$/, '');
  return base === '' || base.endsWith('/v1') ? `${base || '/v1'}${CHAT}` : `${base}/v1${CHAT}`;
}

export interface ClientAddress {
  readonly what: string;
  readonly url: string;
}

/** What a client of a route is to be told; undefined where any path will do. */
export function clientAddress(
  gatewayUrl: string,
  { hostnames, matches, backends }: RouteView,
): ClientAddress | undefined {
  const kind = backends[0]?.kind;
  if (kind !== 'mcp' && kind !== 'llm') return undefined;
  const url = new URL(gatewayUrl);
  const [host] = hostnames;
  if (host !== undefined && !host.startsWith('*')) url.hostname = host;
  const path = pathTo(matches[0] ?? '/*', kind);
  return kind === 'mcp'
    ? { what: 'MCP clients use', url: `${url.origin}${path}` }
    : { what: 'OpenAI clients use', url: `${url.origin}${path.slice(0, -CHAT.length)}` };
}
