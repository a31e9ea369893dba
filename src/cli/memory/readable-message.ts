import { isRecord, jsonIn } from '../../core/foreign.ts';

/** JSON-RPC 2.0, section 5.1. */
const PARSE_ERROR = -32_700;
const INVALID_REQUEST = -32_600;

/** A line of a client: a message for the SDK, or why it is none, with the error for the client unless it expects no answer. */
export type ClientLine =
  | { readonly message: string }
  | { readonly problem: string; readonly answer: object | undefined };

/**
 * Reads a line of a client. The SDK ignores what it cannot read, and the client waits until its call times out
 * (modelcontextprotocol/rust-sdk#825). Null in place of parameters counts as absent: serializers write all members of a class.
 */
export function readLine(line: Buffer): ClientLine | undefined {
  // Programs of Windows begin a text with a byte order mark.
  const text = line
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trim();
  if (text === '') return undefined;
  const value = jsonIn(text);
  if (value === undefined)
    return refused(PARSE_ERROR, 'a line is not JSON: write each message on a line of its own', null);
  if (!isRecord(value))
    return refused(
      INVALID_REQUEST,
      'a line is not a JSON object: write each message on a line of its own',
      null,
    );
  const { jsonrpc, id, method, params } = value;
  const isResponse = method === undefined && ('result' in value || 'error' in value);
  const known = typeof id === 'string' || Number.isSafeInteger(id) ? id : null;
  if (id !== undefined && known === null)
    return refused(
      INVALID_REQUEST,
      'expected `id` to be a string or a whole number',
      isResponse ? undefined : null,
    );
  const problem =
    jsonrpc !== '2.0'
      ? 'expected `jsonrpc` to be "2.0"'
      : !isResponse && typeof method !== 'string'
        ? 'expected `method` to be a string'
        : params !== undefined && params !== null && !isRecord(params)
          ? 'expected `params` to be an object'
          : undefined;
  if (problem !== undefined)
    return refused(INVALID_REQUEST, problem, isResponse ? undefined : (known ?? undefined));
  if (params !== null) return { message: text };
  const { params: _, ...rest } = value;
  return { message: JSON.stringify(rest) };
}

/** `id`: undefined for a message that expects no answer, null if it cannot be read. */
const refused = (code: number, message: string, id: unknown): ClientLine => ({
  problem: message,
  answer: id === undefined ? undefined : { jsonrpc: '2.0', id, error: { code, message } },
});
