import { elementsOf } from '../../../../core/foreign.ts';
import type { ChatError } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { CONTEXT_EXCEEDED, readProviderError } from '../../chat/provider-error.ts';
import { membersOf } from '../../json-members.ts';

/** HTTP statuses of `google.rpc.Code` (google/rpc/code.proto), as far as a gateway or a model answers with them. */
const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [499, 'CANCELLED'],
  [500, 'INTERNAL'],
  [501, 'UNIMPLEMENTED'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);

/** The message for a prompt that is too long, for which Google has no name of its own. */
const TOO_LONG = /input token count .{1,100} exceeds the maximum/i;

/** The error of a response: `{"error": {"code", "message", "status"}}`, or a list of it. `code` is the HTTP status. */
export function readError(body: unknown, status: number): ChatError {
  const outer = membersOf(Array.isArray(body) ? elementsOf(body)[0] : body);
  const { code } = membersOf(outer?.['error']) ?? {};
  const error = readProviderError(
    body,
    typeof code === 'number' && code >= 400 && code <= 599 ? code : status,
  );
  if (TOO_LONG.test(error.message)) return { ...error, code: CONTEXT_EXCEEDED };
  const retryAfter = retryDelay(outer?.['error']);
  return retryAfter === undefined ? error : { ...error, retryAfter };
}

/** Gemini has no `Retry-After`; the time is in a `google.rpc.RetryInfo` among the details, such as `34.4s`. */
function retryDelay(error: unknown): number | undefined {
  for (const detail of elementsOf(membersOf(error)?.['details'])) {
    const delay = membersOf(detail)?.['retryDelay'];
    if (typeof delay === 'string' && /^\d{1,9}(?:\.\d{1,9})?s$/.test(delay))
      return Math.ceil(Number.parseFloat(delay));
  }
  return undefined;
}

export function writeError({ message, status }: ChatError): Json {
  return { error: { code: status, message, status: googleStatus(status) } };
}

/** The name that Google's APIs give to an HTTP status. */
export function googleStatus(status: number): string {
  return STATUSES.get(status) ?? (status < 500 ? 'FAILED_PRECONDITION' : 'UNKNOWN');
}
