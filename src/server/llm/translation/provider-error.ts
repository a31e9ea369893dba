import type { ChatError } from './chat.ts';
import { defined } from './defined.ts';

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
 * OpenAI's name for a prompt that is too long. Clients react to it: they shorten the conversation. Anthropic has no name
 * for it, only a message.
 */
export const CONTEXT_EXCEEDED = 'context_length_exceeded';

const CONTEXT_MESSAGE = /^prompt is too long|maximum context length|exceeds? the context (window|length)/i;

function isContextError(code: string | undefined, message = ''): boolean {
  const isNameless = code === undefined || code === 'invalid_request_error' || code === 'BadRequestError';
  return isNameless && CONTEXT_MESSAGE.test(message);
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
