import { isUtf8 } from 'node:buffer';
import { constants, type KeyObject, type VerifyKeyObjectInput, verify } from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';

/** A token that must not be accepted. The message is for the client and the log: it never holds the token. */
export class TokenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenError';
  }
}

export type Claims = Readonly<Record<string, unknown>>;

/** The algorithms that a key may be used with; the token's header only chooses among them. */
export interface VerificationKey {
  readonly key: KeyObject;
  readonly algorithms: ReadonlySet<string>;
}

export interface ParsedToken {
  readonly algorithm: string;
  readonly keyId: string;
  readonly claims: Claims;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/**
 * Takes a compact JWS apart (RFC 7515 §7.1) and refuses everything that two readers could take differently:
 * base64url that is not canonical, duplicate members, invalid UTF-8, `crit` (no extension is understood) and
 * `b64`. `jku`, `x5u`, `jwk` and `x5c` are not looked at: keys come from the configuration only (RFC 8725 §3.10).
 */
export function parseToken(token: string): ParsedToken {
  if (token.length > LIMITS.tokenLength)
    throw new TokenError(`the token is longer than ${LIMITS.tokenLength} characters`);
  const first = token.indexOf('.');
  const second = token.indexOf('.', first + 1);
  if (first === -1 || second === -1 || token.includes('.', second + 1))
    throw new TokenError('the token is not a signed JWT (three parts)');
  const { algorithm, keyId } = headerOf(token.slice(0, first));
  return {
    algorithm,
    keyId,
    claims: parseObject(token.slice(first + 1, second), 'payload'),
    signed: Buffer.from(token.slice(0, second), 'latin1'),
    signature: decode(token.slice(second + 1), 'signature'),
  };
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
  if (typeof alg !== 'string' || !(alg in ALGORITHMS))
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

function parseObject(part: string, name: string): Record<string, unknown> {
  const bytes = decode(part, name);
  if (!isUtf8(bytes)) throw new TokenError(`the token ${name} is not valid UTF-8`);
  const members = topMembers(bytes, name);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
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
function topMembers(bytes: Buffer, name: string): number {
  let level = 0;
  let members = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case 0x22: // "
        at = endOfString(bytes, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        level += 1;
        if (level > LIMITS.jsonDepth) throw new TokenError(`the token ${name} is nested too deeply`);
        break;
      case 0x7d: // }
      case 0x5d: // ]
        level -= 1;
        break;
      case 0x3a: // :
        if (level === 1) members += 1;
        break;
    }
  }
  return members;
}

/** Position of the quote that ends the string which starts at `start`. */
function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== 0x22) at += bytes[at] === 0x5c ? 2 : 1;
  return at;
}

/**
 * base64url without padding (RFC 7515 §2), of which every value has one spelling. `Buffer.from` leaves out what it
 * cannot read, which shows in the length, takes the other alphabet's `+` and `/`, and ignores stray bits at the end.
 */
function decode(part: string, name: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  const ends = LAST_CHARACTERS[part.length % 4];
  if (
    part === '' ||
    ends === undefined ||
    bytes.length !== Math.floor((part.length * 3) / 4) ||
    !ends.includes(part.charAt(part.length - 1)) ||
    part.includes('+') ||
    part.includes('/')
  )
    throw new TokenError(`the token ${name} is not valid base64url`);
  return bytes;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
/** Characters that may end a text, by its length modulo four: their bits beyond the last byte are zero. */
const LAST_CHARACTERS = [
  ALPHABET,
  undefined,
  ALPHABET.replace(/(.).{15}/g, '$1'),
  ALPHABET.replace(/(.).{3}/g, '$1'),
] as const;

interface Algorithm {
  readonly hash: string | null;
  /** RSA-PSS (RFC 7518 §3.5): the salt is as long as the hash. */
  readonly padding?: number;
  /** ECDSA signatures are two numbers of this many bytes each (RFC 7518 §3.4), never DER. */
  readonly integerBytes?: number;
}

const PSS = constants.RSA_PKCS1_PSS_PADDING;

/** Asymmetric algorithms of RFC 7518 §3.1 and RFC 8037. `none` and HMAC are not here and so cannot be used. */
const ALGORITHMS: Readonly<Record<string, Algorithm>> = Object.assign(
  Object.create(null) as Record<string, Algorithm>,
  {
    RS256: { hash: 'sha256' },
    RS384: { hash: 'sha384' },
    RS512: { hash: 'sha512' },
    PS256: { hash: 'sha256', padding: PSS },
    PS384: { hash: 'sha384', padding: PSS },
    PS512: { hash: 'sha512', padding: PSS },
    ES256: { hash: 'sha256', integerBytes: 32 },
    ES384: { hash: 'sha384', integerBytes: 48 },
    ES512: { hash: 'sha512', integerBytes: 66 },
    EdDSA: { hash: null },
    Ed25519: { hash: null },
  },
);

/** Whether the signature of a parsed token is one by this key. */
export function hasValidSignature(
  { algorithm, signed, signature }: ParsedToken,
  { key, algorithms }: VerificationKey,
): boolean {
  const parameters = ALGORITHMS[algorithm];
  if (parameters === undefined || !algorithms.has(algorithm)) return false;
  const { hash, integerBytes } = parameters;
  if (integerBytes !== undefined && signature.length !== integerBytes * 2) return false;
  return verify(hash, signed, inputFor(key, parameters), signature);
}

/** What `verify` takes, made once for each key and algorithm. */
const inputs = new WeakMap<KeyObject, Map<Algorithm, VerifyKeyObjectInput>>();

function inputFor(key: KeyObject, algorithm: Algorithm): VerifyKeyObjectInput {
  let ofKey = inputs.get(key);
  if (ofKey === undefined) {
    ofKey = new Map();
    inputs.set(key, ofKey);
  }
  let input = ofKey.get(algorithm);
  if (input === undefined) {
    const { padding, integerBytes } = algorithm;
    input = {
      key,
      ...(padding === undefined ? {} : { padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST }),
      ...(integerBytes === undefined ? {} : { dsaEncoding: 'ieee-p1363' }),
    };
    ofKey.set(algorithm, input);
  }
  return input;
}
