// Checks of provider metadata that several policies read (RFC 8414 §3.3, OpenID Connect Discovery §4.3).

/** Throws for metadata of another issuer than the configured one. */
export function checkIssuer(found: unknown, expected: string): void {
  if (found === expected) return;
  const shown = typeof found === 'object' && found !== null ? 'as an object' : String(found).slice(0, 200);
  throw new Error(`its metadata names the issuer ${shown}, expected ${expected}`);
}

/** Whether a member is a URL that may be opened: others, such as `javascript:`, must not reach clients. */
export function isHttpUrl(value: unknown): value is string {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}
