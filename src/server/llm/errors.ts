import { AppError, type AppErrorOptions, type ErrorCode } from '../../core/errors.ts';
import { jsonIn } from '../../core/foreign.ts';
import { membersOf } from './json-members.ts';

/** The code of a request that has something which the format of a provider cannot express. */
export const UNTRANSLATABLE = 'untranslatable';

/** An error on an LLM route with a code of the OpenAI API. */
export class LlmError extends AppError {
  readonly llmCode: string;

  constructor(
    code: ErrorCode,
    llmCode: string,
    options: Pick<AppErrorOptions, 'message' | 'detail' | 'headers' | 'status'>,
  ) {
    super(code, options);
    this.llmCode = llmCode;
  }
}

/** An error for the client, in the format of its call (`client-error.ts`). `detail` is only logged. */
export function llmError(code: ErrorCode, llmCode: string, message: string, detail?: string): AppError {
  return new LlmError(code, llmCode, { message, ...(detail === undefined ? {} : { detail }) });
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
  const parsed = jsonIn(body.toString('utf8', 0, MAX_BYTES));
  return errorOf(membersOf(Array.isArray(parsed) ? parsed[0] : parsed)?.['error']);
}

/**
 * The error in an event of a stream: an `error` member or, for `/v1/responses`, an event of type `error` or a failed
 * response.
 */
export function errorInEvent(data: string): ProviderError | undefined {
  const event = data.length > MAX_BYTES ? undefined : membersOf(jsonIn(data));
  const inside = event?.['error'] ?? membersOf(event?.['response'])?.['error'];
  return errorOf(inside) ?? (event?.['type'] === 'error' ? errorOf(event) : undefined);
}

/** Reads the value of an `error` member: an object, or a text (Ollama), which names nothing. Undefined for anything else. */
export function errorOf(value: unknown): ProviderError | undefined {
  if (typeof value === 'string' && value !== '') return { name: undefined };
  const members = membersOf(value);
  if (members === undefined) return undefined;
  const name = [members['code'], members['type'], members['status']].find(
    (text): text is string => typeof text === 'string' && NAME.test(text),
  );
  return { name };
}
