import { isLoopbackHost } from '../../../core/dns-rebinding.ts';
import { LIMITS } from '../../../core/limits.ts';

/**
 * The characters of a URI (RFC 3986 §2), and `%` only before two hexadecimal digits. URL parsers differ in what they make of
 * others: browsers read `http://localhost\@evil.example/` as localhost, other parsers as evil.example.
 */
const URI = /^[a-z][a-z\d+.-]*:(?:[\w.~:/?@!$&'()*+,;=[\]-]|%[\da-f]{2})+$/i;

/** Authority of a URI, as it is written. */
const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/([^/?]*)/i;

/**
 * The hosts of this machine, as every parser reads them. Not `[::ffff:127.0.0.1]`, `2130706433` or `%6cocalhost`, which
 * browsers read as such.
 */
const LOOPBACK = /^https?:\/\/(?:localhost|127(?:\.\d{1,3}){1,3}|\[::1\])(?::\d{1,5})?(?:[/?]|$)/i;

/**
 * Whether a value has the form of a redirect URI: absolute, without a fragment (RFC 6749 §3.1.2), and without user
 * information, with which `http://localhost@evil.example/` shows another host than it leads to.
 */
export function isRedirectUri(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > LIMITS.redirectUriLength || !URI.test(value)) return false;
  return URL.canParse(value) && AUTHORITY.exec(value)?.[1]?.includes('@') !== true;
}

/** Whether a redirect URI leads to the machine of the user (RFC 8252 §7.3). */
export function isLoopbackUri(uri: string): boolean {
  return LOOPBACK.test(uri) && isLoopbackHost(new URL(uri).hostname);
}

/** Whether a redirect URI may be configured: a page, or a scheme that belongs to an app (RFC 8252 §7.1). */
export function isAppUri(value: string): boolean {
  return (
    isRedirectUri(value) && !/^(?:http|javascript|data|vbscript|file|blob|about|ws|wss|ftp):/i.test(value)
  );
}
