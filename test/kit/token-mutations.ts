import { base64url, type Members, type SigningKey, seconds, signature, signingKey } from './tokens.ts';

// Tokens that are almost right, for comparing verdicts. Everything comes from one seeded generator.

export const ISSUER = 'https://idp.example/realms/main';
export const AUDIENCES = ['mcp-client', 'other-client'];

/**
 * The keys that are published, and one that is not. `open` has no `alg`: its type alone says how it may be used.
 * `rs512` shares its id with a key of another type. What `rs384` signs is often a byte longer than the number it is.
 */
export const KEYS = {
  es256: signingKey('es256', 'ES256'),
  es384: signingKey('es384', 'ES384'),
  ed: signingKey('ed', 'EdDSA'),
  rs256: signingKey('rs256', 'RS256'),
  rs384: signingKey('rs384', 'RS384', 2050),
  rs512: signingKey('ed', 'RS512'),
  open: withoutAlg(signingKey('open', 'PS256')),
} as const;
const UNPUBLISHED = signingKey('es256', 'ES256');

function withoutAlg(key: SigningKey): SigningKey {
  const { alg: _, ...jwk } = key.jwk;
  return { ...key, jwk };
}

/** Numbers in [0, 1) that a seed decides (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

class Dice {
  readonly random: () => number;

  constructor(random: () => number) {
    this.random = random;
  }

  below(count: number): number {
    return Math.floor(this.random() * count);
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)] as T;
  }

  chance(part: number): boolean {
    return this.random() < part;
  }
}

const ODD = [
  undefined,
  null,
  '',
  'x',
  0,
  -1,
  7.5,
  true,
  [],
  {},
  ['mcp-client'],
  '\u0000',
  'é',
  '9'.repeat(30),
];

/** Values around the edges that matter, and values of other types. */
const CLAIMS: Readonly<Record<string, () => readonly unknown[]>> = {
  iss: () => [`${ISSUER}/`, ISSUER.toUpperCase(), [ISSUER], 'https://idp.example/realms/other', ...ODD],
  aud: () => [
    'account',
    AUDIENCES,
    ['account', AUDIENCES[1]],
    [AUDIENCES],
    [7],
    'mcp-client ',
    AUDIENCES[1],
    ...ODD,
  ],
  exp: () =>
    [-61, -60, -59, 0, 1, 1e9]
      .map((offset) => seconds(offset))
      .concat(1e300)
      .concat(ODD as number[]),
  nbf: () => [59, 60, 61, -1e9].map((offset) => seconds(offset)).concat(ODD as number[]),
  iat: () => [59, 60, 61, -1e9].map((offset) => seconds(offset)).concat(ODD as number[]),
  sub: () => ODD,
  scope: () => ODD,
};

const HEADERS: Readonly<Record<string, readonly unknown[]>> = {
  alg: [
    'none',
    'None',
    'HS256',
    'RS256',
    'RS384',
    'RS512',
    'PS256',
    'PS384',
    'PS512',
    'ES256',
    'ES384',
    'ES512',
    'EdDSA',
    ...ODD,
  ],
  kid: [...Object.keys(KEYS), '../../etc/passwd', '__proto__', 'unknown', ...ODD],
  typ: ['jwt', 'at+jwt', 'application/at+jwt', 'logout+jwt', 'application/SECEVENT+JWT', 'JWE', ...ODD],
  crit: [['b64'], ['x'], [], 'b64', ['exp'], ...ODD],
  b64: [true, false, ...ODD],
  cty: ['JWT', ...ODD],
  jwk: [UNPUBLISHED.jwk, ...ODD],
};

/** The text of a JSON object in one of the ways in which it can be written, some of them wrong. */
function written(dice: Dice, members: Members): string | Uint8Array {
  const text = JSON.stringify(members);
  if (!dice.chance(0.15)) return text;
  const [name, value] = dice.pick(Object.entries(members).concat([['x', 1]]));
  const member = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
  return dice.pick<() => string | Uint8Array>([
    () => JSON.stringify(members, null, 2),
    () => `${text.slice(0, -1)},${member}}`,
    () => `{${member},${text.slice(1)}`,
    () => `${text.slice(0, -1)},"\\u0069ss":"x"}`,
    () => `${text.slice(0, -1)},"__proto__":{"iss":"x"}}`,
    () => `${text.slice(0, -1)},"exp":1e999}`,
    () => `\ufeff${text}`,
    () => `[${text}]`,
    () => text.slice(0, -1),
    () => `${text} `,
    () => Buffer.from(`${text.slice(0, -1)},"n":"\u00ff"}`, 'latin1'),
  ])();
}

/** How the header says that it is signed where the key can do that, whatever it is published for. */
function algorithmFor({ alg, privateKey }: SigningKey, named: unknown): string {
  return privateKey.asymmetricKeyType === 'rsa' && /^[RP]S(?:256|384|512)$/.test(String(named))
    ? String(named)
    : alg;
}

