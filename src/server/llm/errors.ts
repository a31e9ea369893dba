import { AppError, type AppErrorOptions, type ErrorCode } from '../../core/errors.ts';
import { jsonIn } from '../../core/foreign.ts';
import { errorInChoices, statusOfError } from './chat/provider-error.ts';
import { type Members, membersOf } from './json-members.ts';

/** The code of a request that has something which the format of a provider cannot express. */
export const UNTRANSLATABLE = 'untranslatable';

/** An error on an LLM route with a code of the OpenAI API. */
export class LlmError extends AppError {
  readonly llmCode: string;

  constructor(
    code: ErrorCode,
    llmCode: string,
    options: Pick<AppErrorOptions, 'message' | 'detail' | 'logged' | 'headers' | 'status'>,
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
  /** The HTTP status that it means, if it says so. */
  readonly status?: number | undefined;
}

/** Whether an error inside an answer is a failure of the provider, as a status of 5xx or 429 is: others are those of the request. */
export const isProviderFault = ({ status = 500 }: Pick<ProviderError, 'status'>): boolean =>
  status >= 500 || status === 429;

/** Only names are accepted, because sentences may quote the prompt or a key. */
const NAME = /^[\w.-]{1,64}$/;

/** Provider errors have a few hundred bytes. Longer bodies are not searched. */
const MAX_BYTES = 65_536;

/** The error in the body of an error response. Google's APIs wrap it in a list. */
export function errorInBody(body: Buffer): ProviderError | undefined {
  const parsed = jsonIn(body.toString('utf8', 0, MAX_BYTES));
  return errorOf(membersOf(Array.isArray(parsed) ? parsed[0] : parsed)?.['error']);
}

/** The error in an event of a stream. */
export function errorInEvent(data: string): ProviderError | undefined {
  const body = data.length > MAX_BYTES ? undefined : errorBodyOf(jsonIn(data));
  return body && (errorOf(body['error']) ?? errorOf(body));
}

/**
 * An event with an error, as the body of an error response: an `error` member, also of a choice, or, for `/v1/responses`, an event of
 * type `error` or a failed response, which need not say why. Undefined for an event without one.
 */
export function errorBodyOf(value: unknown): Members | undefined {
  const event = membersOf(value);
  if (event === undefined) return undefined;
  if (event['type'] === 'error' || errorOf(event['error']) !== undefined) return event;
  const failed = errorInChoices(event);
  if (failed !== undefined) return { error: failed };
  const response = membersOf(event['response']);
  const hasFailed = event['type'] === 'response.failed' || errorOf(response?.['error']) !== undefined;
  return hasFailed ? response : undefined;
}

/** Reads the value of an `error` member: an object, or a text (Ollama), which names nothing. Undefined for anything else. */
export function errorOf(value: unknown): ProviderError | undefined {
  if (typeof value === 'string' && value !== '') return { name: undefined };
  const members = membersOf(value);
  if (members === undefined) return undefined;
  const name = [members['code'], members['type'], members['status']].find(
    (text): text is string => typeof text === 'string' && NAME.test(text),
  );
  return { name, status: statusOfError(members) };
}
