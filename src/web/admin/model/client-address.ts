import type { RouteView } from '../../../core/overview.ts';

const CHAT = '/chat/completions';

/** The client's path for MCP or chat completions on a route. `POST /mcp*` and `/mcp and 1 more` refer to `/mcp`. */
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

/** The address that clients of a route need; undefined if any path works. */
export function clientAddress({ origin, matches, backends }: RouteView): ClientAddress | undefined {
  const [backend] = backends;
  if (backend === undefined || backend.api === 'http') return undefined;
  const path = pathTo(matches[0] ?? '/*', backend.api);
  return backend.api === 'mcp'
    ? { what: 'MCP clients use', url: `${origin}${path}` }
    : { what: 'OpenAI clients use', url: `${origin}${path.slice(0, -CHAT.length)}` };
}
