import { INITIALIZE, type Json, type McpReply, openSession, post } from './mcp.ts';
import { envelope, MODERN } from './modern.ts';

// Callers of both eras of the protocol behind one interface: with a session, and without one (2026-07-28).

interface Caller {
  /** Headers of each message, except those that repeat members of a request. */
  readonly headers: Record<string, string>;
  /** Message and headers of a request. */
  request(method: string, params?: Json, id?: unknown): { message: object; headers: Record<string, string> };
  /** Sends a request and reads the whole answer. */
  ask(method: string, params?: Json, id?: unknown): Promise<McpReply>;
  /** Calls a tool. */
  call(name: string, args?: object): Promise<McpReply>;
}

export type Connect = (url: string, token?: string) => Promise<Caller>;

const NAMED: Record<string, string> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
};

function caller(url: string, headers: Caller['headers'], request: Caller['request']): Caller {
  const ask: Caller['ask'] = (method, params, id = 1) => {
    const { message, headers: all } = request(method, params, id);
    return post(url, message, all);
  };
  return { headers, request, ask, call: (name, args = {}) => ask('tools/call', { name, arguments: args }) };
}

const inSession: Connect = async (url, token = 'a') => {
  const authorization = `Bearer ${token}`;
  const params = { ...INITIALIZE.params, protocolVersion: '2025-11-25' };
  const session = await openSession(url, { authorization }, { ...INITIALIZE, params });
  const headers = { authorization, 'mcp-session-id': session.id };
  return caller(url, headers, (method, params, id = 1) => ({
    message: { jsonrpc: '2.0', id, method, ...(params && { params }) },
    headers,
  }));
};

const withoutSession: Connect = async (url, token = 'a') => {
  const headers = { authorization: `Bearer ${token}`, 'mcp-protocol-version': MODERN };
  return caller(url, headers, (method, params = {}, id = 1) => {
    const name = params[NAMED[method] ?? ''];
    return {
      message: {
        jsonrpc: '2.0',
        id,
        method,
        params: { ...params, _meta: { ...envelope(), ...params._meta } },
      },
      headers: { ...headers, 'mcp-method': method, ...(name !== undefined && { 'mcp-name': String(name) }) },
    };
  });
};

/** For `describe.each`: the revision, and how a caller with that token connects. */
export const ERAS: [string, Connect][] = [
  ['2025-11-25', inSession],
  [MODERN, withoutSession],
];
