import { createHmac, createPublicKey } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { AUDIENCE, type Idp, startIdp } from '../../../kit/idp.ts';
import { call, METADATA_URL, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import {
  base64url,
  type Members,
  seconds,
  signature,
  signingKey,
  token,
  tokenOf,
} from '../../../kit/tokens.ts';
import { type HttpUpstream, httpUpstream } from '../../../kit/upstream.ts';

const rsa = signingKey('rsa', 'RS256');
const stranger = signingKey('stranger');

let idp: Idp;
let attacker: HttpUpstream;
let guarded: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  idp.published = [idp.key.jwk, rsa.jwk];
  attacker = await httpUpstream((_, response) => response.end(JSON.stringify({ keys: [stranger.jwk] })));
  guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
  expect((await call(guarded, idp.token())).text).toBe('reached');
});
afterAll(async () => {
  expect(attacker.received).toEqual([]);
  await Promise.all([guarded.close(), idp.upstream.close(), attacker.close()]);
});

/** A token with a valid signature over these texts. */
function signed(header: Members | string, payload: Members | string = idp.claims()): string {
  const text = (part: Members | string): string => (typeof part === 'string' ? part : JSON.stringify(part));
  return tokenOf(idp.key, text(header), text(payload));
}

const header = (more: Members = {}): Members => ({ alg: 'ES256', kid: idp.key.kid, ...more });

/** A token with this signature. */
function resigned(make: (text: string) => Uint8Array | string, more: Members = {}): string {
  const text = `${base64url(JSON.stringify(header(more)))}.${base64url(JSON.stringify(idp.claims()))}`;
  const made = make(text);
  return `${text}.${typeof made === 'string' ? made : base64url(made)}`;
}

/** The default token with one claim in this spelling. */
function withClaim(name: string, text: string): string {
  const { [name]: _replaced, ...others } = idp.claims();
  return signed(header(), `${JSON.stringify(others).slice(0, -1)},${JSON.stringify(name)}:${text}}`);
}

function hmac(secret: string | Buffer): string {
  return resigned((text) => createHmac('sha256', secret).update(text).digest(), { alg: 'HS256' });
}

const publicPem = (): string =>
  createPublicKey(idp.key.privateKey).export({ type: 'spki', format: 'pem' }).toString();

/** The first token, with the signature of the second. */
function grafted(text: string, other: string): string {
  return text.slice(0, text.lastIndexOf('.')) + other.slice(other.lastIndexOf('.'));
}

/** One changed character in the signature. */
function spoilt(): string {
  const text = idp.token();
  const index = text.lastIndexOf('.') + 5;
  return text.slice(0, index) + (text[index] === 'B' ? 'A' : 'B') + text.slice(index + 1);
}

const ALGORITHM = 'signed with an algorithm that is not accepted';
const SIGNATURE = 'the signature of the token is not valid';
const UNKNOWN_KEY = 'signed with an unknown key';
const EXTENSION = 'an extension that is not supported';
const NO_KEY_ID = 'does not specify a `kid`';

type Case = readonly [name: string, make: () => string, description: string];

