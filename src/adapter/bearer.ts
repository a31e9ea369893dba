import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * Checks an `Authorization` header against the required bearer token `key` (RFC 6750 §2.1). Returns what is wrong
 * without revealing either token, or undefined.
 */
export function bearerProblem(authorization: string | undefined, key: string): string | undefined {
  const [, given] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  if (given === undefined) return 'a bearer token is required';
  return isSame(given, key) ? undefined : 'the bearer token is wrong';
}

/** Compares in constant time. */
function isSame(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
