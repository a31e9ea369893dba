import { AppError } from '../../../core/errors.ts';
import { jsonIn, membersOf } from '../../../core/foreign.ts';
import type { ProtocolFields } from '../../kernel/request/field-rules.ts';

/** Constants of the Model Context Protocol that several files share. */

/** Revisions with `initialize`, oldest first: the order is used to find the lowest common one. */
export const SESSION_REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;

/** Revision that the gateway requests when it initializes a session for itself. */
export const LATEST_SESSION_REVISION = '2025-11-25';

/**
 * Revisions without `initialize` and sessions: each request has its revision and the client's capabilities in
 * `params._meta`. The specification calls them modern, and the older ones legacy (2026-07-28, "Versioning").
 */
export const MODERN_REVISION = '2026-07-28';

/** All revisions that the gateway accepts, newest first. */
export const SUPPORTED_REVISIONS: readonly string[] = [MODERN_REVISION, ...SESSION_REVISIONS.toReversed()];

/** Requests of clients in the revisions with `initialize`. */
export const SESSION_REQUESTS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'completion/complete',
  'logging/setLevel',
  'tasks/list',
  'tasks/get',
  'tasks/result',
  'tasks/cancel',
]);

/** Notifications of clients in those revisions. */
export const CLIENT_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/roots/list_changed',
  'notifications/tasks/status',
]);

/** Requests of clients in revision 2026-07-28 and its extension for tasks. */
export const MODERN_REQUESTS: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
  'subscriptions/listen',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
]);

/**
 * Requests that change nothing at a server, or nothing more when they arrive twice. After a second `initialize`, the session of
 * the first is unknown to its client, and ends like one that a client has left. A list of its own, so that a new method is
 * sent once until someone has decided otherwise.
 */
export const REPEATABLE_REQUESTS: ReadonlySet<string> = new Set([
  'initialize',
  'server/discover',
  'ping',
  'tools/list',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'completion/complete',
  'logging/setLevel',
  'tasks/list',
  'tasks/get',
]);

/** Methods that clients may send in any revision. */
export const CLIENT_METHODS: ReadonlySet<string> = new Set([
  ...SESSION_REQUESTS,
  ...CLIENT_NOTIFICATIONS,
  ...MODERN_REQUESTS,
]);

/** Requests and notifications of servers in any revision. */
const SERVER_METHODS = [
  'ping',
  'sampling/createMessage',
  'elicitation/create',
  'roots/list',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/message',
  'notifications/resources/updated',
  'notifications/resources/list_changed',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/elicitation/complete',
  'notifications/subscriptions/acknowledged',
  'notifications/tasks',
  'notifications/tasks/status',
] as const;

/** All methods of MCP. */
export const MCP_METHODS: ReadonlySet<string> = new Set([...CLIENT_METHODS, ...SERVER_METHODS]);

export const SESSION_HEADER = 'mcp-session-id';
export const VERSION_HEADER = 'mcp-protocol-version';
export const METHOD_HEADER = 'mcp-method';
export const NAME_HEADER = 'mcp-name';

const REVISIONS = /^\d{4}-\d\d-\d\d(?:\s*,\s*\d{4}-\d\d-\d\d)+$/;

/**
 * Claude Code, Codex and Gemini CLI send several revisions, of equal (lowdefy/lowdefy#2345) or of different ones (python-sdk#1861), and
 * HTTP clients of Java the field twice (modelcontextprotocol/java-sdk#448). The first is taken before policies run: rules, logs and
 * servers have to see what the gateway reads.
 */
const firstRevision = (sent: string): string =>
  REVISIONS.test(sent) ? sent.slice(0, 'YYYY-MM-DD'.length) : sent;

export const mcpHeaderFields: ProtocolFields = {
  single: [{ name: SESSION_HEADER }, { name: VERSION_HEADER, normal: firstRevision }],
  endToEnd: ['mcp-'],
};

/** Keys in `params._meta` of requests since revision 2026-07-28 ("`_meta`", reserved keys). */
export const META = {
  version: 'io.modelcontextprotocol/protocolVersion',
  capabilities: 'io.modelcontextprotocol/clientCapabilities',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscription: 'io.modelcontextprotocol/subscriptionId',
} as const;

/** JSON-RPC 2.0 §5.1 and the MCP revision 2026-07-28 ("Error codes"). */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** Up to revision 2025-11-25. */
  resourceNotFound: -32002,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** A failure that is answered with a JSON-RPC error of this code, message and data. */
export class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
    this.data = data;
  }
}

/** Creates a JSON-RPC error response. `id` is JSON text, so that `"1"` and `1` are returned unchanged. */
export function errorMessage(id: string, code: number, message: string, data?: unknown): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message, data })}}`;
}

/** Creates a JSON-RPC error response. `id` and `data` are JSON texts. */
export const errorText = (id: string, code: number, message: string, data?: string): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":${JSON.stringify(message)}${data === undefined ? '' : `,"data":${data}`}}}`;

/** Creates a JSON-RPC result response. Both arguments are JSON text. */
export function resultMessage(id: string, result: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
}

/** Creates a JSON-RPC request. `id` is JSON text. */
export function requestMessage(id: string, method: string, params?: unknown): string {
  return params === undefined
    ? `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)}}`
    : `{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`;
}

/** Creates a JSON-RPC notification. */
export function notificationMessage(method: string, params?: unknown): string {
  return params === undefined
    ? `{"jsonrpc":"2.0","method":${JSON.stringify(method)}}`
    : `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${JSON.stringify(params)}}`;
}

/** Creates an error with status 400 and a JSON-RPC error as its body, like the official SDKs. `id` is JSON text. */
export function badMessage(error: RpcError, id: string): AppError {
  return new AppError('mcp_invalid', {
    message: `mcp: ${error.message}`,
    body: { type: 'application/json', text: errorMessage(id, error.code, error.message, error.data) },
  });
}

/** The message of a server's error. Java servers write the message of an exception, which may be null. */
export function readableText(message: unknown): string {
  if (message === undefined || message === null || message === '') return 'the server gave no reason';
  return typeof message === 'string' ? message : JSON.stringify(message);
}

/** The JSON-RPC error in the body of an HTTP response; undefined for any other text. */
export function rpcErrorIn(body: string): { code: number; message: string; data?: unknown } | undefined {
  const { code, message, data } = membersOf(membersOf(jsonIn(body))['error']);
  if (typeof code !== 'number' || !Number.isSafeInteger(code)) return undefined;
  return { code, message: readableText(message), data };
}
