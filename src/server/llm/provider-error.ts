/** A name, not a sentence: sentences may repeat what a client asked, or a key. */
const NAME = /^[\w.-]{1,64}$/;

/** Errors of providers have a few hundred bytes. */
const MOST_BYTES = 65_536;

/**
 * How a provider names the error in its answer, such as `invalid_api_key`: `code`, else `type`, as OpenAI has them, else
 * `status` of Google's APIs, whose answer may be a list of one. Undefined where there is no such name.
 */
export function providerErrorOf(body: Buffer): string | undefined {
  if (body.length > MOST_BYTES) return undefined;
  const error = errorIn(body);
  return [error?.['code'], error?.['type'], error?.['status']].find(
    (name): name is string => typeof name === 'string' && NAME.test(name),
  );
}

function errorIn(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed = JSON.parse(body.toString()) as unknown;
    const answer = Array.isArray(parsed) ? (parsed[0] as unknown) : parsed;
    return (answer as { error?: Record<string, unknown> | null } | null)?.error ?? undefined;
  } catch {
    return undefined;
  }
}
