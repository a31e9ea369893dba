import { createMcpHandler } from '@modelcontextprotocol/server';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { LIMITS } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import { MEMORY_API_LIMITS } from '../core/memory-limits.ts';
import { hostProblem } from './access-checks.ts';
import { type Backend, inNamespace } from './backend/backend.ts';
import { type CallerRules, callerOf, NAMESPACE_REQUIRED } from './caller.ts';
import { createMemoryServer } from './mcp-server.ts';
import { NAMESPACE_HEADER } from './namespace.ts';
import type { SearchKind } from './tool.ts';
import type { ToolSet } from './tools/index.ts';

/** Who may call `/mcp`; without `key` and `namespaceKeys`, everyone who can reach the port. */
export interface AdapterParts extends Partial<CallerRules> {
  readonly backend: Backend;
  readonly log: Log;
  /** Host names that local connections may use, in addition to loopback names. */
  readonly allowedHosts: ReadonlySet<string>;
  /** URL of the dashboard, which `initialize` reports to clients and gateways. */
  readonly website?: string;
  /** Default: `unknown`. */
  readonly searchKind?: SearchKind;
  /** Default: the four tools of the specification. */
  readonly toolSet?: ToolSet;
}

const SERVICE_NAME = 'memory-adapter';
const AGENT_HEADER = 'x-agent-id';

/**
 * Creates the adapter: MCP at `/mcp`, with a server per POST that ends with its response, and `/health`. It keeps no
 * state between requests and issues no session ids.
 */
export function createAdapter(parts: AdapterParts): FastifyInstance {
  const { backend, log, allowedHosts, website, toolSet, searchKind } = parts;
  const rules: CallerRules = { ...parts, key: parts.key };
  const app = fastify({
    bodyLimit: MEMORY_API_LIMITS.mcpBodyBytes,
    requestTimeout: LIMITS.requestTimeout,
    keepAliveTimeout: LIMITS.keepAliveTimeout,
    forceCloseConnections: 'idle',
  });
  const handler = createMcpHandler(
    ({ requestInfo }) =>
      createMemoryServer({
        backend: inNamespace(backend, requestInfo?.headers.get(NAMESPACE_HEADER) ?? undefined),
        log,
        website,
        toolSet,
        searchKind,
        agentId: agentId(requestInfo?.headers.get(AGENT_HEADER)),
        gone: requestInfo?.signal,
      }),
    {
      maxRequestBodySize: MEMORY_API_LIMITS.mcpBodyBytes,
      onerror: (error) => log.debug('memory::adapter', 'request refused', { problem: error.message }),
    },
  );
  // The SDK parses bodies itself, whatever their content type, and reports errors in them as JSON-RPC.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async ({ headers, socket, routeOptions }, reply) => {
    const problem = hostProblem(socket.localAddress, headers, allowedHosts);
    if (problem !== undefined) return reply.code(403).send(rpcError(-32_000, problem));
    // Health checks come from machines that have no key.
    if (routeOptions.url === '/health') return;
    const caller = callerOf(headers, rules);
    if ('status' in caller) {
      // RFC 9110 §15.5.2: a 401 response names the accepted scheme.
      if (caller.status === 401) reply.header('www-authenticate', 'Bearer');
      return reply.code(caller.status).send(rpcError(-32_000, caller.message));
    }
    if (caller.namespace === undefined && rules.requiresNamespace)
      return reply.code(NAMESPACE_REQUIRED.status).send(rpcError(-32_000, NAMESPACE_REQUIRED.message));
    // For the tools, the header is the namespace of the caller, also if that comes from a key.
    if (caller.namespace !== undefined) headers[NAMESPACE_HEADER] = caller.namespace;
  });
  app.addHook('onClose', () => handler.close());
  app.setErrorHandler<Error & { statusCode?: number }>((error, _request, reply) => {
    const { statusCode = 500 } = error;
    if (statusCode >= 500)
      log.error('memory::adapter', 'internal error', { problem: error.stack ?? error.message });
    return reply
      .code(statusCode)
      .send(statusCode >= 500 ? rpcError(-32_603, 'internal error') : rpcError(-32_600, error.message));
  });
  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send(rpcError(-32_000, 'unknown path: MCP is at /mcp')),
  );
  app.get('/health', () => ({ status: 'healthy', service: SERVICE_NAME }));
  app.route({
    method: ['GET', 'DELETE', 'PUT', 'PATCH'],
    url: '/mcp',
    handler: (_request, reply) =>
      reply.code(405).header('allow', 'POST').send(rpcError(-32_000, 'Method not allowed: use POST.')),
  });
  app.post('/mcp', async (request, reply) => {
    const response = await handler.fetch(webRequest(request, reply));
    return reply.send(response);
  });
  return app;
}

/** Converts the request for the SDK. Its signal aborts the backend call when the client disconnects. */
function webRequest({ headers, body }: FastifyRequest, { raw }: FastifyReply): Request {
  const gone = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort(new Error('the client has disconnected'));
  });
  const copied = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') copied.set(name, value);
  }
  // The client does not choose the authority: `hostProblem` has checked Host.
  return new Request('http://127.0.0.1/mcp', {
    method: 'POST',
    headers: copied,
    body: Buffer.isBuffer(body) ? body : '',
    signal: gone.signal,
  });
}

/** The value if it is printable and not too long, since it is stored and displayed; otherwise `unknown`. */
function agentId(value: string | null | undefined): string {
  return value !== null && value !== undefined && /^[\x21-\x7e]{1,128}$/.test(value) ? value : 'unknown';
}

function rpcError(code: number, message: string): object {
  return { jsonrpc: '2.0', id: null, error: { code, message } };
}
