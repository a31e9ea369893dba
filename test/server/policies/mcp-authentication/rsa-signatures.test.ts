import { constants, createPublicKey, hash, privateEncrypt, verify } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../../kit/gateway.ts';
import { type Idp, startIdp } from '../../../kit/idp.ts';
import { call, protectedGateway, signIn } from '../../../kit/sign-in.ts';
import { base64url, type SigningKey, signature, signingKey } from '../../../kit/tokens.ts';

// Signatures that faulty verifiers of RSASSA-PKCS1-v1_5 are known to accept, made with the real key: wrong padding,
// other bytes around the hash, and other encodings of a valid signature. `verify` of Node.js rejects each of them too.

type Hash = 'sha256' | 'sha384' | 'sha512';
const HASHES: readonly Hash[] = ['sha256', 'sha384', 'sha512'];

/** RFC 8017 §9.2, note 1: DigestInfo prefix before the hash. */
const DIGEST_INFO: Readonly<Record<Hash, string>> = {
  sha256: '3031300d060960864801650304020105000420',
  sha384: '3041300d060960864801650304020205000430',
  sha512: '3051300d060960864801650304020305000440',
};
/** The same without the NULL parameters: some verifiers treat them as optional, RFC 8017 does not. */
const WITHOUT_NULL: Readonly<Record<Hash, string>> = {
  sha256: '302f300b0609608648016503040201' + '0420',
  sha384: '303f300b0609608648016503040202' + '0430',
  sha512: '304f300b0609608648016503040203' + '0440',
};
const NO_HASH = '';

const keys = Object.fromEntries(HASHES.map((name) => [name, keyFor(name)])) as Record<Hash, SigningKey>;

/** A key whose modulus is so far below 2^2048 that it can be added to some signatures. */
function keyFor(name: Hash): SigningKey {
  const key = signingKey(name, `RS${name.slice(3)}`);
  return (Buffer.from(key.jwk.n as string, 'base64url')[0] as number) < 0xf0 ? key : keyFor(name);
}

let idp: Idp;
let guarded: TestGateway;
beforeAll(async () => {
  idp = await startIdp();
  idp.published = HASHES.map((name) => keys[name].jwk);
  guarded = await protectedGateway([{ policies: signIn(idp.issuer) }]);
});
afterAll(() => Promise.all([guarded.close(), idp.upstream.close()]));

/** The signing input of a token with that hash. */
function textOf(name: Hash, jti = 'one'): string {
  const { alg, kid } = keys[name];
  return `${base64url(JSON.stringify({ alg, kid }))}.${base64url(JSON.stringify(idp.claims({ jti })))}`;
}

/** A signature that decrypts to these 256 bytes. */
function sealed(name: Hash, bytes: Buffer): Buffer {
  expect(bytes.length).toBe(256);
  return privateEncrypt({ key: keys[name].privateKey, padding: constants.RSA_NO_PADDING }, bytes);
}

/** These bytes with the padding of RFC 8017 §9.2 before them and optional bytes behind them. */
function padded(held: Buffer, { begin = '0001', fill = 0xff, end = '00', behind = '' } = {}): Buffer {
  const [first, separator, last] = [begin, end, behind].map((text) => Buffer.from(text, 'hex')) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  const length = 256 - first.length - separator.length - held.length - last.length;
  return Buffer.concat([first, Buffer.alloc(length, fill), separator, held, last]);
}

function held(name: Hash, text: string, info = DIGEST_INFO[name]): Buffer {
  return Buffer.concat([Buffer.from(info, 'hex'), hash(name, text, 'buffer')]);
}

/** Result of `verify` of Node.js. */
function nodeAccepts(name: Hash, text: string, made: Buffer): boolean {
  const key = createPublicKey({ key: keys[name].jwk, format: 'jwk' });
  return verify(name, Buffer.from(text), key, made);
}

/** The modulus, as a number. */
function modulus(name: Hash): bigint {
  return BigInt(`0x${Buffer.from(keys[name].jwk.n as string, 'base64url').toString('hex')}`);
}

/** A token of this hash whose signature is a number that meets a condition. */
function found(name: Hash, condition: (value: bigint) => boolean): { text: string; value: bigint } {
  for (let serial = 0; serial < 5_000; serial += 1) {
    const text = textOf(name, String(serial));
    const value = BigInt(`0x${signature(keys[name], text).toString('hex')}`);
    if (condition(value)) return { text, value };
  }
  throw new Error('no such signature was found');
}

function bytesOf(value: bigint, length: number): Buffer {
  return Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex');
}

interface Made {
  readonly text: string;
  readonly made: Buffer;
}

