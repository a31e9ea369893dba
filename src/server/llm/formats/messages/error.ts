import type { ChatError } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { CONTEXT_EXCEEDED } from '../../chat/provider-error.ts';

/** https://docs.anthropic.com/en/api/errors */
const TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  408: 'timeout_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** Names of other providers that say more than their status. */
const BY_CODE: Readonly<Record<string, string>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  insufficient_quota: 'billing_error',
  server_overloaded: 'overloaded_error',
};

/** Writes the body of an error. */
export function writeError(error: ChatError): Json {
  return { type: 'error', error: errorObject(error) };
}

/** The `error` member, also of an error event. */
function errorObject({ message, status, code }: ChatError): Json {
  return {
    type: errorType(status, code),
    message: code === CONTEXT_EXCEEDED ? contextMessage(message) : message,
  };
}

function errorType(status: number, code: string | undefined): string {
  const named = code === undefined ? undefined : BY_CODE[code];
  if (named !== undefined) return named;
  if (code !== undefined && Object.values(TYPES).includes(code)) return code;
  return TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

/** Clients recognize a conversation that is too long by the beginning of the message. */
function contextMessage(message: string): string {
  return message.startsWith(TOO_LONG) ? message : `${TOO_LONG}: ${message}`;
}

const TOO_LONG = 'prompt is too long';
