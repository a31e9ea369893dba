import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';
import { isAccepted, type SignedText } from './signature.ts';

/** A token that must not be accepted. The message is for the client and the log: it never holds the token. */
export class TokenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenError';
  }
}

type PartName = 'header' | 'payload' | 'signature';

export type Claims = Readonly<Record<string, unknown>>;

/** A compact JWS (RFC 7515 §7.1), cut at its dots. */
export interface TokenParts {
  readonly header: string;
  readonly payload: string;
  readonly signature: string;
  /** Header, dot and payload: what the signature is of. */
  readonly signed: SignedText;
}

/** Throws `TokenError` unless the text has three parts and a length that a token may have. */
export function splitToken(token: string): TokenParts {
  if (token.length > LIMITS.tokenLength)
    throw new TokenError(`the token is longer than ${LIMITS.tokenLength} characters`);
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  if (first === -1 || second === -1 || token.includes('.', second + 1))
    throw new TokenError('the token is not a signed JWT (three parts)');
  const text = token.slice(0, second);
  return {
    header: token.slice(0, first),
    payload: token.slice(first + 1, second),
    signature: token.slice(second + 1),
    signed: { text, sha256: hash('sha256', text, 'latin1') },
  };
}

export interface ParsedToken {
  readonly algorithm: string;
  readonly keyId: string;
  readonly claims: Claims;
}

/**
 * Reads header and payload of a token and refuses everything that two readers could take differently:
 * base64url that is not canonical, duplicate members, invalid UTF-8, `crit` (no extension is understood) and
 * `b64`. `jku`, `x5u`, `jwk` and `x5c` are not looked at: keys come from the configuration only (RFC 8725 §3.10).
 */
export function parseToken({ header, payload }: TokenParts): ParsedToken {
  const { algorithm, keyId } = headerOf(header);
  return { algorithm, keyId, claims: parseObject(payload, 'payload') };
}

interface Header {
  readonly algorithm: string;
  readonly keyId: string;
}

/** Good headers, as they were sent: all tokens of one key share one, and taking it apart is a sixth of the work. */
const headers = new Map<string, Header>();

function headerOf(part: string): Header {
  const known = headers.get(part);
  if (known !== undefined) return known;
  const header = parseHeader(part);
  // Anybody can send headers; long ones are not worth keeping.
  if (part.length > HEADER_LENGTH) return header;
  if (headers.size >= LIMITS.keys) headers.clear();
  headers.set(part, header);
  return header;
}

/** How many headers are kept. */
export const keptHeaders = (): number => headers.size;

/** Providers' headers have about 150 characters. */
const HEADER_LENGTH = 512;

function parseHeader(part: string): Header {
  const header = parseObject(part, 'header');
  const { alg, kid, typ } = header;
  if (typeof alg !== 'string' || !isAccepted(alg))
    throw new TokenError('the token is signed with an algorithm that is not accepted');
  if ('crit' in header || 'b64' in header)
    throw new TokenError('the token header has an extension that is not supported');
  // RFC 8725 §3.11: a token that says of itself that it is something else, such as `logout+jwt`, gives no access.
  if (typeof typ === 'string' && /\+jwt$/i.test(typ) && !/^(?:application\/)?at\+jwt$/i.test(typ))
    throw new TokenError('the token header says that it is not an access token');
  if (typeof kid !== 'string' || kid === '')
    throw new TokenError('the token header does not specify a `kid`');
  return { algorithm: alg, keyId: kid };
}

function parseObject(part: string, name: PartName): Record<string, unknown> {
  const bytes = decode(part, name);
  const members = topMembers(bytes, name);
  const text = bytes.toString();
  // What is not UTF-8 shows as U+FFFD, which may also stand there: only then it takes another look.
  if (text.includes('\ufffd') && !isUtf8(bytes)) throw new TokenError(`the token ${name} is not valid UTF-8`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new TokenError(`the token ${name} is not valid JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new TokenError(`the token ${name} is not a JSON object`);
  // JSON.parse keeps the last of equal members, as a member of the object's own: also one called `__proto__`.
  if (members !== Object.keys(value).length) throw new TokenError(`the token ${name} has a duplicate member`);
  return value as Record<string, unknown>;
}

/**
 * How many members the outermost object of a JSON text has, equal ones included. One look at every byte, before the
 * text is parsed: throws `TokenError` for nesting that would take long to parse.
 */
function topMembers(bytes: Buffer, name: PartName): number {
  let level = 0;
  let members = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at += 1; at < bytes.length && bytes[at] !== QUOTE; at += 1) if (bytes[at] === BACKSLASH) at += 1;
    } else if (byte === COLON) {
      if (level === 1) members += 1;
    } else if (byte === OBJECT || byte === LIST) {
      level += 1;
      if (level > LIMITS.jsonDepth) throw new TokenError(`the token ${name} is nested too deeply`);
    } else if (byte === OBJECT_END || byte === LIST_END) level -= 1;
  }
  return members;
}

const [QUOTE, BACKSLASH, COLON, OBJECT, OBJECT_END, LIST, LIST_END] = Buffer.from('"\\:{}[]');

/**
 * base64url without padding (RFC 7515 §2), of which every value has one spelling. `Buffer.write` leaves out what it
 * cannot read, which shows in the length, takes the other alphabet's `+` and `/`, ignores stray bits at the end, and
 * takes U+0141, of which it sees only the low byte, for an `A`: a query parameter can hold that, a header cannot.
 * Throws `TokenError`. The bytes are valid until the next call, which overwrites them: nobody keeps them.
 */
export function decode(part: string, name: PartName): Buffer {
  const bytes = decoded.subarray(0, decoded.write(part, 'base64url'));
  const ends = LAST_CHARACTERS[part.length % 4];
  if (
    part === '' ||
    ends === undefined ||
    bytes.length !== Math.floor((part.length * 3) / 4) ||
    !ends.includes(part.charAt(part.length - 1)) ||
    part.includes('+') ||
    part.includes('/') ||
    Buffer.byteLength(part) !== part.length
  )
    throw new TokenError(`the token ${name} is not valid base64url`);
  return bytes;
}

/** Fresh memory for each part would cost a new token a twentieth more. */
const decoded = Buffer.allocUnsafeSlow(LIMITS.tokenLength);

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** Characters that may end a text, by its length modulo four: their bits beyond the last byte are zero. */
const LAST_CHARACTERS = [
  ALPHABET,
  undefined,
  ALPHABET.replace(/(.).{15}/g, '$1'),
  ALPHABET.replace(/(.).{3}/g, '$1'),
] as const;
