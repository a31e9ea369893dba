import { AppError, ERRORS, type ErrorCode } from '../../core/errors.ts';

/** An error in the OpenAI format: `{"error": {"message", "type", "code"}}`. `detail` is only logged. */
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

/** The response body of an error in the OpenAI format. */
export function envelope(message: string, type: string, code: string): { type: string; text: string } {
  return { type: 'application/json', text: JSON.stringify({ error: { message, type, code } }) };
}

/** An error event for a stream whose status has already been sent. No `[DONE]` follows. */
export function errorEvent(message: string, type: string, code: string): string {
  return `data: ${envelope(message, type, code).text}\n\n`;
}

/** OpenAI clients retry later on this code; on other 4xx codes they give up. */
const RATE_LIMITED = 'rate_limit_exceeded';

/** The body of an error raised by the gateway, by whichever policy. */
export function errorBody({ code, status, message }: AppError): { type: string; text: string } {
  if (code === 'rate_limited') return envelope(message, RATE_LIMITED, RATE_LIMITED);
  return envelope(message, status < 500 ? 'invalid_request_error' : 'api_error', code);
}