function mutatedSignature(dice: Dice, key: SigningKey, text: string, right: Buffer): string {
  return base64url(
    dice.pick<() => Uint8Array>([
      () => right.subarray(0, -1),
      () => right.subarray(1),
      () => right.subarray(0, dice.below(right.length)),
      () => Buffer.concat([right, Buffer.from([dice.below(256)])]),
      () => Buffer.concat([Buffer.alloc(1), right]),
      () => Buffer.alloc(right.length),
      () => right.map((byte, index) => (index === 3 ? byte ^ (1 << dice.below(8)) : byte)),
      () => signature(UNPUBLISHED, text),
      () => signature(key, `${text}A`),
      () => Buffer.alloc(0),
    ])(),
  );
}

function mutatedText(dice: Dice, text: string): string {
  const at = dice.below(text.length);
  const alphabet = 'ABab019-_+/=. ';
  return dice.pick([
    () => text.slice(0, at) + alphabet[dice.below(alphabet.length)] + text.slice(at + 1),
    () => text.slice(0, -1) + alphabet[dice.below(9)],
    // Whose low byte is the right character.
    () => text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) + 0x100) + text.slice(at + 1),
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + alphabet[dice.below(alphabet.length)] + text.slice(at),
    () => `${text}=`,
    () => `${text}.`,
    () => text.split('.').slice(0, 2).join('.'),
    () => text.split('.').reverse().join('.'),
  ])();
}

/** Tokens without a mutation differ in little but their keys, and a signature with RSA takes a millisecond or two. */
const signatures = new Map<string, Buffer>();

function rightSignature(key: SigningKey, text: string, alg: string): Buffer {
  const name = `${key.kid} ${key.alg} ${alg} ${text}`;
  const known = signatures.get(name) ?? signature(key, text, alg);
  signatures.set(name, known);
  return known;
}

/** A token that is right, or wrong in one way or a few. */
export function almostToken(random: () => number): string {
  const dice = new Dice(random);
  const key = dice.pick(Object.values(KEYS));
  const claims: Record<string, unknown> = {
    iss: ISSUER,
    aud: AUDIENCES[0],
    sub: 'alice',
    iat: seconds(),
    exp: seconds(300),
  };
  const header: Record<string, unknown> = { alg: key.alg, typ: 'JWT', kid: key.kid };
  if (dice.chance(0.45)) {
    const name = dice.pick(Object.keys(CLAIMS));
    claims[name] = dice.pick(CLAIMS[name]?.() ?? []);
  }
  if (dice.chance(0.3)) {
    const name = dice.pick(Object.keys(HEADERS));
    header[name] = dice.pick(HEADERS[name] ?? []);
  }
  const signed = `${base64url(written(dice, header))}.${base64url(written(dice, claims))}`;
  const right = rightSignature(key, signed, algorithmFor(key, header['alg']));
  const text = `${signed}.${dice.chance(0.1) ? mutatedSignature(dice, key, signed, right) : base64url(right)}`;
  return dice.chance(0.2) ? mutatedText(dice, text) : text;
}

/** What we refuse on purpose and jose accepts. Reasons are where it is refused: `jwt-precheck.ts` and `token-validator.ts`. */
export const STRICTER: Readonly<Record<string, (parts: TokenParts) => boolean>> = {
  'the header names no key': ({ header }) => typeof header['kid'] !== 'string' || header['kid'] === '',
  'the header has crit or b64': ({ header }) => 'crit' in header || 'b64' in header,
  'the header says it is another kind of JWT': ({ header }) =>
    /\+jwt$/i.test(String(header['typ'])) && !/^(application\/)?at\+jwt$/i.test(String(header['typ'])),
  'it was issued in the future': ({ claims }) => Number(claims['iat']) > seconds(60),
  'a time is after the year 9999': ({ claims }) =>
    [claims['exp'], claims['nbf'], claims['iat']].some((time) => Number(time) > 253_402_300_799),
  'its subject is empty': ({ claims }) => claims['sub'] === '',
  // RFC 8259 §8.1: a parser may ignore the mark, and need not.
  'it begins with a byte-order mark': ({ texts }) => texts.some((text) => text.startsWith('\ufeff')),
  'a member stands twice': ({ texts }) => texts.some(hasDuplicate),
  'it is not canonical base64url': ({ parts }) =>
    parts.some((part) => base64url(Buffer.from(part, 'base64url')) !== part),
};

export interface TokenParts {
  readonly parts: readonly string[];
  readonly texts: readonly string[];
  readonly header: Members;
  readonly claims: Members;
}

/** Takes a token apart in the most forgiving way. */
export function partsOf(token: string): TokenParts {
  const parts = token.split('.');
  const texts = parts.slice(0, 2).map((part) => Buffer.from(part, 'base64url').toString('utf8'));
  const [header = {}, claims = {}] = texts.map((text) => {
    try {
      return Object(JSON.parse(text)) as Members;
    } catch {
      return {};
    }
  });
  return { parts, texts, header, claims };
}

/** Members of an object are told apart by what a reviver is called with, once for each that survives. */
function hasDuplicate(text: string): boolean {
  try {
    const kept = Object.keys(JSON.parse(text) as object).length;
    const written = JSON.stringify(JSON.parse(text));
    return kept > 0 && written.length < text.replace(/\s+/g, '').replace(/\\u0069/g, 'i').length;
  } catch {
    return false;
  }
}
