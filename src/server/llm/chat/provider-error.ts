import { membersOf } from '../../../core/foreign.ts';
import type { ChatError } from './chat.ts';
import { defined } from './defined.ts';
import { textOf } from './event-data.ts';

/**
 * Reads the error response of a provider, whatever its form: `{"error": {…}}` (OpenAI, Anthropic, in a list: Google),
 * `{"error": "…"}` (Ollama), `{"message": "…"}` (Mistral, older vLLM), `{"detail": "…"}` (FastAPI), or no JSON at all.
 */
export function readProviderError(body: unknown, status: number): ChatError {
  const members = membersOf(Array.isArray(body) ? (body as unknown[])[0] : body);
  const error = membersOf(members['error'] ?? members);
  const message =
    textOf(members['error']) ?? textOf(error['message']) ?? textOf(error['detail']) ?? textOf(error['msg']);
  const code = textOf(error['code']) ?? textOf(error['type']) ?? textOf(error['status']);
  return defined({
    message: message ?? `The provider answered with status ${status}.`,
    status,
    code: isContextError(code, message) ? CONTEXT_EXCEEDED : code,
    param: textOf(error['param']),
  });
}

/**
 * Reads the error of an event. The status of a stream is 200, so that of the error follows from its name: 500 for names that say
 * nothing of the request. Servers such as vLLM have the status itself in `code`.
 */
export function readEventError(body: unknown): ChatError {
  const { type, code } = membersOf(membersOf(body)['error'] ?? body);
  const isStatus = typeof code === 'number' && code >= 400 && code <= 599;
  const status = isStatus ? code : (STATUSES.get(code) ?? STATUSES.get(type) ?? 500);
  return readProviderError(body, status);
}

/** Statuses of errors of Anthropic and OpenAI, by their names. */
const STATUSES: ReadonlyMap<unknown, number> = new Map([
  ['invalid_request_error', 400],
  ['invalid_prompt', 400],
  ['context_length_exceeded', 400],
  ['authentication_error', 401],
  ['permission_error', 403],
  ['not_found_error', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['insufficient_quota', 429],
  ['server_overloaded', 503],
  ['timeout_error', 504],
  ['overloaded_error', 529],
]);

/**
 * OpenAI's name for a prompt that is too long. Clients react to it: they shorten the conversation. Anthropic has no name
 * for it, only a message.
 */
export const CONTEXT_EXCEEDED = 'context_length_exceeded';

const CONTEXT_MESSAGE = /^prompt is too long|maximum context length|exceeds? the context (window|length)/i;

function isContextError(code: string | undefined, message = ''): boolean {
  const isNameless = code === undefined || code === 'invalid_request_error' || code === 'BadRequestError';
  return isNameless && CONTEXT_MESSAGE.test(message);
}
