import type { AddressInfo } from 'node:net';
import { createAdapter } from '../../src/adapter/adapter.ts';
import { createBackend } from '../../src/adapter/backend/backend.ts';
import { httpTransport } from '../../src/adapter/backend/transport.ts';
import { dashboardUrl, memoryApiUrl } from '../../src/adapter/base-url.ts';
import type { CallerRules } from '../../src/adapter/caller.ts';
import type { SearchKind } from '../../src/adapter/tool.ts';
import type { ToolSet } from '../../src/adapter/tools/index.ts';
import { createLog } from '../../src/core/log.ts';
import { type McpReply, post } from './mcp.ts';

/** A real memory adapter in this process, on a free port. */
export interface TestAdapter extends AsyncDisposable {
  readonly url: string;
  readonly log: readonly string[];
  /** Calls a tool as a client of the older generation, and returns the result. */
  call(name: string, args: object, headers?: Record<string, string>): Promise<McpReply>;
}

export async function memoryAdapter(
  backendUrl: string,
  {
    key,
    allowedHosts = [],
    toolSet = 'default',
    searchKind,
    rules = {},
  }: {
    /** Of the backend. */
    key?: string;
    allowedHosts?: readonly string[];
    toolSet?: ToolSet;
    searchKind?: SearchKind;
    rules?: Partial<CallerRules>;
  } = {},
): Promise<TestAdapter> {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() };
  const base = memoryApiUrl(backendUrl);
  const transport = httpTransport(base);
  const app = createAdapter({
    backend: createBackend(transport, key),
    log: createLog(sink, 'debug', 'text'),
    allowedHosts: new Set(allowedHosts),
    website: dashboardUrl(base),
    toolSet,
    ...(searchKind && { searchKind }),
    ...rules,
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  return {
    url,
    log: lines,
    call: (name, args, headers) => post(`${url}/mcp`, callMessage(name, args), headers),
    [Symbol.asyncDispose]: async () => {
      app.server.closeAllConnections();
      await app.close();
      await transport.close();
    },
  };
}

export function callMessage(name: string, args: object, id = 1): object {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } };
}
