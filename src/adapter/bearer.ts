import { createHash, timingSafeEqual } from 'node:crypto';

/**
 * What is wrong with an `Authorization` header where a caller must present `key` as a bearer token (RFC 6750 §2.1);
 * undefined when it is right. Says nothing about either token.
 */
export function bearerProblem(authorization: string | undefined, key: string): string | undefined {
  const [, given] = /^bearer +(\S+) *$/i.exec(authorization ?? '') ?? [];
  if (given === undefined) return 'a bearer token is required';
  return isSame(given, key) ? undefined : 'the bearer token is not the right one';
}

/** Takes as long wherever the two differ. */
function isSame(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