const REFUSED: Readonly<Record<string, readonly Case[]>> = {
  'whose algorithm is not the key’s': [
    ['none, without a signature', () => resigned(() => '', { alg: 'none' }), ALGORITHM],
    ['None', () => signed(header({ alg: 'None' })), ALGORITHM],
    ['nOnE', () => signed(header({ alg: 'nOnE' })), ALGORITHM],
    ['HS256 with the public key as text', () => hmac(publicPem()), ALGORITHM],
    ['HS256 with the public key as JWK', () => hmac(JSON.stringify(idp.key.jwk)), ALGORITHM],
    ['absent', () => signed({ kid: idp.key.kid }), ALGORITHM],
    ['a number', () => signed(header({ alg: 256 })), ALGORITHM],
    ['constructor', () => signed(header({ alg: 'constructor' })), ALGORITHM],
    ['ES384 for a key of ES256', () => signed(header({ alg: 'ES384' })), SIGNATURE],
    ['RS256 for an EC key', () => signed(header({ alg: 'RS256' })), SIGNATURE],
    ['PS256 for a key published for RS256', () => pssToken(), SIGNATURE],
    ['ES256 for an RSA key', () => signed(header({ kid: 'rsa' })), SIGNATURE],
  ],
  'with a bad signature': [
    ['absent', () => resigned(() => ''), 'the token signature is not valid base64url'],
    ['of zeros', () => resigned(() => Buffer.alloc(64)), SIGNATURE],
    ['too short', () => resigned((text) => signature(idp.key, text).subarray(0, 63)), SIGNATURE],
    [
      'too long',
      () => resigned((text) => Buffer.concat([signature(idp.key, text), Buffer.alloc(1)])),
      SIGNATURE,
    ],
    ['in DER', () => resigned(derSignature), SIGNATURE],
    ['of another key', () => token({ ...stranger, kid: idp.key.kid }, idp.claims()), SIGNATURE],
    ['of other claims', () => grafted(idp.token({ sub: 'root' }), idp.token()), SIGNATURE],
    ['with one bit changed', spoilt, SIGNATURE],
  ],
  'with an invalid key id': [
    ['absent', () => signed({ alg: 'ES256' }), NO_KEY_ID],
    ['a number', () => signed(header({ kid: 1 })), NO_KEY_ID],
    ['an empty string', () => signed(header({ kid: '' })), NO_KEY_ID],
    ['a path', () => signed(header({ kid: '../../../etc/passwd' })), UNKNOWN_KEY],
    ['SQL', () => signed(header({ kid: "' OR 1=1 --" })), UNKNOWN_KEY],
    ['__proto__', () => signed(header({ kid: '__proto__' })), UNKNOWN_KEY],
    ['8 kB', () => signed(header({ kid: 'k'.repeat(8_000) })), UNKNOWN_KEY],
    ['with a line break', () => signed(header({ kid: 'a\nlevel=error' })), UNKNOWN_KEY],
  ],
  'that brings its own key': [
    ['jku', () => foreign({ jku: `http://${attacker.address}/keys` }), UNKNOWN_KEY],
    ['x5u', () => foreign({ x5u: `http://${attacker.address}/cert` }), UNKNOWN_KEY],
    ['jwk', () => foreign({ jwk: stranger.jwk }), UNKNOWN_KEY],
    ['jwk, under a known id', () => foreign({ jwk: stranger.jwk, kid: idp.key.kid }), SIGNATURE],
    ['x5c, under a known id', () => foreign({ x5c: ['MIIB'], kid: idp.key.kid }), SIGNATURE],
  ],
  'with an extension': [
    ['crit: b64', () => signed(header({ crit: ['b64'], b64: true })), EXTENSION],
    ['crit: x', () => signed(header({ crit: ['x'], x: 1 })), EXTENSION],
    ['empty crit', () => signed(header({ crit: [] })), EXTENSION],
    ['b64: false', () => signed(header({ b64: false })), EXTENSION],
  ],
  'of another issuer': [
    ['with a slash', () => idp.token({ iss: `${idp.issuer}/` }), "', expected '"],
    ['in capitals', () => idp.token({ iss: idp.issuer.toUpperCase() }), "', expected '"],
    ['in a list', () => idp.token({ iss: [idp.issuer] }), "', expected '"],
    ['absent', () => idp.token({ iss: undefined }), "issuer is missing, expected 'http"],
    [
      'of another realm',
      () => idp.token({ iss: `${idp.origin}/realms/other` }),
      "/realms/other', expected '",
    ],
    [
      'of another realm and key',
      () => token(stranger, idp.claims({ iss: 'http://x/realms/o' })),
      'http://x/realms/o',
    ],
  ],
  'for another audience': [
    ['account', () => idp.token({ aud: 'account' }), `audience is 'account', expected '${AUDIENCE}'`],
    ['with a suffix', () => idp.token({ aud: `${AUDIENCE}-evil` }), `'${AUDIENCE}-evil', expected`],
    ['with the last character missing', () => idp.token({ aud: AUDIENCE.slice(0, -1) }), 'expected'],
    ['a list without it', () => idp.token({ aud: ['account', 'other'] }), 'expected'],
    ['an empty list', () => idp.token({ aud: [] }), 'expected'],
    ['a number', () => idp.token({ aud: 7 }), "audience is '7'"],
    ['a list in a list', () => idp.token({ aud: [[AUDIENCE]] }), 'expected'],
    ['an object', () => idp.token({ aud: { [AUDIENCE]: true } }), 'expected'],
    ['absent', () => idp.token({ aud: undefined }), 'audience is missing'],
  ],
  'outside its validity': [
    ['expired', () => idp.token({ exp: seconds(-61) }), 'the token has expired'],
    ['without exp', () => idp.token({ exp: undefined }), 'has no `exp` claim'],
    ['with a string as exp', () => idp.token({ exp: String(seconds(300)) }), '`exp` claim is not a number'],
    ['with an infinite exp', () => withClaim('exp', '1e999'), '`exp` claim is not a number'],
    ['with null as exp', () => withClaim('exp', 'null'), '`exp` claim is not a number'],
    ['before nbf', () => idp.token({ nbf: seconds(65) }), 'the token is not valid yet'],
    ['with a string as nbf', () => idp.token({ nbf: 'now' }), '`nbf` claim is not a number'],
    ['issued in the future', () => idp.token({ iat: seconds(65) }), 'the token was issued in the future'],
  ],
  'that parsers could read differently': [
    ['sub twice', () => withClaim('sub', '"alice","sub":"root"'), 'the token payload has a duplicate member'],
    [
      'aud twice',
      () => withClaim('aud', `"x","aud":"${AUDIENCE}"`),
      'the token payload has a duplicate member',
    ],
    ['sub twice, once escaped', () => withClaim('sub', '"a","s\\u0075b":"b"'), 'duplicate member'],
    [
      'kid twice',
      () => signed(`{"alg":"ES256","kid":"x","kid":"${idp.key.kid}"}`),
      'header has a duplicate member',
    ],
    ['bad UTF-8', () => tokenOf(idp.key, JSON.stringify(header()), badUtf8()), 'payload is not valid UTF-8'],
    [
      'a byte-order mark',
      () => signed(header(), `\ufeff${JSON.stringify(idp.claims())}`),
      'payload is not valid JSON',
    ],
    ['padding', () => `${idp.token()}=`, 'signature is not valid base64url'],
    ['stray bits at the end', () => strayBits(), 'signature is not valid base64url'],
    [
      'a character that base64 does not have',
      () => idp.token().replace('.', '!.'),
      'header is not valid base64url',
    ],
    ['the other base64 alphabet', () => resigned(() => '+/+/'), 'signature is not valid base64url'],
  ],
  'that is not an access token': [
    ['an ID token', () => idp.token({ typ: 'ID' }), "of type 'ID', expected 'Bearer'"],
    ['a refresh token', () => idp.token({ typ: 'Refresh' }), "of type 'Refresh'"],
    ['a logout token', () => idp.token({}, { typ: 'logout+jwt' }), 'says that it is not an access token'],
    ['a security event', () => idp.token({}, { typ: 'application/SECEVENT+JWT' }), 'says that it is not'],
    ['an encrypted token', () => `${idp.token()}.AAAA.AAAA`, 'not a signed JWT (three parts)'],
    [
      'a nested token',
      () => signed(header({ cty: 'JWT' }), JSON.stringify(idp.token())),
      'not a JSON object',
    ],
    ['two parts', () => idp.token().split('.').slice(0, 2).join('.'), 'not a signed JWT (three parts)'],
    ['words', () => 'opaque', 'not a signed JWT (three parts)'],
    ['a list of claims', () => signed(header(), '[]'), 'payload is not a JSON object'],
    ['a payload that is not JSON', () => signed(header(), 'sub=alice'), 'payload is not valid JSON'],
    ['a header that is null', () => signed('null'), 'header is not a JSON object'],
    ['6,000 lists in one another', () => signed(header(), '['.repeat(6_000)), 'payload is nested too deeply'],
  ],
};