const FORGERIES: readonly (readonly [name: string, make: (name: Hash) => Made])[] = [
  ...(
    [
      ['the hash parameters are missing', (name, text) => padded(held(name, text, WITHOUT_NULL[name]))],
      ['the hash has no DigestInfo', (name, text) => padded(held(name, text, NO_HASH))],
      ['the hash is of another text', (name, text) => padded(held(name, `${text}A`))],
      [
        'another hash is named',
        (name, text) => padded(held(name, text, DIGEST_INFO[name === 'sha256' ? 'sha384' : 'sha256'])),
      ],
      ['another hash is used', (name, text) => padded(held(name === 'sha256' ? 'sha384' : 'sha256', text))],
      ['a byte follows the hash', (name, text) => padded(held(name, text), { behind: '00' })],
      ['many bytes follow the hash', (name, text) => padded(held(name, text), { behind: 'a5'.repeat(120) })],
      ['a byte precedes the DigestInfo', (name, text) => padded(held(name, text), { end: '0030' })],
      [
        'the padding contains an extra separator',
        (name, text) => padded(held(name, text), { end: '00ff00' }),
      ],
      [
        'the padding is of block type 2 (encryption)',
        (name, text) => padded(held(name, text), { begin: '0002' }),
      ],
      [
        'the padding is of block type 0 (zeros)',
        (name, text) => padded(held(name, text), { begin: '0000', fill: 0 }),
      ],
      ['the padding is not all ones', (name, text) => padded(held(name, text), { fill: 0xfe })],
      ['the padding has no separator', (name, text) => padded(held(name, text), { end: '' })],
      [
        'the padding has seven bytes, with garbage behind',
        (name, text) => {
          const inside = held(name, text);
          return padded(inside, { behind: '00'.repeat(256 - 10 - inside.length) });
        },
      ],
      [
        'the hash is the last thing of many others',
        (name, text) => padded(Buffer.concat([Buffer.alloc(100, 0x30), held(name, text)])),
      ],
      ['the DigestInfo is empty', () => padded(Buffer.alloc(0))],
    ] as readonly (readonly [name: string, bytes: (name: Hash, text: string) => Buffer])[]
  ).map(
    ([what, bytes]) =>
      [
        what,
        (name: Hash) => {
          const text = textOf(name);
          return { text, made: sealed(name, bytes(name, text)) };
        },
      ] as const,
  ),
  [
    'a valid signature without its leading zeros',
    (name) => {
      const { text, value } = found(name, (number) => number < 1n << 2040n);
      return { text, made: bytesOf(value, 255) };
    },
  ],
  [
    'a valid signature with a leading zero',
    (name) => {
      const text = textOf(name);
      return { text, made: Buffer.concat([Buffer.alloc(1), signature(keys[name], text)]) };
    },
  ],
  [
    'a valid signature plus the modulus',
    (name) => {
      const { text, value } = found(name, (number) => number + modulus(name) < 1n << 2048n);
      return { text, made: bytesOf(value + modulus(name), 256) };
    },
  ],
  [
    'a valid RSASSA-PSS signature',
    (name) => {
      const text = textOf(name);
      return { text, made: signature(keys[name], text, `PS${name.slice(3)}`) };
    },
  ],
  ['of zeros', (name) => ({ text: textOf(name), made: Buffer.alloc(256) })],
  ['one', (name) => ({ text: textOf(name), made: bytesOf(1n, 256) })],
  ['of ones', (name) => ({ text: textOf(name), made: Buffer.alloc(256, 0xff) })],
];

describe.each(HASHES)('RSASSA-PKCS1-v1_5 with %s', (name) => {
  test(`mcpAuthentication accepts RSA signatures (${name}) constructed manually and by Node.js`, async () => {
    const text = textOf(name);
    const made = sealed(name, padded(held(name, text)));
    expect(made).toEqual(signature(keys[name], text));
    expect((await call(guarded, `${text}.${base64url(made)}`)).text).toBe('reached');
  });

  test.each(FORGERIES)(`mcpAuthentication rejects an RSA signature (${name}): %s`, async (_, make) => {
    const { text, made } = make(name);
    expect(nodeAccepts(name, text, made)).toBe(false);
    // The valid signature of that text is cached, which must not validate another one.
    expect((await call(guarded, `${text}.${base64url(signature(keys[name], text))}`)).status).toBe(200);
    const reply = await call(guarded, `${text}.${base64url(made)}`);
    expect(reply.status).toBe(401);
    expect(reply.headers['www-authenticate']).toContain('the signature of the token is not valid');
  });
});
