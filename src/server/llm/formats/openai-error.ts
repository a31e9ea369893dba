import type { ChatError } from '../chat/chat.ts';
import type { Json } from '../chat/chat-format.ts';

/** Longest `user` and `safety_identifier` that OpenAI accepts. Longer ones, as Claude Code has, are left out. */
export const USER_LENGTH = 64;

/** Error types of Anthropic and Google by the names that OpenAI's clients know. */
const CODES: Readonly<Record<string, string>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  authentication_error: 'invalid_api_key',
  billing_error: 'insufficient_quota',
  rate_limit_error: 'rate_limit_exceeded',
  overloaded_error: 'server_overloaded',
  UNAUTHENTICATED: 'invalid_api_key',
  RESOURCE_EXHAUSTED: 'rate_limit_exceeded',
  UNAVAILABLE: 'server_overloaded',
};

/** Writes the body of an error of Chat Completions or Responses. https://platform.openai.com/docs/guides/error-codes */
export function writeOpenAiError({ message, status, code, param }: ChatError): Json {
  const name = openAiCode(code);
  return { error: { message, type: errorType(status), param: param ?? null, code: name } };
}

/** The provider's name of an error as OpenAI's clients know it; null for one that says no more than the status. */
export function openAiCode(code: string | undefined): string | null {
  if (code === undefined || GENERIC.has(code)) return null;
  return CODES[code] ?? code;
}

/** What OpenAI has in `type`, and what Google derives from the status. */
const GENERIC = new Set([
  'invalid_request_error',
  'api_error',
  'server_error',
  'not_found_error',
  'permission_error',
  'INVALID_ARGUMENT',
  'FAILED_PRECONDITION',
  'PERMISSION_DENIED',
  'NOT_FOUND',
  'INTERNAL',
  'UNKNOWN',
]);

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_error';
  return status < 500 ? 'invalid_request_error' : 'server_error';
}
