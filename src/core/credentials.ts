/**
 * What counts as a credential in what is shown: access log, recent requests, traces, spans, diagnostics, dumps. This
 * file alone decides; `redact.ts` and `trace/redact.ts` apply it.
 */

/** Stands in for a credential. */
export const REDACTED = '<redacted>';

/** Parts of names that tell of a credential anywhere: in configurations, environments, headers and queries. */
const KEYS = 'api|access|private|account|auth|shared|subscription|functions|master|signing';
const WORDS = `secret|passw|passphrase|credential|(?:${KEYS})[-_]?key`;

const TELLING = new RegExp(`${WORDS}|token$`, 'i');

/**
 * Names of headers and query parameters. Words that mean something else as a part of a name (`code`, `key`) must be the
 * whole name; an index (`token[]`) is left aside. Names of clouds for signed URLs, such as `X-Amz-Signature`, are
 * covered by their last word. Sessions: who has the id is the user.
 */
const SENSITIVE = new RegExp(
  `${WORDS}|authorization|cookie|token|signature|assertion|session|jwt|code[-_]?verifier|` +
    '^(?:key|sig|hmac|pwd|pass|auth|otp|ticket|sid|(?:user[-_]|device[-_]|auth[-_])?code|saml(?:response|art))(?:\\[\\d*\\])?$',
  'i',
);

/** Headers that carry credentials, besides those with a telling name. */
const CREDENTIAL_HEADERS = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'api-key',
]);

/**
 * Compact form of signed and encrypted tokens (RFC 7515, RFC 7516): `eyJ` is how a JSON object begins in base64. What
 * precedes it keeps hostile text from being read again from each of many beginnings.
 */
const TOKEN = /(?<![\w-])eyJ[\w-]{5,}\.[\w-]*(?:\.[\w-]*){1,3}/g;

/** Whether a value under this key, option or variable of a configuration is most likely a credential. */
export function isTellingName(name: string): boolean {
  return TELLING.test(name) || CREDENTIAL_HEADERS.has(name.toLowerCase());
}

/** Whether the value of a header or query parameter of this name is a credential. `more`: configured names, lower case. */
export function isSensitiveName(name: string, more?: ReadonlySet<string>): boolean {
  return SENSITIVE.test(name) || more?.has(name.toLowerCase()) === true;
}

/** Places of tokens that are known by their form. */
export function tokensIn(text: string): Iterable<RegExpMatchArray> {
  return text.includes('eyJ') ? text.matchAll(TOKEN) : [];
}

/** The text with tokens replaced that are known by their form. */
export function withoutTokens(text: string): string {
  return text.includes('eyJ') ? text.replace(TOKEN, REDACTED) : text;
}

/** A path or URI, as it may be shown: credentials of its query and tokens replaced, the rest byte for byte. */
export function redactTarget(target: string, more?: ReadonlySet<string>): string {
  return withoutTokens(redactQuery(target, more));
}

/** `?a=1&token=x` with credentials replaced; what is not sensitive stays byte for byte. */
export function redactQuery(text: string, more?: ReadonlySet<string>): string {
  const start = text.indexOf('?');
  if (start === -1) return text;
  const end = text.indexOf('#', start);
  const query = end === -1 ? text.slice(start + 1) : text.slice(start + 1, end);
  const pairs = query.split('&').map((pair) => redactPair(pair, more));
  return `${text.slice(0, start + 1)}${pairs.join('&')}${end === -1 ? '' : text.slice(end)}`;
}

/** Some servers also take `;` between parameters. A credential goes on to the end of the pair: it may hold one. */
function redactPair(pair: string, more: ReadonlySet<string> | undefined): string {
  let equals = -1;
  for (let start = 0; ; ) {
    const next = pair.indexOf(';', start);
    // Searched for once, however many semicolons come before it.
    if (equals < start) equals = pair.indexOf('=', start);
    if (equals === -1) return pair;
    if (next === -1 || equals < next) {
      if (isSensitiveName(decodedName(pair.slice(start, equals)), more))
        return `${pair.slice(0, equals + 1)}${REDACTED}`;
    }
    if (next === -1) return pair;
    start = next + 1;
  }
}

/** Names are compared as a server would read them: `%74oken` is `token`. */
export function decodedName(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    return name;
  }
}
