/** A name, not a sentence: sentences may repeat what a client asked, or a key. */
const NAME = /^[\w.-]{1,64}$/;

/** Errors of providers have a few hundred bytes. */
const MOST_BYTES = 65_536;

type Members = Readonly<Record<string, unknown>>;

/**
 * How a provider names the error in its answer, such as `invalid_api_key`: `code`, else `type`, as OpenAI has them, else
 * `status` of Google's APIs, whose answer may be a list of one. Undefined where there is no such name.
 */
export function providerErrorOf(body: Buffer): string | undefined {
  if (body.length > MOST_BYTES) return undefined;
  const parsed = parse(body.toString());
  return nameOf(membersOf(membersOf(Array.isArray(parsed) ? parsed[0] : parsed)?.['error']));
}

/**
 * The error that an event of a stream tells, with its name if it has one: an `error` member; of `/v1/responses` an event
 * of type `error`, or a response that failed. Undefined for any other event.
 */
export function errorInEvent(data: string): { readonly name: string | undefined } | undefined {
  const event = data.length > MOST_BYTES ? undefined : membersOf(parse(data));
  const response = membersOf(event?.['response']);
  const error =
    membersOf(event?.['error']) ??
    membersOf(response?.['error']) ??
    (event?.['type'] === 'error' ? event : undefined);
  return error === undefined ? undefined : { name: nameOf(error) };
}

function nameOf(error: Members | undefined): string | undefined {
  return [error?.['code'], error?.['type'], error?.['status']].find(
    (name): name is string => typeof name === 'string' && NAME.test(name),
  );
}

function membersOf(value: unknown): Members | undefined {
  return typeof value === 'object' && value !== null ? (value as Members) : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
