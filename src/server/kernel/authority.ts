/** RFC 9110 §7.2 and RFC 3986 §3.2.2: a lower-case host name without empty labels, or an IP address in brackets; optional port. */
const AUTHORITY =
  /^(?:[a-z0-9_~!$&'()*+,;=%-]+(?:\.[a-z0-9_~!$&'()*+,;=%-]+)*\.?|\[[0-9a-z:.%_~-]+\])(?::\d{0,5})?$/;

/**
 * Canonical form of `host` or `host:port`: lower case, without the trailing dot of an absolute name and without an empty
 * port. Returns undefined if the text is neither.
 */
export function canonicalAuthority(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (!AUTHORITY.test(lower)) return undefined;
  return lower.replace(/:$/, '').replace(/\.(?=:|$)/, '');
}

/** Canonical form of a configured host name or `*.name`, comparable with `canonicalAuthority`. */
export const canonicalName = (hostname: string): string => hostname.toLowerCase().replace(/\.$/, '');
