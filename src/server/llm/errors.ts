import { AppError, ERRORS, type ErrorCode } from '../../core/errors.ts';

/** A refusal in the form that OpenAI clients read: `{"error": {"message", "type", "code"}}`. */
export function llmError(code: ErrorCode, llmCode: string, message: string, detail?: string): AppError {
  return new AppError(code, {
    message,
    body: envelope(message, errorType(code), llmCode),
    ...(detail === undefined ? {} : { detail }),
  });
}

function errorType(code: ErrorCode): string {
  return ERRORS[code].status < 500 ? 'invalid_request_error' : 'api_error';
}

/** The envelope as a response body. */
export function envelope(message: string, type: string, code: string): { type: string; text: string } {
  return { type: 'application/json', text: JSON.stringify({ error: { message, type, code } }) };
}

/** An error inside a stream that has begun: the status is gone, so an event says it, and no `[DONE]` follows. */
export function errorEvent(message: string, type: string, code: string): string {
  return `data: ${envelope(message, type, code).text}\n\n`;
}

/** Clients wait and try again when they read this; after another 4xx they give up. */
const RATE_LIMITED = 'rate_limit_exceeded';

/** The body for a failure of the gateway itself, whichever policy refused the request. */
export function errorBody({ code, status, message }: AppError): { type: string; text: string } {
  if (code === 'rate_limited') return envelope(message, RATE_LIMITED, RATE_LIMITED);
  return envelope(message, status < 500 ? 'invalid_request_error' : 'api_error', code);
}
