/**
 * Decides which names and values count as credentials wherever values are displayed: access log, recent requests,
 * traces, spans, diagnostics, dumps. `redact.ts` and `trace/redact.ts` apply these rules; no other file defines any.
 */

/** Replaces a credential in displayed text. */
export const REDACTED = '<redacted>';

/** Name fragments that indicate a credential anywhere: in configurations, environments, headers and queries. */
const KEYS = 'api|access|private|account|auth|shared|subscription|functions|master|signing';
const WORDS = `secret|passw|passphrase|credential|(?:${KEYS})[-_]?key`;

const CREDENTIAL_NAME = new RegExp(`${WORDS}|token$`, 'i');

/**
 * Names of headers and query parameters. Words that are harmless as a part of a name (`code`, `key`) must match the
 * whole name; an index (`token[]`) is ignored. Cloud providers' names in signed URLs, such as `X-Amz-Signature`, match
 * by their last word. Session ids count because whoever knows one can act as the user.
 */
const SENSITIVE = new RegExp(
  `${WORDS}|authorization|cookie|token|signature|assertion|session|jwt|code[-_]?verifier|` +
    '^(?:key|sig|hmac|pwd|pass|auth|otp|ticket|sid|(?:user[-_]|device[-_]|auth[-_])?code|saml(?:response|art))(?:\\[\\d*\\])?$',
  'i',
);

/** Headers that carry credentials although their name does not match the patterns above. */
const CREDENTIAL_HEADERS = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  'api-key',
]);

/**
 * Compact serialization of signed and encrypted tokens (RFC 7515, RFC 7516): `eyJ` is how a JSON object begins in
 * base64. The lookbehind stops hostile text from being scanned again from each possible start.
 */
const TOKEN = /(?<![\w-])eyJ[\w-]{5,}\.[\w-]*(?:\.[\w-]*){1,3}/g;

/**
 * Keys that their issuers mark by a prefix: OpenAI, Anthropic and others (`sk-`), Stripe, AWS, Google, GitHub, GitLab,
 * Slack, Hugging Face, npm, Groq, xAI. RE2 and JavaScript read the pattern alike, in linear time: what follows a beginning
 * is one class of characters.
 */
export const API_KEY = {
  pattern: String.raw`\b(?:sk-[A-Za-z0-9_-]{20,}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{35}|gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_.-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{40,})`,
  /** A part of every match. */
  hint: /sk-|[sr]k_|AKIA|ASIA|AIza|gh[oprsu]_|github_pat_|glpat-|xox|hf_|npm_|xai-/,
} as const;
const API_KEYS = new RegExp(API_KEY.pattern, 'g');

/**
 * Private keys in PEM (RFC 7468), with headers (RFC 1421), also with the line breaks of JSON, and cut off. The body of the
 * longest has 13,000 characters. It ends at the next dashes, so that each part of a text is read once.
 */
const PRIVATE_KEYS =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]{0,16384}(?:-(?!----)[^-]{0,16384}){0,20}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]{0,16384})/g;

/** Credentials that are recognized by their form alone, each with a part of every match: most texts have none. */
const FORMS: readonly (readonly [hint: RegExp, form: RegExp])[] = [
  [/eyJ/, TOKEN],
  [API_KEY.hint, API_KEYS],
  [/PRIVATE KEY/, PRIVATE_KEYS],
];

/** Whether a configuration key, command option or variable of this name most likely holds a credential. */
export function isCredentialName(name: string): boolean {
  return CREDENTIAL_NAME.test(name) || CREDENTIAL_HEADERS.has(name.toLowerCase());
}

/** What suggests a credential in the name of a variable, also where it would not in that of a header or parameter. */
const CREDENTIAL_VARIABLE =
  /key|secret|token|passw|credential|(?:^|[_-])(?:pass|pwd|pat|pin|auth|sig|dsn|jwt|creds?|cookie)$/i;

/** Whether an environment variable of this name most likely holds a credential. A number of tokens is none. */
export const isCredentialVariable = (name: string): boolean =>
  CREDENTIAL_VARIABLE.test(name) && !isTokenCountName(name);

