import { elementsOf, isRecord, membersOf } from '../../../core/foreign.ts';
import type { ChatError } from './chat.ts';
import { defined } from './defined.ts';
import { isEmpty, textOf } from './event-data.ts';

/** Members of errors of the known APIs, which clients compare with texts and numbers. */
const NAMES_OF_ERRORS = ['type', 'code', 'param', 'status'];

/**
 * Whether a response has its error where clients of chats look for it, `{"error": {…}}`, with a message that they can show and nothing
 * where they expect a name that is none.
 */
export const hasErrorObject = (body: unknown): boolean => {
  const { error } = membersOf(body);
  return (
    isRecord(error) &&
    typeof error['message'] === 'string' &&
    NAMES_OF_ERRORS.every((name) => isNameOfError(name, error[name]))
  );
};

const isNameOfError = (name: string, value: unknown): boolean =>
  (value ?? null) === null || typeof value === 'string' || (name === 'code' && typeof value === 'number');

/**
 * Reads the error response of a provider, whatever its form: `{"error": {…}}` (OpenAI, Anthropic, in a list: Google),
 * `{"error": "…"}` (Ollama), `{"message": "…"}` (Mistral, older vLLM), `{"detail": …}` (FastAPI: a text, or a list of what is
 * wrong), `{"errors": [{"message": "…"}]}` (Cloudflare), `"…"`, or no JSON at all.
 */
export function readProviderError(body: unknown, status: number): ChatError {
  const members = membersOf(Array.isArray(body) ? elementsOf(body)[0] : body);
  const error = membersOf(members['error'] ?? members);
  const message = errorText(body);
  const code = textOf(error['code']) ?? textOf(error['type']) ?? textOf(error['status']);
  return defined({
    message: message ?? `The provider answered with status ${status}.`,
    status,
    code: isContextError(code, message) ? CONTEXT_EXCEEDED : code,
    param: textOf(error['param']),
  });
}

/** What an error response says, whatever its form; undefined if it says nothing. */
export function errorText(body: unknown): string | undefined {
  const members = membersOf(Array.isArray(body) ? elementsOf(body)[0] : body);
  const { error } = members;
  return textOf(body) ?? textOf(error) ?? messageIn(membersOf(error)) ?? messageIn(members);
}

function messageIn(error: Readonly<Record<string, unknown>>): string | undefined {
  const { message, detail, msg, errors } = error;
  const text = textOf(message) ?? textOf(detail) ?? textOf(msg);
  if (text !== undefined) return text;
  const several = [detail, errors]
    .flatMap(elementsOf)
    .slice(0, MOST_ERRORS)
    .flatMap((each) => {
      const { message: told, msg: said, loc } = membersOf(each);
      const what = textOf(each) ?? textOf(told) ?? textOf(said);
      // What FastAPI complains of: `["body", "messages", 0, "content"]`.
      const where = elementsOf(loc).join('.');
      return what === undefined ? [] : [where === '' ? what : `${where}: ${what}`];
    });
  return textOf(several.join('; '));
}

/** A request can have as many mistakes as it has members. */
const MOST_ERRORS = 5;

/**
 * Reads the error of an event. The status of a stream is 200, so that of the error follows from its name: 500 for names that say
 * nothing of the request.
 */
export function readEventError(body: unknown): ChatError {
  return readProviderError(body, statusOfError(body) ?? 500);
}

/**
 * The error of a choice that ended with `finish_reason: "error"` (OpenRouter, "Handling errors during streaming"; Mistral, chat
 * completion), which need not say why. Undefined if no choice did.
 */
export function errorInChoices(body: Readonly<Record<string, unknown>>): unknown {
  const choices = elementsOf(body['choices']).map(membersOf);
  const failed = choices.find((choice) => !isEmpty(choice['error']) || choice['finish_reason'] === 'error');
  if (failed === undefined) return undefined;
  return isEmpty(failed['error'])
    ? { message: 'the model ended with `finish_reason: "error"`' }
    : failed['error'];
}

/**
 * The HTTP status that an error means whose response has another: servers such as vLLM and OpenRouter have it in `code`, otherwise
 * it follows from the name. Undefined if neither says one.
 */
export function statusOfError(body: unknown): number | undefined {
  const { type, code, status } = membersOf(membersOf(body)['error'] ?? body);
  const said = [code, status].find((each) =>
    /^[45]\d\d$/.test(typeof each === 'number' ? `${each}` : (textOf(each) ?? '')),
  );
  return said === undefined ? (STATUSES.get(code) ?? STATUSES.get(type)) : Number(said);
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
