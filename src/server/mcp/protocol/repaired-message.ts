import { isRecord } from '../../../core/foreign.ts';
import { members, valueAt } from '../../kernel/json/json-text.ts';
import { errorText, RPC, readableText, resultMessage } from './protocol.ts';

// Messages that JSON-RPC 2.0 does not allow and whose meaning is clear anyway. They become messages that it allows, since
// clients drop a response which their SDK cannot parse and wait for another one.

type Members = Readonly<Record<string, unknown>>;

/** Whether a value is the error of a response as JSON-RPC 2.0 §5.1 defines it. */
export const isRpcError = (
  value: unknown,
): value is { readonly code: number; readonly message: string; readonly data?: unknown } =>
  isRecord(value) && Number.isSafeInteger(value['code']) && typeof value['message'] === 'string';

/** Whether a response is what JSON-RPC 2.0 and MCP allow: an id with a result that is an object, or with an error. */
export function isUsualResponse(value: Members): boolean {
  if (!('id' in value) || 'method' in value || 'params' in value) return false;
  return 'error' in value ? !('result' in value) && isRpcError(value['error']) : isRecord(value['result']);
}

/**
 * The text of an unusual message as JSON-RPC 2.0 allows it. Members that are null count as absent: serializers of Java and C# write
 * all members of a class. Of a response, an error that says something outweighs a result.
 */
export function repairedMessage(text: string, value: Members, isResponse: boolean): string {
  const found = new Map(members(text).map(([key, { start, end }]) => [key, text.slice(start, end)]));
  if (isResponse) return repairedResponse(value, found);
  const kept = ['id', 'method', 'params'].flatMap((key) => {
    const member = found.get(key);
    return member === undefined || member === 'null' ? [] : [`,"${key}":${member}`];
  });
  return `{"jsonrpc":"2.0"${kept.join('')}}`;
}

function repairedResponse({ result, error }: Members, found: ReadonlyMap<string, string>): string {
  const id = found.get('id') ?? 'null';
  const hasResult = result !== undefined && result !== null;
  if (saysNothing(error)) {
    // "The value of this member is determined by the method", and an empty object is the empty result of MCP.
    if (result === null) return resultMessage(id, '{}');
    if (isRecord(result)) return resultMessage(id, found.get('result') ?? '{}');
    const [problem, data] = hasResult
      ? ['the result of the response is not an object', found.get('result')]
      : ['the response has neither a result nor an error with a message', found.get('error')];
    return errorText(id, RPC.internalError, problem, data === 'null' ? undefined : data);
  }
  if (isRpcError(error)) return `{"jsonrpc":"2.0","id":${id},"error":${found.get('error')}}`;
  const { code, message } = isRecord(error) ? error : { code: undefined, message: error };
  const known = codeOf(code);
  const received = found.get('error') ?? 'null';
  return errorText(
    id,
    known ?? RPC.internalError,
    readableText(message),
    (known === undefined ? undefined : memberOf(received, 'data')) ?? received,
  );
}

/** Whether an error has no content: null, `false`, 0, an empty text, an empty object. */
const saysNothing = (error: unknown): boolean =>
  !error || (typeof error === 'object' && Object.keys(error).length === 0);

/** The code of an error, which some servers write as text. */
function codeOf(code: unknown): number | undefined {
  const value = typeof code === 'string' && /^-?\d+$/.test(code) ? Number(code) : code;
  return typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined;
}

/** A member of an object, both as JSON text. */
function memberOf(text: string, key: string): string | undefined {
  const span = valueAt(text, [key]);
  return span && text.slice(span.start, span.end);
}