const CREDENTIAL_OPTION = /(?:^|[-_])(?:key|pass|pwd|auth|otp|jwt)$/i;

/** Whether the argument after a command's option of this name, such as `--token` or `--key`, is a credential. */
export const isCredentialOption = (option: string): boolean =>
  isCredentialName(option) || CREDENTIAL_OPTION.test(option);

/** The credential of a header's value such as `Bearer x`, whatever the header's name (RFC 9110 §11.6.2). */
export const credentialOf = (value: string): string | undefined =>
  /^["']?(?:Bearer|Basic)\s+([^\s"']+)["']?$/i.exec(value)?.[1];

/**
 * Whether the value of a header or query parameter of this name is a credential. `more`: names from the configuration,
 * in lower case.
 */
export function isSensitiveName(name: string, more?: ReadonlySet<string>): boolean {
  return SENSITIVE.test(name) || more?.has(name.toLowerCase()) === true;
}

/** Names of numbers of tokens: `maxTokens`, `max_output_tokens`, `tokenLimit`, `tokensPerFill`. */
const COUNT_NAME =
  /(?:^|[-_])(?:max\w{0,40}tokens?|(?:min|total|num|input|output|prompt|completion|thinking)\w{0,40}tokens)$|^tokens?[-_]?(?:limit|budget|count|per)/i;
const COUNT = /^\d{1,9}(?:\.\d{1,3})?\s?[kKmM]?$/;

/** Whether a name means a number of tokens. Only its values that are `isTokenCount` are not credentials. */
export const isTokenCountName = (name: string): boolean => COUNT_NAME.test(name);

/** Whether a value can be a number of tokens: `5000`, `5k`. */
export const isTokenCount = (value: string | number): boolean => COUNT.test(String(value));

/** Matches of tokens and keys that are recognized by their form. */
export function tokensIn(text: string): RegExpMatchArray[] {
  return FORMS.flatMap(([hint, form]) => (hint.test(text) ? [...text.matchAll(form)] : []));
}

/** Replaces tokens and keys that are recognized by their form. */
export function withoutTokens(text: string): string {
  return FORMS.reduce(
    (clean, [hint, form]) => (hint.test(clean) ? clean.replace(form, REDACTED) : clean),
    text,
  );
}

/**
 * Redacts a path or URI for display: credentials in the query and tokens are replaced, everything else keeps its bytes.
 */
export function redactTarget(target: string, more?: ReadonlySet<string>): string {
  return withoutTokens(redactQuery(target, more));
}

/** Redacts credentials in `?a=1&token=x`; everything else keeps its bytes. */
export function redactQuery(text: string, more?: ReadonlySet<string>): string {
  const start = text.indexOf('?');
  if (start === -1) return text;
  const end = text.indexOf('#', start);
  const query = end === -1 ? text.slice(start + 1) : text.slice(start + 1, end);
  const all = query.split('&');
  const secrets = withSignInAnswer(
    all.map((pair) => decodedName(pair.split('=', 1)[0] ?? '')),
    more,
  );
  const pairs = all.map((pair) => redactPair(pair, secrets));
  return `${text.slice(0, start + 1)}${pairs.join('&')}${end === -1 ? '' : text.slice(end)}`;
}

/**
 * The secret parameters of a query with these names, besides those that always are secret. `state` is one if the query is an
 * authorization server's response (RFC 6749 §4.1.2); elsewhere it is an ordinary parameter, such as the state of an address.
 */
export function withSignInAnswer(
  names: readonly string[],
  more: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  const isAnswer = names.includes('state') && (names.includes('code') || names.includes('error'));
  return isAnswer ? new Set([...(more ?? []), 'state']) : more;
}

/**
 * Some servers also separate parameters with `;`. A redacted value extends to the end of the pair, because a credential
 * may contain `;`.
 */
function redactPair(pair: string, more: ReadonlySet<string> | undefined): string {
  let equals = -1;
  for (let start = 0; ; ) {
    const next = pair.indexOf(';', start);
    // Searched only once, however many semicolons come before it.
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

/** Decodes a name as a server would: `%74oken` is `token`. */
export function decodedName(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    return name;
  }
}
