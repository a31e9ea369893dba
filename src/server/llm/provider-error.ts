import { membersOf, parseOrNothing } from './json-members.ts';

/** The error that a provider tells. */
export interface ProviderError {
  /** Its name for it, such as `invalid_api_key`: `code`, else `type`, as OpenAI has them, else `status` of Google's APIs. */
  readonly name: string | undefined;
}

/** A name, not a sentence: sentences may repeat what a client asked, or a key. */
const NAME = /^[\w.-]{1,64}$/;

/** Errors of providers have a few hundred bytes. */
const MOST_BYTES = 65_536;

/** The error in the body of a refusal, which Google's APIs send as a list of one. */
export function errorInBody(body: Buffer): ProviderError | undefined {
  const parsed = parseOrNothing(body.toString('utf8', 0, MOST_BYTES));
  return errorOf(membersOf(Array.isArray(parsed) ? parsed[0] : parsed)?.['error']);
}

/**
 * The error that an event of a stream tells: an `error` member; of `/v1/responses` an event of type `error`, or a
 * response that failed.
 */
export function errorInEvent(data: string): ProviderError | undefined {
  const event = data.length > MOST_BYTES ? undefined : membersOf(parseOrNothing(data));
  const inside = event?.['error'] ?? membersOf(event?.['response'])?.['error'];
  return errorOf(inside) ?? (event?.['type'] === 'error' ? errorOf(event) : undefined);
}

/** The value of an `error` member. Undefined unless it is an object. */
export function errorOf(value: unknown): ProviderError | undefined {
  const members = membersOf(value);
  if (members === undefined) return undefined;
  const name = [members['code'], members['type'], members['status']].find(
    (text): text is string => typeof text === 'string' && NAME.test(text),
  );
  return { name };
}
