import { isRecord, membersOf, shownValue } from '../../../core/foreign.ts';
import { isHeaderValue } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { RpcMessage } from './message.ts';
import {
  META,
  METHOD_HEADER,
  MODERN_REVISION,
  NAME_HEADER,
  RPC,
  RpcError,
  SESSION_REVISIONS,
  SUPPORTED_REVISIONS,
  VERSION_HEADER,
} from './protocol.ts';

/** What each request of revision 2026-07-28 says about its client, in `params._meta`. */
export interface Envelope {
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly clientInfo: unknown;
  readonly logLevel: string | undefined;
}

const LOG_LEVELS = new Set(['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']);

const isLegacy = (version: unknown): boolean => SESSION_REVISIONS.some((known) => known === version);

/**
 * Whether a message is served without a session. The body decides, and the header only for a message without a revision in
 * `_meta`, such as a response; both are compared in `readEnvelope`. `initialize` is a request of the older revisions unless its `_meta` says
 * otherwise ("Backward Compatibility").
 */
export function isModern(ctx: RequestContext, { kind, method, params }: RpcMessage): boolean {
  const claimed = membersOf(params['_meta'])[META.version];
  if (claimed !== undefined) return !isLegacy(claimed);
  const version = ctx.headers.get(VERSION_HEADER);
  return version !== undefined && !isLegacy(version) && !(method === 'initialize' && kind === 'request');
}

/**
 * Reads and checks `_meta` and the headers that repeat members of the body. Throws `RpcError`, all of which are answered with
 * status 400: `invalidParams` for a missing or malformed member of `_meta`, `headerMismatch` for a missing header or one that
 * differs from the body, `unsupportedVersion` (2026-07-28, "Server Validation" and "Per-request protocol fields").
 */
export function readEnvelope(ctx: RequestContext, message: RpcMessage): Envelope {
  checkRevision(ctx, message);
  const meta = membersOf(message.params['_meta']);
  const version = meta[META.version];
  const capabilities = meta[META.capabilities];
  if (version === undefined) throw missing(META.version, 'the protocol revision, as in the header');
  if (!isRecord(capabilities)) throw missing(META.capabilities, 'an object, `{}` for a client without any');
  const clientInfo = meta[META.clientInfo];
  if (clientInfo !== undefined && !(isRecord(clientInfo) && typeof clientInfo['name'] === 'string'))
    throw missing(META.clientInfo, 'an object with `name` and `version`');
  const logLevel = meta[META.logLevel];
  if (logLevel !== undefined && !(typeof logLevel === 'string' && LOG_LEVELS.has(logLevel)))
    throw missing(META.logLevel, `one of ${[...LOG_LEVELS].join(', ')}`);
  checkHeaders(ctx, message, ctx.headers.get(VERSION_HEADER));
  return { capabilities, clientInfo, logLevel };
}

/** Throws `RpcError` unless header and `_meta`, or one of them, contain this revision. A notification needs no more. */
export function checkRevision(ctx: RequestContext, { params }: RpcMessage): void {
  const version = membersOf(params['_meta'])[META.version];
  const inHeader = ctx.headers.get(VERSION_HEADER);
  if (version !== undefined && inHeader !== undefined && version !== inHeader)
    throw versionMismatch(inHeader, version);
  const requested = version ?? inHeader;
  if (requested !== MODERN_REVISION) throw unsupportedVersion(requested);
}

/** The members of `_meta` that a request in the name of this client has. */
export function envelopeMeta({ capabilities, clientInfo, logLevel }: Envelope): Record<string, unknown> {
  return {
    [META.version]: MODERN_REVISION,
    ...(clientInfo === undefined ? {} : { [META.clientInfo]: clientInfo }),
    [META.capabilities]: capabilities,
    ...(logLevel === undefined ? {} : { [META.logLevel]: logLevel }),
  };
}

/** Methods whose item the header `Mcp-Name` repeats, and its member of `params` ("Standard Request Headers", SEP-2663). */
const NAMED: Readonly<Record<string, string>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** The item that `Mcp-Name` repeats; undefined for a method without one. */
export function mirroredName({ method, params }: RpcMessage): string | undefined {
  const key = NAMED[method];
  const name = key === undefined ? undefined : params[key];
  return typeof name === 'string' ? name : undefined;
}

function checkHeaders(ctx: RequestContext, message: RpcMessage, version: string | undefined): void {
  if (message.kind !== 'request') return;
  const { method } = message;
  if (version === undefined) throw absent(VERSION_HEADER, MODERN_REVISION);
  const inHeader = ctx.headers.get(METHOD_HEADER);
  if (inHeader === undefined) throw absent(METHOD_HEADER, method);
  if (inHeader !== method) throw mismatch(METHOD_HEADER, inHeader, method, 'method');
  const name = mirroredName(message);
  const nameHeader = ctx.headers.get(NAME_HEADER);
  if (name === undefined) return;
  if (nameHeader === undefined) throw absent(NAME_HEADER, name);
  const decoded = decodedValue(nameHeader);
  if (decoded !== name) throw mismatch(NAME_HEADER, nameHeader, name, `params.${NAMED[method]}`);
}

/** RFC 4648, section 4, with its padding: two spellings of one value could be read differently by intermediaries. */
const BASE64 =
  /^=\?base64\?((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?)\?=$/;

/** Decodes a header value ("Value Encoding"); undefined if it is not valid, padded base64 of UTF-8. */
export function decodedValue(value: string): string | undefined {
  if (!(value.startsWith('=?base64?') && value.endsWith('?='))) return value;
  const [, encoded] = BASE64.exec(value) ?? [];
  if (encoded === undefined) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(encoded, 'base64'));
  } catch {
    return undefined;
  }
}

/** Encodes a value for a header ("Value Encoding"): as base64 if it is not plain ASCII or has outer spaces. */
export function encodedValue(value: string): string {
  const isPlain =
    /^[\x20-\x7e\t]*$/.test(value) &&
    value.trim() === value &&
    value !== '' &&
    isHeaderValue(value) &&
    !(value.startsWith('=?base64?') && value.endsWith('?='));
  return isPlain ? value : `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

/** The error for a revision that the gateway does not know. */
export function unsupportedVersion(requested: unknown): RpcError {
  const text = shownValue(requested).slice(0, 64);
  return new RpcError(RPC.unsupportedVersion, `unsupported MCP protocol version: ${text}`, {
    supported: SUPPORTED_REVISIONS,
    requested: text,
  });
}

/** The error for a revision in the header that differs from the one in the body. */
export const versionMismatch = (inHeader: string, inBody: unknown): RpcError =>
  mismatch(VERSION_HEADER, inHeader, inBody, `params._meta["${META.version}"]`);

const shown = (value: unknown): string => JSON.stringify(shownValue(value).slice(0, 100));

const missing = (key: string, expected: string): RpcError =>
  new RpcError(RPC.invalidParams, `expected params._meta["${key}"] to be ${expected}`);

const absent = (name: string, value: string): RpcError =>
  new RpcError(RPC.headerMismatch, `the header ${name} is missing: expected ${shown(value)}`);

const mismatch = (name: string, value: string, inBody: unknown, path: string): RpcError =>
  new RpcError(
    RPC.headerMismatch,
    `the header ${name} is ${shown(value)}, but ${path} in the body is ${shown(inBody)}`,
  );
