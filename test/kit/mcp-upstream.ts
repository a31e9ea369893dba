import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Json } from './mcp.ts';

/** One request as the upstream got it. */
export interface Received {
  readonly verb: string;
  readonly path: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
  /** The JSON-RPC message, for POST. */
  readonly message: Json;
}

/** Answers a request itself and returns true, or leaves it to the default behaviour. */
export type Script = (request: Received, response: ServerResponse) => boolean | Promise<boolean>;

/** An MCP server over HTTP in this process, which records what it gets. */
export interface McpUpstream extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly received: readonly Received[];
  /** The sessions that it knows; deleting one makes it forget. */
  readonly sessions: Set<string>;
  /** Its open GET streams; write events to them. */
  readonly streams: readonly ServerResponse[];
  /** Messages received with that JSON-RPC method. */
  of(method: string): Received[];
  /** Closes the connections without a request, as a server does after some seconds. */
  closeIdle(): void;
}

/** Starts it, on a free port by default. `name` shows in its answers; `capabilities` are what it announces. */
export async function mcpUpstream({
  name = 'up',
  script,
  capabilities = { tools: {} },
  port: wanted = 0,
  socket,
  certificate,
}: {
  name?: string;
  port?: number;
  /** Path of a Unix socket to listen on instead. */
  socket?: string;
  /** Speaks TLS, with these options. */
  certificate?: ServerOptions;
  script?: Script;
  capabilities?: object;
} = {}): Promise<McpUpstream> {
  const received: Received[] = [];
  const sessions = new Set<string>();
  const streams: ServerResponse[] = [];
  let opened = 0;
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const got = await receive(request);
    received.push(got);
    if ((await script?.(got, response)) === true) return;
    const session = got.headers['mcp-session-id'] as string | undefined;
    const isFirst = got.message?.method === 'initialize';
    if (!isFirst && !sessions.has(session ?? '')) return void response.writeHead(404).end('unknown session');
    if (got.verb === 'DELETE') {
      sessions.delete(session as string);
      return void response.writeHead(204).end();
    }
    if (got.verb === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      return void streams.push(response);
    }
    if (got.message.id === undefined || got.message.method === undefined)
      return void response.writeHead(202).end();
    if (isFirst) {
      opened += 1;
      sessions.add(`${name}-${opened}`);
      response.setHeader('mcp-session-id', `${name}-${opened}`);
    }
    const result = resultOf(got.message, name, capabilities);
    reply(response, got.message, result);
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    serve(request, response).catch(() => response.destroy());
  };
  const server =
    certificate === undefined ? createServer(onRequest) : createTlsServer(certificate, onRequest);
  await new Promise<void>((resolve) =>
    server.listen(socket === undefined ? { port: wanted, host: '127.0.0.1' } : { path: socket }, resolve),
  );
  const port = socket === undefined ? (server.address() as AddressInfo).port : 0;
  return {
    url:
      socket === undefined
        ? `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${port}/mcp`
        : `unix:${socket}`,
    port,
    received,
    sessions,
    streams,
    of: (method) => received.filter(({ message }) => message?.method === method),
    closeIdle: () => server.closeIdleConnections(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function receive(request: IncomingMessage): Promise<Received> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return {
    verb: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    text,
    message: text === '' ? undefined : JSON.parse(text),
  };
}

/** Answers with one JSON body, `{error}` or a result. */
export function reply(response: ServerResponse, { id }: { id: unknown }, result: object): void {
  const outcome = 'error' in result ? result : { result };
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
}

function resultOf({ method, params }: Json, name: string, capabilities: object): object {
  switch (method) {
    case 'initialize':
      return { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name, version: '1' } };
    case 'tools/list':
      return { tools: [{ name: 'say', inputSchema: { type: 'object' } }] };
    case 'tools/call':
      return {
        content: [{ type: 'text', text: `${name} says ${params.arguments?.message ?? params.name}` }],
      };
    default:
      return { error: { code: -32601, message: `no method ${method}` } };
  }
}
