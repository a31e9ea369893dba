import { isUtf8 } from 'node:buffer';
import { isRecord, jsonIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { ACCEPTED_ALGORITHMS } from './key-set.ts';

// What is refused before jose verifies the signature: tokens that jose would accept, or that two readers could
// understand differently. Each rule gives its reason and source.
//
// The header members `jku`, `x5u`, `jwk` and `x5c` need no rule, because nothing reads them: keys come from the
// configuration only (RFC 8725 §3.10).

/** A token that must not be accepted. The message is for the client and the log: it never contains the token. */
export class TokenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenError';
  }
}

/** The JWT Claims Set (RFC 7519 §4), as parsed by `JSON.parse`. */
export type Claims = Readonly<Record<string, unknown>>;

/** A token that passed the checks of this file. Its signature and its claims have not been checked yet. */
export interface PrecheckedToken {
  /** Algorithm that the protected header names, one of `ACCEPTED_ALGORITHMS` (RFC 7515 §4.1.1). */
  readonly alg: string;
  /** Id of the key that the protected header names, never empty (RFC 7515 §4.1.4). */
  readonly kid: string;
  readonly claims: Claims;
  /** Length of the encoded payload, in characters. */
  readonly payloadLength: number;
}

type PartName = 'header' | 'payload' | 'signature';

/**
 * Parses a JWT in compact serialization (RFC 7515 §7.1) and applies every rule that needs no key.
 * Throws `TokenError` with the first rule that the token breaks.
 */
export function precheckToken(token: string): PrecheckedToken {
  // Anybody can send a token: the length bounds the work that it causes.
  if (token.length > LIMITS.tokenLength)
    throw new TokenError(`the token is longer than ${LIMITS.tokenLength} characters`);
  // jose refuses other numbers of parts, too. Checked here because the next steps need the parts; five are an
  // encrypted token (RFC 7516 §9).
  const [header, payload, signature, ...others] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || others.length > 0)
    throw new TokenError('the token is not a signed JWT (three parts)');
  const { alg, kid } = checkProtectedHeader(parseJsonObject(header, 'header'));
  const claims = parseJsonObject(payload, 'payload');
  decodeBase64url(signature, 'signature');
  return { alg, kid, claims, payloadLength: payload.length };
}

function checkProtectedHeader(protectedHeader: Claims): { alg: string; kid: string } {
  const { alg, kid, typ } = protectedHeader;
  // RFC 8725 §3.1: an allow-list, without `none` and without HMAC, for which a public key could serve as the secret.
  // jose gets the algorithm of the key as well; this rule gives the reason before a key is looked for.
  if (typeof alg !== 'string' || !ACCEPTED_ALGORITHMS.has(alg))
    throw new TokenError('the token is signed with an algorithm that is not accepted');
  // RFC 7515 §4.1.11: a token with a critical extension that is not understood is invalid, and none is understood here.
  // jose accepts `crit: ["b64"]` and ignores `b64` without `crit`, which makes the payload ambiguous (RFC 7797 §8).
  if ('crit' in protectedHeader || 'b64' in protectedHeader)
    throw new TokenError('the token header has an extension that is not supported');
  // RFC 8725 §3.11: a token of another declared type, such as `logout+jwt`, is not an access token. RFC 9068 §2.1 names
  // `at+jwt`. Most providers send `JWT` or nothing, so jose's `typ` option, which requires one value, does not fit.
  if (typeof typ === 'string' && /\+jwt$/i.test(typ) && !/^(?:application\/)?at\+jwt$/i.test(typ))
    throw new TokenError('the token header says that it is not an access token');
  // Without `kid`, jose takes any key of a set that fits. Here a token names its key: trying all of them would let a
  // stranger cause as many verifications as there are keys.
  if (typeof kid !== 'string' || kid === '')
    throw new TokenError('the token header does not specify a `kid`');
  return { alg, kid };
}

function parseJsonObject(part: string, name: PartName): Claims {
  const bytes = decodeBase64url(part, name);
  // RFC 7519 §7.2 requires UTF-8. `toString` replaces other bytes, so two tokens could have the same claims.
  if (!isUtf8(bytes)) throw new TokenError(`the token ${name} is not valid UTF-8`);
  const text = bytes.toString();
  const memberCount = countMembers(text, name);
  // A byte-order mark fails here. jose skips it; RFC 8259 §8.1 leaves that open, so readers differ.
  const value = jsonIn(text);
  if (value === undefined) throw new TokenError(`the token ${name} is not valid JSON`);
  if (!isRecord(value)) throw new TokenError(`the token ${name} is not a JSON object`);
  // RFC 7515 §4 and RFC 7519 §4: names must be unique. `JSON.parse`, and with it jose, keeps the last of two members,
  // other parsers the first. `Object.keys` includes a member named `__proto__`.
  if (memberCount !== Object.keys(value).length)
    throw new TokenError(`the token ${name} has a duplicate member`);
  return value;
}

/**
 * Counts the members of the outermost object of a JSON text, including duplicates. The result means nothing for other
 * text. Throws `TokenError` for more than `LIMITS.jsonDepth` levels: rules and logs walk through claims recursively.
 */
function countMembers(text: string, name: PartName): number {
  let level = 0;
  let members = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') {
      for (at += 1; at < text.length && text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
    } else if (character === ':') {
      if (level === 1) members += 1;
    } else if (character === '{' || character === '[') {
      level += 1;
      if (level > LIMITS.jsonDepth) throw new TokenError(`the token ${name} is nested too deeply`);
    } else if (character === '}' || character === ']') level -= 1;
  }
  return members;
}

/**
 * Decodes base64url without padding (RFC 7515 §2) and requires the canonical form: what the bytes encode to. jose also
 * accepts padding, white space and non-zero bits after the last byte (RFC 4648 §3.5), which would give one token many
 * spellings. An empty part is refused. Throws `TokenError`.
 */
function decodeBase64url(part: string, name: PartName): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  if (part === '' || bytes.toString('base64url') !== part)
    throw new TokenError(`the token ${name} is not valid base64url`);
  return bytes;
}
