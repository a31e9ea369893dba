import type { webcrypto } from 'node:crypto';
import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** A key pair as an identity provider has it. */
export interface SigningKey {
  readonly kid: string;
  /** Algorithm that tokens are signed with. */
  readonly alg: string;
  readonly privateKey: KeyObject;
  /** The public half, as it stands in a key set. */
  readonly jwk: webcrypto.JsonWebKey & { kid: string; alg?: string; use?: string };
}

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

/** A fresh key for an algorithm of RFC 7518 or `EdDSA`. `bits` is the size of an RSA key. */
export function signingKey(kid: string, alg = 'ES256', bits = 2048): SigningKey {
  const { publicKey, privateKey } = generate(alg, bits);
  const jwk = { ...(publicKey.export({ format: 'jwk' }) as webcrypto.JsonWebKey), kid, alg, use: 'sig' };
  return { kid, alg, privateKey, jwk };
}

function generate(alg: string, bits: number): { publicKey: KeyObject; privateKey: KeyObject } {
  if (alg === 'EdDSA' || alg === 'Ed25519') return generateKeyPairSync('ed25519');
  const namedCurve = CURVES[alg];
  return namedCurve === undefined
    ? generateKeyPairSync('rsa', { modulusLength: bits })
    : generateKeyPairSync('ec', { namedCurve });
}

export type Members = Readonly<Record<string, unknown>>;

/** A token signed with the key. `header` overrides members of the usual header; undefined ones are left out. */
export function token(key: SigningKey, claims: Members, header: Members = {}): string {
  const { alg, kid } = key;
  return tokenOf(key, JSON.stringify({ alg, typ: 'JWT', kid, ...header }), JSON.stringify(claims));
}

/** A token of these very texts, or bytes, with a signature that is right for them. */
export function tokenOf(key: SigningKey, header: string | Uint8Array, payload: string | Uint8Array): string {
  const signed = `${base64url(header)}.${base64url(payload)}`;
  return `${signed}.${signature(key, signed).toString('base64url')}`;
}

/** The signature of a text with the key's own algorithm, or another that the key can be used with. */
export function signature({ alg: own, privateKey }: SigningKey, text: string, alg = own): Buffer {
  const digest = alg.startsWith('Ed') ? null : `sha${alg.slice(2)}`;
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  const form = alg.startsWith('PS') ? pss : { dsaEncoding: 'ieee-p1363' as const };
  return sign(digest, Buffer.from(text, 'latin1'), { key: privateKey, ...form });
}

export function base64url(part: string | Uint8Array): string {
  return Buffer.from(part).toString('base64url');
}

/** Seconds since 1970, with an offset. */
export function seconds(offset = 0): number {
  return Math.floor(Date.now() / 1000) + offset;
}
