import { createHash, timingSafeEqual } from 'node:crypto';
import { hostnameOf, rebindingHeader, rebindingMessage } from '../core/dns-rebinding.ts';

/**
 * Protects the adapter and its backend from DNS rebinding.
 *
 * @param allowed Host names that local connections may use, in addition to loopback names.
 * @returns the message for the client if the request must be refused
 */
export function hostProblem(
  localAddress: string | undefined,
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined },
  allowed: ReadonlySet<string>,
): string | undefined {
  const host = hostnameOf(`http://${headers.host ?? ''}`);
  const header = rebindingHeader({ localAddress, host, origin: headers.origin }, allowed);
  return header && rebindingMessage(header, 'a host named in MEMORY_ALLOWED_HOSTS');
}

/** The bearer token of an `Authorization` header (RFC 6750 §2.1), or undefined. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
}

/** Compares in constant time. */
export function isSame(left: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}
