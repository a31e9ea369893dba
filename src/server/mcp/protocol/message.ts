import { isRecord, jsonIn, membersOf, parseJson } from '../../../core/foreign.ts';
import { foldedName, isOver, repeatedMember, shownName, structureOf } from '../../../core/json-members.ts';
import { LIMITS } from '../../../core/limits.ts';
import { eachMember, edit, members, type Span } from '../../kernel/json/json-text.ts';
import { withoutNulls } from './absent-members.ts';
import { MCP_METHODS, META, RPC, RpcError } from './protocol.ts';
import { isRpcError, isUsualResponse, repairedMessage } from './repaired-message.ts';

/**
 * A JSON-RPC message: the text, which is forwarded, and the members that were parsed from it, as far as their types are
 * checked. A response has either a result, which is an object, or an error with a code and a message.
 */
export interface RpcMessage {
  readonly kind: 'request' | 'notification' | 'response';
  readonly text: string;
  /** The id as JSON text, `1` or `"a"`; absent on notifications. */
  readonly id: string | undefined;
  readonly idSpan: Span | undefined;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly result: unknown;
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } | undefined;
}

interface StructureBounds {
  readonly depth: number;
  readonly keys: number;
}

const REQUEST_BOUNDS: StructureBounds = { depth: LIMITS.jsonDepth, keys: LIMITS.jsonKeys };
/** Bounds for messages of targets. Results of tools may have many keys; the size of a message bounds them. */
export const TARGET_BOUNDS: StructureBounds = {
  depth: LIMITS.parsedJsonDepth,
  keys: LIMITS.targetMessageBytes,
};

/**
 * Parses one message. Throws `RpcError` (parse error or invalid request) for anything that is not a single JSON-RPC 2.0
 * message, and for ambiguous messages: duplicate keys, or keys that differ from protocol keys in case only (a
 * case-insensitive server would use another value than the one that was authorized).
 */
export function parseMessage(text: string, bounds: StructureBounds = REQUEST_BOUNDS): RpcMessage {
  const structure = structureOf(text, bounds.depth, bounds.keys);
  if (isOver(structure, bounds.depth, bounds.keys)) {
    throw new RpcError(
      RPC.invalidRequest,
      `the message nests deeper than ${bounds.depth} or has over ${bounds.keys} keys`,
    );
  }
  const value = jsonIn(text);
  if (value === undefined) throw new RpcError(RPC.parseError, 'the body is not valid JSON');
  if (Array.isArray(value))
    throw new RpcError(RPC.invalidRequest, 'batches are not supported: send one message per request');
  if (!isRecord(value)) throw new RpcError(RPC.invalidRequest, 'the body is not a JSON-RPC message');
  // Rules and targets must read the same arguments. No rule reads messages of targets.
  const repeated = bounds === REQUEST_BOUNDS ? repeatedMember(text, value, structure) : undefined;
  if (repeated !== undefined) throw new RpcError(RPC.invalidRequest, `duplicate key ${shownName(repeated)}`);
  return classify(text, value, bounds === TARGET_BOUNDS);
}

function classify(text: string, value: Readonly<Record<string, unknown>>, isFromTarget: boolean): RpcMessage {
  const { id, method, params, result, error } = value;
  // What has an id and no method can only be a response to what a target was asked.
  const isAnswer = isFromTarget && (id ?? undefined) !== undefined;
  const isResponse =
    (method ?? undefined) === undefined && ('result' in value || 'error' in value || isAnswer);
  const allowed = isResponse ? RESPONSE_MEMBERS : REQUEST_MEMBERS;
  let idSpan: Span | undefined;
  let paramsAt = -1;
  let hasOthers = false;
  checkKeys(text, 0, value, TOP_KEYS, (key, start, end) => {
    if (!allowed.has(key)) hasOthers = true;
    if (key === 'id') idSpan = { start, end };
    else if (key === 'params') paramsAt = start;
  });
  // What no rule and no guardrail reads must not reach the other side.
  if (hasOthers) return classify(...withMembers(text, allowed), isFromTarget);
  if (value['jsonrpc'] !== '2.0') throw new RpcError(RPC.invalidRequest, 'expected "jsonrpc": "2.0"');
  const isUsual = isResponse
    ? isUsualResponse(value)
    : !isFromTarget || (id !== null && params !== null && result !== null && error !== null);
  if (!isUsual) {
    const repaired = repairedMessage(text, value, isResponse);
    return classify(repaired, membersOf(parseJson(repaired)), isFromTarget);
  }
  if (idSpan !== undefined && !isId(id) && !(id === null && isResponse)) {
    throw new RpcError(RPC.invalidRequest, 'expected "id" to be a string or a whole number');
  }
  if (params !== undefined && !isRecord(params)) {
    throw new RpcError(RPC.invalidRequest, 'expected "params" to be an object');
  }
  if (isFromTarget && typeof method === 'string' && MCP_METHODS.has(method)) {
    const plain = withoutNulls(text, 'params', params);
    if (plain !== text) return classify(plain, membersOf(parseJson(plain)), isFromTarget);
  }
  if (params !== undefined) checkParamKeys(text, paramsAt, params);
  if (!isResponse && typeof method !== 'string')
    throw new RpcError(RPC.invalidRequest, 'expected "method" to be a string');
  return {
    kind: isResponse ? 'response' : idSpan === undefined ? 'notification' : 'request',
    text,
    id: idSpan && text.slice(idSpan.start, idSpan.end),
    idSpan,
    method: typeof method === 'string' ? method : '',
    params: params ?? {},
    result,
    error: isRpcError(error) ? error : undefined,
  };
}

