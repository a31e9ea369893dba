import {
  decodedName,
  isCredentialName,
  isCredentialOption,
  isSensitiveName,
  isTokenCount,
  isTokenCountName,
  REDACTED,
  tokensIn,
  withoutTokens,
} from './credentials.ts';
import { LIMITS } from './limits.ts';

/**
 * Shorter secrets would match other text by chance; at their own place in the configuration they are redacted anyway.
 */
const SHORTEST = 6;

const USERINFO = /(\b[a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@"'<>]{1,512}@/gi;
// A URL parameter in any text: its name decides.
const PARAMETER = /([?&;]([^\s=&;#?"'<>`]{1,64})=)([^\s&#;"'`]+)/g;
// A challenge also starts with the scheme, followed by parameters instead of a credential (RFC 9110 §11.6.1).
const BEARER = /\b(Bearer|Basic)\s+(?!(?:realm|error|scope|resource_metadata)=")[A-Za-z0-9._~+/-]{8,}=*/g;
// Options and, as for `docker run -e`, variables of the environment.
const ASSIGNMENT = /^((?:--?)?[\w-]{1,64})=(.+)$/s;
// Forms in which programs print credentials: `password=x`, `"api_key": "x"`, `Authorization: Bearer x`, `--token x`.
const WORDS = `(?:secret|passw|passphrase|pwd|credential|token|api[-_]?key|private[-_]?key|access[-_]?key|authorization|cookie|(?<![a-z])pass(?=["'\\\\]*\\s{0,4}[=:]))`;
const ASSIGNED = new RegExp(
  String.raw`(${WORDS}\w{0,32}\\?["']?\s{0,4}[=:]\s{0,4})(?!${REDACTED})(?:(?:Bearer|Basic)\s+\S+|"[^"]*"|'[^']*'|\S+)`,
  'gi',
);
// Lines of HTTP heads, whose values have several words: `Authorization: Token x`, `Cookie: a=1; b=2`.
const FIELD = /\b((?:proxy-)?authorization|(?:set-)?cookie)(:[ \t]*)(?!["'\\])[^\r\n"'\\]+/gi;
const OPTION_VALUE = new RegExp(String.raw`(--?[\w-]{0,64}${WORDS}\s+)(?!-)(?:"[^"]*"|'[^']*'|\S+)`, 'gi');

/**
 * Removes secrets from displayed text. It finds the secrets of one configuration by value, wherever they occur, and
 * other credentials by their form: in URLs, after `Bearer`, under a name that indicates a credential.
 */
export class Redactor {
  readonly #known: RegExp | undefined;

  /**
   * `secrets` are the values to search for; values with fewer than six characters are ignored and left to the other
   * rules.
   */
  constructor(secrets: Iterable<string>) {
    const values = new Set<string>();
    for (const secret of secrets) {
      if (secret.length < SHORTEST) continue;
      for (const form of encodingsOf(secret)) values.add(form);
    }
    // Longest first, because one secret may be the prefix of another.
    const ordered = [...values].sort((a, b) => b.length - a.length);
    this.#known = ordered.length === 0 ? undefined : new RegExp(ordered.map(escapeRegExp).join('|'), 'g');
  }

  /** Redacts only the secrets that are known. */
  known(value: string): string {
    return this.#known === undefined ? value : value.replace(this.#known, REDACTED);
  }

  /** Redacts a text. */
  text(value: string): string {
    const clean = this.known(value)
      .replace(USERINFO, `$1${REDACTED}@`)
      .replace(PARAMETER, (whole, lead: string, name: string) =>
        isSensitiveName(decodedName(name)) ? `${lead}${REDACTED}` : whole,
      )
      .replace(BEARER, `$1 ${REDACTED}`);
    return withoutTokens(clean);
  }

  /**
   * Redacts a line that a program printed. Stricter than `text`: a value that is assigned to a name like `password` is
   * redacted in any notation. In a configuration that rule would match names of variables and files.
   */
  line(value: string): string {
    return this.text(value)
      .replace(FIELD, `$1$2${REDACTED}`)
      .replace(ASSIGNED, (whole, lead: string, at: number, all: string) =>
        isCountIn(all.slice(Math.max(0, at - 64), at), whole, lead) ? whole : `${lead}${REDACTED}`,
      )
      .replace(OPTION_VALUE, `$1${REDACTED}`);
  }

  /** The half-open offsets that `text()` would redact, unordered and possibly overlapping. */
  places(value: string): (readonly [number, number])[] {
    const known = this.#known === undefined ? [] : [...value.matchAll(this.#known)];
    return [
      ...known.map((match) => [match.index, match.index + match[0].length] as const),
      ...[...value.matchAll(USERINFO)].map((match) => rest(match, 1)),
      ...[...value.matchAll(PARAMETER)]
        .filter(([, , name = '']) => isSensitiveName(decodedName(name)))
        .map((match) => rest(match, 0)),
      ...[...value.matchAll(BEARER)].map((match) => rest(match, 0, 1)),
      ...[...tokensIn(value)].map(({ index = 0, 0: token }) => [index, index + token.length] as const),
    ];
  }

  /**
   * Copies a JSON value and redacts its keys and values. What nests deeper than `LIMITS.redactedDepth` becomes `REDACTED`: a value of
   * someone else could nest deeper than calls of a function can. `name` is the key of the value itself.
   */
  value<T>(value: T, name = ''): T {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only texts, numbers that are credentials, and what nests too deep change
    return this.#copy(value, name, 0) as T;
  }

  #copy(value: unknown, name: string, depth: number): unknown {
    if (depth > LIMITS.redactedDepth) return REDACTED;
    if (typeof value === 'string')
      return isCredentialName(name) && value !== '' ? REDACTED : this.text(value);
    if (Array.isArray(value))
      return name === 'args'
        ? this.#options(value, depth)
        : value.map((item) => this.#copy(item, name, depth + 1));
    if (value === null || typeof value !== 'object')
      return typeof value === 'number' && isCredentialName(name) ? REDACTED : value;
    return Object.fromEntries(
      Object.entries(value).map(([key, child]) => [this.text(key), this.#copy(child, key, depth + 1)]),
    );
  }

  /** Arguments of a command: `--token x`, `--token=x` and `PASSWORD=x`. */
  #options(args: readonly unknown[], depth: number): unknown[] {
    return args.map((arg, index) => {
      if (credentialArgument(args, index) !== undefined)
        return typeof arg === 'string' ? withoutAssigned(arg) : REDACTED;
      return typeof arg === 'string' ? this.text(arg) : this.#copy(arg, '', depth + 1);
    });
  }
}

/** Whether a number of tokens is assigned. `before`: the text in front of the match, which may begin in a name. */
function isCountIn(before: string, whole: string, lead: string): boolean {
  const name = `${/[\w-]*$/.exec(before)?.[0] ?? ''}${/^[\w-]*/.exec(lead)?.[0] ?? ''}`;
  return isTokenCountName(name) && isTokenCount(whole.slice(lead.length).replace(/[,;.)}\]]+$/, ''));
}

/** The encodings in which programs print a secret: plain, JSON, base64, URL. */
export function encodingsOf(secret: string): string[] {
  const inUrl = encodeURIComponent(secret);
  return [
    ...new Set([
      secret,
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64').replace(/=+$/, ''),
      Buffer.from(secret).toString('base64url'),
      inUrl,
      inUrl.replace(/%../g, (code) => code.toLowerCase()),
    ]),
  ];
}

/** Recognizes credentials by their form alone: for texts without a valid configuration. */
export const byForm = new Redactor([]);

/** The credential in the argument `index` of a command, by its option: `--token x`, `--token=x`, `PASSWORD=x`. */
export function credentialArgument(args: readonly unknown[], index: number): string | undefined {
  const [before, arg] = [args[index - 1], args[index]];
  if (typeof before === 'string' && /^--?[\w-]{1,64}$/.test(before) && isCredentialOption(before))
    return String(arg);
  const [, option, assigned] = ASSIGNMENT.exec(typeof arg === 'string' ? arg : '') ?? [];
  return option !== undefined && isCredentialOption(option) ? assigned : undefined;
}

/** `--token=<redacted>` for `--token=x`, else `<redacted>`. */
export function withoutAssigned(text: string): string {
  const option = ASSIGNMENT.exec(text)?.[1];
  return option === undefined ? REDACTED : `${option}=${REDACTED}`;
}

/** Values of a configuration that are credentials by their key, or by the option before them. */
export function credentialsIn(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return isCredentialName(name) ? [value] : [];
  if (Array.isArray(value))
    return value.flatMap((item, index) => credentialArgument(value, index) ?? credentialsIn(item));
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([key, child]) => credentialsIn(child, key));
}

/** The range of a match without its first group, the separator after that group, and the last `ending` characters. */
function rest(match: RegExpMatchArray, ending: number, separator = 0): readonly [number, number] {
  const start = match.index ?? 0;
  return [start + (match[1] ?? '').length + separator, start + match[0].length - ending];
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&');
}
