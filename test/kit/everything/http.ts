import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  type McpHttpHandler,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { eventLog } from './event-log.ts';
import { everythingServer } from './server.ts';

type Fetch = (request: Request) => Promise<Response>;

/** Serves 2025 clients: one server and one transport per session, from `initialize` to DELETE. */
function sessions(): Fetch {
  const open = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return async (request) => {
    const id = request.headers.get('mcp-session-id');
    if (id !== null) {
      const known = open.get(id);
      if (known === undefined) return new Response('unknown session', { status: 404 });
      return known.handleRequest(request);
    }
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (created) => void open.set(created, transport),
      onsessionclosed: (closed) => void open.delete(closed),
      eventStore: eventLog(),
      // Scenario server-sse-polling waits this long before it reconnects.
      retryInterval: 100,
    });
    await everythingServer().connect(transport);
    const response = await transport.handleRequest(request);
    // Anything but an `initialize` was refused, so nobody will ever use this one.
    if (transport.sessionId === undefined) await transport.close();
    return response;
  };
}

/** Serves 2026 clients: one server per request, changes announced to all listeners. */
function requests(): McpHttpHandler {
  const handler: McpHttpHandler = createMcpHandler(() => everythingServer(handler.notify), {
    legacy: 'reject',
  });
  return handler;
}

function toRequest(req: IncomingMessage, gone: AbortSignal): Request {
  const headers = new Headers();
  for (const [name, values] of Object.entries(req.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const init: RequestInit = { method: req.method ?? 'GET', headers, signal: gone };
  if (req.method === 'POST') {
    init.body = Readable.toWeb(req) as ReadableStream;
    init.duplex = 'half';
  }
  // The authority is not taken from Host: that header is what the check after this one is about.
  return new Request(`http://127.0.0.1${req.url}`, init);
}

async function answer(serve: Fetch, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const gone = new AbortController();
  res.once('close', () => gone.abort());
  const response = await serve(toRequest(req, gone.signal));
  res.writeHead(response.status, Object.fromEntries(response.headers));
  // A stream that stays silent must show its head at once, or the client waits for it.
  res.flushHeaders();
  if (response.body === null) res.end();
  else await pipeline(Readable.fromWeb(response.body as never), res);
}

/** Revisions that a server accepts: those with sessions, 2026-07-28, or both. */
export type Eras = 'legacy' | 'modern' | 'both';

/**
 * Serves the fixture over streamable HTTP at every path on 127.0.0.1.
 *
 * @param port 0 for any free one
 * @returns the server, listening
 */
export async function serveHttp(port: number, eras: Eras = 'both'): Promise<Server> {
  const legacy = sessions();
  const modern = requests();
  const isLegacy = async (request: Request): Promise<boolean> =>
    eras === 'both' ? isLegacyRequest(request) : eras === 'legacy';
  const serve: Fetch = async (request) =>
    hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
    originValidationResponse(request, localhostAllowedOrigins()) ??
    ((await isLegacy(request)) ? legacy(request) : modern.fetch(request));
  const server = createServer((req, res) => {
    answer(serve, req, res).catch((error) => {
      // A client that hangs up in mid-stream ends here too, and is no news.
      if (!res.destroyed) console.error(error);
      res.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}