/** JSON-RPC 2.0 sections 4 and 5: the members of a request, and of a response. */
const REQUEST_MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params']);
const RESPONSE_MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'result', 'error']);

/** The message with these members only, as they were sent. */
function withMembers(
  text: string,
  allowed: ReadonlySet<string>,
): [text: string, value: Readonly<Record<string, unknown>>] {
  const kept = members(text)
    .filter(([key]) => allowed.has(key))
    .map(([key, { start, end }]) => `"${key}":${text.slice(start, end)}`);
  const message = `{${kept.join(',')}}`;
  return [message, membersOf(parseJson(message))];
}

const isId = (id: unknown): boolean => typeof id === 'string' || Number.isInteger(id);

/** Keys of the protocol. */
interface Keys {
  readonly names: ReadonlySet<string>;
  readonly byFoldedName: ReadonlyMap<string, string>;
}

const keys = (...names: string[]): Keys => ({
  names: new Set(names),
  byFoldedName: new Map(names.map((name) => [foldedName(name), name])),
});

const TOP_KEYS = keys('jsonrpc', 'id', 'method', 'params', 'result', 'error');
const PARAM_KEYS = keys(
  'name',
  'uri',
  'taskId',
  'arguments',
  'ref',
  'cursor',
  'requestId',
  'progressToken',
  'requestState',
  'inputResponses',
  'notifications',
  '_meta',
);
/** Objects in the parameters whose members the gateway reads. */
const NESTED_KEYS: ReadonlyMap<string, Keys> = new Map([
  ['ref', keys('type', 'name', 'uri')],
  ['_meta', keys('progressToken', ...Object.values(META))],
]);

function checkParamKeys(text: string, from: number, params: Readonly<Record<string, unknown>>): void {
  let objects: [value: unknown, start: number, keys: Keys][] | undefined;
  checkKeys(text, from, params, PARAM_KEYS, (key, start) => {
    const nested = text[start] === '{' ? NESTED_KEYS.get(key) : undefined;
    if (nested === undefined) return;
    objects ??= [];
    objects.push([params[key], start, nested]);
  });
  for (const [value, start, nested] of objects ?? []) checkKeys(text, start, membersOf(value), nested);
}

/**
 * Rejects an object with a duplicate key, or with a key that differs from one of the protocol in case only. `value` is the
 * parsed object that starts at or after `from`; `visit` is called for each member.
 */
function checkKeys(
  text: string,
  from: number,
  value: Readonly<Record<string, unknown>>,
  protocolKeys: Keys,
  visit?: (key: string, start: number, end: number) => void,
): void {
  let count = 0;
  eachMember(text, from, (key, start, end) => {
    count += 1;
    visit?.(key, start, end);
    // Usually true, and cheaper than folding the key.
    if (protocolKeys.names.has(key)) return;
    const expected = protocolKeys.byFoldedName.get(foldedName(key));
    if (expected === undefined) return;
    throw new RpcError(
      RPC.invalidRequest,
      `the key ${JSON.stringify(key)} differs from "${expected}" in case only`,
    );
  });
  // `JSON.parse` keeps one of two duplicates.
  for (const _ in value) count -= 1;
  if (count !== 0) throw new RpcError(RPC.invalidRequest, `duplicate key ${duplicateKey(text, from)}`);
}

function duplicateKey(text: string, from: number): string {
  const seen = new Set<string>();
  const [duplicate] = members(text, from).find(([key]) => seen.size === seen.add(key).size) ?? [];
  return JSON.stringify(duplicate);
}

/**
 * Returns the same text for equal ids, given as JSON text: a client may write an id with other escapes, or `7` as `7.0`.
 * Integers beyond the safe range keep their digits.
 */
