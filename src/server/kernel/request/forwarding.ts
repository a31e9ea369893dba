/**
 * Fields of requests that browsers, `curl`, `agctl`, Prometheus and other programs send themselves. No credentials are among them: a proxy
 * that asks for a password passes it on.
 */
const OWN_FIELDS = new Set([
  ...['host', 'connection', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'http2-settings'],
  ...[
    'user-agent',
    'accept',
    'accept-charset',
    'accept-encoding',
    'accept-language',
    'origin',
    'referer',
    'cookie',
  ],
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'expect', 'date'],
  ...['cache-control', 'pragma', 'range', 'if-range', 'if-match', 'if-none-match', 'if-modified-since'],
  ...['if-unmodified-since', 'last-event-id', 'priority', 'upgrade-insecure-requests', 'dnt', 'save-data'],
  'x-prometheus-scrape-timeout-seconds',
]);

/** What browsers say of the page and of themselves (Fetch Metadata, Client Hints): pages cannot set fields of this prefix. */
const OF_BROWSERS = /^sec-(?:fetch-.+|ch-.+|gpc|purpose)$/;

/**
 * The first field that a program of this machine would not send itself, in lower case: something has forwarded the request, such as a proxy
 * that signs people in, and the request does not come from this machine, even if its connection does. There is no list of
 * the fields of all proxies. Undefined if there is none.
 */
export function forwardedField(names: Iterable<string>): string | undefined {
  for (const name of names) {
    const field = name.toLowerCase();
    if (!OWN_FIELDS.has(field) && !OF_BROWSERS.test(field)) return field;
  }
  return undefined;
}