describe.each(Object.entries(REFUSED))('mcpAuthentication rejects a token %s', (fault, cases) => {
  test.each(cases)(`mcpAuthentication rejects a token ${fault}: %s`, async (_name, make, description) => {
    const reply = await call(guarded, make());
    expect(reply.status).toBe(401);
    const { error, error_description: told } = JSON.parse(reply.text) as Record<string, string>;
    expect(error).toBe('invalid_token');
    expect(told).toContain(description);
    expect(reply.headers['www-authenticate']).toBe(
      `Bearer resource_metadata="${METADATA_URL}", error="invalid_token", error_description="${told}"`,
    );
  });
});

describe('mcpAuthentication accepts a token', () => {
  const accepted: readonly (readonly [name: string, make: () => string])[] = [
    ['with the audience in a list', () => idp.token({ aud: ['account', AUDIENCE] })],
    ['a minute after exp', () => idp.token({ exp: seconds(-55) })],
    ['a minute before nbf', () => idp.token({ nbf: seconds(55), iat: seconds(55) })],
    ['of RFC 9068', () => idp.token({ typ: undefined }, { typ: 'at+jwt' })],
    ['of RFC 9068, with the whole media type', () => idp.token({}, { typ: 'application/at+jwt' })],
    ['without typ', () => idp.token({}, { typ: undefined })],
    ['of 8 kB', () => idp.token({ groups: 'g'.repeat(5_900) })],
    ['of 15 kB', () => idp.token({ groups: 'g'.repeat(11_000) })],
    ['with a claim named __proto__', () => withClaim('__proto__', '{"admin":true}')],
    ['signed by the other key', () => token(rsa, idp.claims())],
  ];
  test.each(accepted)('mcpAuthentication accepts a token %s', async (_, make) => {
    const reply = await call(guarded, make());
    expect(reply.text).toBe('reached');
    expect(reply.status).toBe(200);
  });
});