export function canonicalId(text: string): string {
  if (PLAIN_ID.test(text)) return text;
  const value = parseJson(text);
  return typeof value === 'string' || Number.isSafeInteger(value) ? JSON.stringify(value) : text;
}

/** Ids that are written in one way only: whole numbers of at most 15 digits, and strings of letters, digits and a few marks. */
const PLAIN_ID = /^(?:\d{1,15}|"[\w.:-]*")$/;

/** Returns the text of a message with another id (JSON text). */
export function withId(message: RpcMessage, id: string): string {
  const { idSpan, text } = message;
  return idSpan === undefined ? text : edit(text, [{ ...idSpan, text: id }]);
}

/**
 * The number of the gateway's request that a response names by its id, as JSON text; undefined if it names none. Some servers
 * return `1` as `"1"` (python-sdk#961, #1720) or as `1.0`.
 */
export function requestNumber(id = ''): number | undefined {
  const digits = NUMBER.exec(id)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

const NUMBER = /^"?(\d{1,15})(?:\.0+)?"?$/;

/** Whether a server means the same id or token, both as JSON text, apart from its form. */
export const isSameId = (sent: string, received: string): boolean =>
  sent === received ||
  (requestNumber(sent) ?? canonicalId(sent)) === (requestNumber(received) ?? canonicalId(received));

/**
 * The number of the gateway's request that a response belongs to. "If there was an error in detecting the id in the Request
 * object [...], it MUST be Null" (JSON-RPC 2.0 §5); some servers write that, or no id, in every error (radare2-mcp#68,
 * helidon-mcp#65). Such a response belongs to the request that HTTP knows (`inReplyTo`), and such an error otherwise to the
 * only call in flight (`onlyCall`), unless it is about a notification, which needs no answer.
 */
export function answeredRequest(
  { id, error }: RpcMessage,
  inReplyTo: number | undefined,
  onlyCall: number | undefined,
): number | undefined {
  if (id !== undefined && id !== 'null') return requestNumber(id);
  if (inReplyTo !== undefined) return inReplyTo;
  return error === undefined || /\bnotifications?\b/i.test(error.message) ? undefined : onlyCall;
}

/** Like `requestNumber`, for an id that is a member of the parsed parameters. */
export const numberOfId = (id: unknown): number | undefined =>
  typeof id === 'string' || typeof id === 'number' ? requestNumber(JSON.stringify(id)) : undefined;

/**
 * The id of an invalid request as JSON text. Undefined if the text is not an object, or its id is missing, ambiguous or no id. The text
 * is not parsed: its structure may be over the bounds.
 */
export function idOfRequest(text: string): string | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  try {
    const found = members(text).map(([key, span]) => ({ key: foldedName(key), ...span }));
    const [id, other] = found.filter(({ key }) => key === 'id');
    const isResponse = found.some(({ key }) => key === 'result' || key === 'error');
    if (id === undefined || other !== undefined || isResponse) return undefined;
    const own = text.slice(id.start, id.end);
    return isId(parseJson(own)) ? own : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The id of an invalid response as JSON text, so that its caller gets an error instead of waiting. Undefined if it cannot be
 * read, if the message is a request, whose id is the server's, or if it is a line of a log that has an `id`, too (kud/mcp-jenkins#6).
 */
export function idOfInvalid(text: string): string | undefined {
  const { id, method, others } = readMembers(text);
  if (method !== undefined) return undefined;
  return mayBeResponse(others) || jsonIn(text) === undefined ? id : undefined;
}

/**
 * Whether a message with these members beside its id may be meant as a response. Without a version, it is one if it has nothing else,
 * as in JSON-RPC 1.0: structured loggers write `result` and `error`, too, but beside a level, a time or a text.
 */
const mayBeResponse = (others: readonly string[]): boolean =>
  others.includes('jsonrpc') || (others.length > 0 && others.every((key) => RESPONSE_MEMBERS.has(key)));

/** The id of an invalid request of a server as JSON text; undefined for other messages, and if it is not an id. */
export function idOfInvalidRequest(text: string): string | undefined {
  return readMembers(text).method === undefined ? undefined : idOfRequest(text);
}

interface InvalidMembers {
  id?: string;
  method?: string;
  /** The names of all others. */
  readonly others: string[];
}

/** Members of an invalid message as JSON texts, as far as they can be read. */
function readMembers(text: string): InvalidMembers {
  const found: InvalidMembers = { others: [] };
  if (!text.startsWith('{')) return found;
  try {
    eachMember(text, 0, (key, start, end) => {
      if (key === 'id' || key === 'method') found[key] ??= text.slice(start, end);
      else found.others.push(key);
    });
  } catch {
    // What follows is not JSON.
  }
  return found;
}
