import type { ServerResponse } from 'node:http';
import { type EventReader, openEvents } from './event-stream.ts';
import { type Json, type McpReply, post } from './mcp.ts';
import { type McpUpstream, mcpUpstream, type Received, reply } from './mcp-upstream.ts';

// Revision 2026-07-28 on the wire: a client, and a server that has no other revision.

const PREFIX = 'io.modelcontextprotocol/';
export const MODERN = '2026-07-28';

/** A member of `_meta` that the revision defines. */
export const metaKey = (name: string): string => `${PREFIX}${name}`;

/** The `_meta` of a request. */
export const envelope = (capabilities: object = {}, more: object = {}): object => ({
  [metaKey('protocolVersion')]: MODERN,
  [metaKey('clientInfo')]: { name: 'test', version: '1' },
  [metaKey('clientCapabilities')]: capabilities,
  ...more,
});

interface Asking {
  readonly id?: unknown;
  readonly capabilities?: object;
  readonly meta?: object;
  readonly headers?: Record<string, string>;
}

const NAMES: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

/** Message and headers of a request as a correct client sends them. */
function request(
  method: string,
  params: Json = {},
  { id = 1, capabilities = {}, meta = {}, headers = {} }: Asking = {},
) {
  const name = params[NAMES[method] ?? ''];
  return {
    message: { jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope(capabilities, meta) } },
    headers: {
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(name !== undefined && { 'mcp-name': name }),
      ...headers,
    },
  };
}

/** Sends a request and reads the whole answer. */
export function modern(url: string, method: string, params?: Json, asking?: Asking): Promise<McpReply> {
  const { message, headers } = request(method, params, asking);
  return post(url, message, headers);
}

/** Calls a tool. */
export const modernCall = (
  url: string,
  name: string,
  args: object = {},
  asking?: Asking,
  more: object = {},
) => modern(url, 'tools/call', { name, arguments: args, ...more }, asking);

/** Sends a request and reads its response stream. */
export function modernEvents(
  url: string,
  method: string,
  params?: Json,
  asking?: Asking,
): Promise<EventReader> {
  const { message, headers } = request(method, params, asking);
  return openEvents(url, { message, headers, headWithin: 15_000 });
}

/** Answers a request of the server itself and returns true, or leaves it to the default behaviour. */
type Script = (received: Received, response: ServerResponse) => boolean;

/** A server over HTTP that only has revision 2026-07-28. Its open `subscriptions/listen` streams are in `listening`. */
export async function modernUpstream(
  name: string,
  script?: Script,
): Promise<McpUpstream & { listening: { readonly id: unknown; readonly response: ServerResponse }[] }> {
  const listening: { readonly id: unknown; readonly response: ServerResponse }[] = [];
  const upstream = await mcpUpstream({
    name,
    script: (received, response) => {
      if (script?.(received, response) === true) return true;
      const { message, verb } = received;
      if (verb !== 'POST') response.writeHead(405).end();
      else if (message.params?._meta?.[metaKey('protocolVersion')] !== MODERN) refuse(response, message);
      else if (message.method === 'subscriptions/listen') {
        listening.push({ id: message.id, response });
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const meta = { [metaKey('subscriptionId')]: message.id };
        const { notifications } = message.params;
        event(response, {
          method: 'notifications/subscriptions/acknowledged',
          params: { _meta: meta, notifications },
        });
      } else reply(response, message, resultOf(name, message));
      return true;
    },
  });
  return Object.assign(upstream, { listening });
}

/** Writes one message to an event stream. */
export const event = (response: ServerResponse, message: object): boolean =>
  response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);

function refuse(response: ServerResponse, { id = null }: Json): void {
  response.statusCode = 400;
  const error = {
    code: -32022,
    message: 'unsupported protocol version',
    data: { supported: [MODERN], requested: 'x' },
  };
  reply(response, { id }, { error });
}

function resultOf(name: string, { method, params }: Json): object {
  const complete = { resultType: 'complete' };
  const cacheable = { ...complete, ttlMs: 60_000, cacheScope: 'public' };
  switch (method) {
    case 'server/discover':
      return {
        ...cacheable,
        supportedVersions: [MODERN],
        capabilities: {
          tools: { listChanged: true },
          resources: { subscribe: true, listChanged: true },
          logging: {},
        },
        _meta: { [metaKey('serverInfo')]: { name, version: '7' } },
        instructions: `how to use ${name}`,
      };
    case 'tools/list':
      return { ...cacheable, tools: [{ name: 'say', inputSchema: { type: 'object' }, unknown: 1 }] };
    case 'resources/list':
      return { ...cacheable, resources: [{ uri: 'file:///a', name: 'a' }] };
    case 'resources/read':
      return { ...cacheable, contents: [{ uri: params.uri, text: `${name} ${params.uri}` }] };
    case 'tools/call':
      return { ...complete, content: [{ type: 'text', text: `${name} says ${params.arguments?.message}` }] };
    default:
      return { error: { code: -32601, message: `no method ${method}` } };
  }
}
