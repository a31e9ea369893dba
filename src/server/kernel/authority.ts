/** RFC 9110 §7.2 and RFC 3986 §3.2.2: a name without empty labels, or an address in brackets, and a port. In lower case. */
const AUTHORITY =
  /^(?:[a-z0-9_~!$&'()*+,;=%-]+(?:\.[a-z0-9_~!$&'()*+,;=%-]+)*\.?|\[[0-9a-z:.%_~-]+\])(?::\d{0,5})?$/;

/**
 * The one spelling of `host` or `host:port`: lower case, without the dot of an absolute name and without an empty port.
 * Undefined when it is neither.
 */
export function canonicalAuthority(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (!AUTHORITY.test(lower)) return undefined;
  return lower.replace(/:$/, '').replace(/\.(?=:|$)/, '');
}

/** A configured host name, also `*.name`, in the spelling of `canonicalAuthority`. */
export const canonicalName = (hostname: string): string => hostname.toLowerCase().replace(/\.$/, '');
