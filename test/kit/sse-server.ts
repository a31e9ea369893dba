import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { CreateMessageResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

/** A server of SDK 1 with the HTTP+SSE transport of revision 2024-11-05. */
export interface SseServer extends AsyncDisposable {
  readonly url: string;
  /** `METHOD path` and headers of each request. */
  readonly received: readonly { readonly what: string; readonly headers: IncomingHttpHeaders }[];
  /** Calls of the tool `wait` that were cancelled. */
  readonly cancelled: number;
  /** Number of open streams. */
  readonly streams: number;
  /** Ends all streams. */
  drop(): void;
}

/** Answers GET /sse in its own way: return true if it did. */
export type OnStream = (response: ServerResponse) => boolean;

export async function sseServer(onStream: OnStream = () => false): Promise<SseServer> {
  const transports = new Map<string, SSEServerTransport>();
  const streams = new Set<ServerResponse>();
  const received: { what: string; headers: IncomingHttpHeaders }[] = [];
  const counts = { cancelled: 0 };
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request;
    received.push({ what: `${method} ${url}`, headers });
    if (method === 'GET') {
      streams.add(response);
      response.on('close', () => streams.delete(response));
      if (onStream(response)) return;
      const transport = new SSEServerTransport('/messages', response);
      transports.set(transport.sessionId, transport);
      transport.onclose = () => void transports.delete(transport.sessionId);
      void testServer(counts).connect(transport);
      return;
    }
    const session = new URL(url, 'http://localhost').searchParams.get('sessionId') ?? '';
    const transport = transports.get(session);
    if (transport === undefined) response.writeHead(404).end('no such session');
    else transport.handlePostMessage(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const drop = (): void => {
    for (const stream of streams) stream.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sse`,
    received,
    get cancelled() {
      return counts.cancelled;
    },
    get streams() {
      return streams.size;
    },
    drop,
    [Symbol.asyncDispose]: async () => {
      drop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Tools: `echo`, `steps` (three progress notifications), `ask` (sampling), `confirm` (elicitation), `wait` (until it is cancelled). */
function testServer(counts: { cancelled: number }): McpServer {
  const server = new McpServer({ name: 'legacy', version: '1' }, { capabilities: { logging: {} } });
  const said = (text: string) => ({ content: [{ type: 'text' as const, text }] });
  server.registerTool('echo', { inputSchema: { message: z.string() } }, ({ message }) => said(message));
  server.registerTool('steps', {}, async ({ _meta, sendNotification }) => {
    const progressToken = _meta?.progressToken;
    for (let progress = 1; progressToken !== undefined && progress <= 3; progress += 1)
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 3 },
      });
    // Clients of the SDK lose progress that arrives in one chunk with the response.
    await server.server.ping();
    return said('done');
  });
  server.registerTool('ask', {}, async ({ sendRequest }) => {
    const params = { messages: [{ role: 'user', content: { type: 'text', text: 'who?' } }], maxTokens: 5 };
    const { content } = await sendRequest(
      { method: 'sampling/createMessage', params } as Parameters<typeof sendRequest>[0],
      CreateMessageResultSchema,
    );
    return said(JSON.stringify(content));
  });
  server.registerTool('confirm', {}, async () => {
    const requestedSchema = { type: 'object' as const, properties: { sure: { type: 'boolean' as const } } };
    return said(JSON.stringify(await server.server.elicitInput({ message: 'sure?', requestedSchema })));
  });
  server.registerTool('wait', {}, ({ signal }) => {
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        counts.cancelled += 1;
        reject(new Error('cancelled'));
      });
    });
  });
  return server;
}
