import { AppError, ERRORS, type ErrorCode } from '../../core/errors.ts';
import { membersOf, parseOrNothing } from './json-members.ts';

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

/** An error reported by a provider. */
export interface ProviderError {
  /** The provider's error name, such as `invalid_api_key`: `code`, else `type` (OpenAI), else `status` (Google). */
  readonly name: string | undefined;
}

/** Only names are accepted, because sentences may quote the prompt or a key. */
const NAME = /^[\w.-]{1,64}$/;

/** Provider errors have a few hundred bytes. Longer bodies are not searched. */
const MAX_BYTES = 65_536;

/** The error in the body of an error response. Google's APIs wrap it in a list. */
export function errorInBody(body: Buffer): ProviderError | undefined {
  const parsed = parseOrNothing(body.toString('utf8', 0, MAX_BYTES));
  return errorOf(membersOf(Array.isArray(parsed) ? parsed[0] : parsed)?.['error']);
}

/**
 * The error in an event of a stream: an `error` member or, for `/v1/responses`, an event of type `error` or a failed
 * response.
 */
export function errorInEvent(data: string): ProviderError | undefined {
  const event = data.length > MAX_BYTES ? undefined : membersOf(parseOrNothing(data));
  const inside = event?.['error'] ?? membersOf(event?.['response'])?.['error'];
  return errorOf(inside) ?? (event?.['type'] === 'error' ? errorOf(event) : undefined);
}

/** Reads the value of an `error` member. Undefined unless it is an object. */
export function errorOf(value: unknown): ProviderError | undefined {
  const members = membersOf(value);
  if (members === undefined) return undefined;
  const name = [members['code'], members['type'], members['status']].find(
    (text): text is string => typeof text === 'string' && NAME.test(text),
  );
  return { name };
}