test('tokens with a common prefix are validated independently', async () => {
  const good = idp.token({ sub: 'alice' });
  expect((await call(guarded, good)).status).toBe(200);
  const forged = grafted(idp.token({ sub: 'alicf' }), good);
  expect(forged.slice(0, 64)).toBe(good.slice(0, 64));
  expect((await call(guarded, forged)).status).toBe(401);
  expect((await call(guarded, good)).status).toBe(200);
});

describe('mcpAuthentication tokens in a query parameter', () => {
  let inQuery: TestGateway;
  beforeAll(async () => {
    const authorizationLocation = { queryParameter: { name: 'token' } };
    inQuery = await protectedGateway([{ policies: signIn(idp.issuer, { authorizationLocation }) }]);
  });
  afterAll(() => inQuery.close());
  const ask = (text: string) =>
    call(inQuery, undefined, { target: `/mcp?token=${encodeURIComponent(text)}` });

  test.each([
    ['ES256', () => idp.token()],
    ['RS256', () => token(rsa, idp.claims())],
  ] as const)(
    'a query token is rejected if the low byte of a character is a valid token character (%s)',
    async (_, make) => {
      const parts = make().split('.');
      for (const [place, name] of ['header', 'payload', 'signature'].entries()) {
        const odd = parts.map((part, at) =>
          at === place
            ? part.slice(0, 9) + String.fromCharCode(part.charCodeAt(9) + 0x100) + part.slice(10)
            : part,
        );
        const reply = await ask(odd.join('.'));
        expect(reply.status).toBe(401);
        expect(JSON.parse(reply.text)).toMatchObject({
          error_description: `the token ${name} is not valid base64url`,
        });
      }
      // Last, because a cached token would be accepted without validation.
      expect((await ask(parts.join('.'))).text).toBe('reached');
    },
  );
});

function pssToken(): string {
  const text = `${base64url(JSON.stringify({ alg: 'PS256', kid: 'rsa' }))}.${base64url(JSON.stringify(idp.claims()))}`;
  return `${text}.${base64url(signature(rsa, text, 'PS256'))}`;
}

function derSignature(text: string): Uint8Array {
  const raw = signature(idp.key, text);
  const integer = (bytes: Buffer): Buffer => {
    const positive = (bytes[0] as number) >= 0x80 ? Buffer.concat([Buffer.alloc(1), bytes]) : bytes;
    return Buffer.concat([Buffer.from([2, positive.length]), positive]);
  };
  const body = Buffer.concat([integer(raw.subarray(0, 32)), integer(raw.subarray(32))]);
  return Buffer.concat([Buffer.from([0x30, body.length]), body]);
}

/** A valid signature of a foreign key that the header claims to be trusted. */
function foreign(more: Members): string {
  return token(stranger, idp.claims(), more);
}

function badUtf8(): Buffer {
  const [before = '', after = ''] = JSON.stringify(idp.claims({ name: '@' })).split('@');
  return Buffer.concat([Buffer.from(before), Buffer.from([0xff, 0xfe]), Buffer.from(after)]);
}

/** The last character of 64 encoded bytes has only two significant bits: the next letter decodes to the same bytes. */
function strayBits(): string {
  const text = idp.token();
  return text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) + 1);
}
