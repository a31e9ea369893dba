import {
  constants,
  hash,
  type KeyObject,
  publicDecrypt,
  type VerifyKeyObjectInput,
  verify,
} from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';

/** What a token's signature is of. */
export interface SignedText {
  readonly text: string;
  /** Its SHA-256, each byte as one character: tokens are remembered by it, too. */
  readonly sha256: string;
}

/** Whether a signature is one of that text by the key that this was made for. */
export type Verify = (signed: SignedText, signature: Buffer) => boolean;

/** How a key checks signatures, by the algorithms that it may be used with: a token's header only chooses among them. */
export type Verifiers = ReadonlyMap<string, Verify>;

type Algorithms = Readonly<Record<string, (key: KeyObject) => Verify>>;
type Hash = 'sha256' | 'sha384' | 'sha512';

/** Asymmetric algorithms of RFC 7518 §3.1 and RFC 8037. `none` and HMAC are not here and so cannot be used. */
const RSA: Algorithms = {
  RS256: (key) => pkcs1(key, 'sha256'),
  RS384: (key) => pkcs1(key, 'sha384'),
  RS512: (key) => pkcs1(key, 'sha512'),
  PS256: (key) => pss(key, 'sha256'),
  PS384: (key) => pss(key, 'sha384'),
  PS512: (key) => pss(key, 'sha512'),
};
const BY_CURVE: Readonly<Record<string, Algorithms>> = {
  prime256v1: { ES256: (key) => ecdsa(key, 'sha256', 64) },
  secp384r1: { ES384: (key) => ecdsa(key, 'sha384', 96) },
  secp521r1: { ES512: (key) => ecdsa(key, 'sha512', 132) },
};
const ED25519: Algorithms = { EdDSA: eddsa, Ed25519: eddsa };

const ACCEPTED: ReadonlySet<string> = new Set(
  [RSA, ...Object.values(BY_CURVE), ED25519].flatMap((algorithms) => Object.keys(algorithms)),
);

/** Whether there are keys for the algorithm at all. */
export function isAccepted(algorithm: string): boolean {
  return ACCEPTED.has(algorithm);
}

/** All algorithms that a public key can be used with. Throws `Error` for keys that are weak or of another kind. */
export function verifiersOf(key: KeyObject): Verifiers {
  return new Map(Object.entries(algorithmsOf(key)).map(([name, verifierOf]) => [name, verifierOf(key)]));
}

function algorithmsOf(key: KeyObject): Algorithms {
  const { modulusLength = 0, publicExponent = 0n, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      if (modulusLength < LIMITS.rsaBits)
        throw new Error(`RSA keys need ${LIMITS.rsaBits} bits, this has ${modulusLength}`);
      // RFC 8017 §3.1; with 1, everything that looks signed is.
      if (publicExponent < 3n)
        throw new Error(`RSA keys need an exponent from 3 on, this has ${publicExponent}`);
      return RSA;
    case 'ec': {
      const algorithm = BY_CURVE[namedCurve];
      if (algorithm === undefined) throw new Error(`curve ${namedCurve} is not supported`);
      return algorithm;
    }
    case 'ed25519':
      return ED25519;
    default:
      throw new Error(`keys of type ${key.asymmetricKeyType} are not supported`);
  }
}

/** What stands before the hash in a signature (RFC 8017 §9.2, note 1): the hash's name and length in DER. */
const DIGEST_INFO: Readonly<Record<Hash, string>> = {
  sha256: Buffer.from('3031300d060960864801650304020105000420', 'hex').toString('latin1'),
  sha384: Buffer.from('3041300d060960864801650304020205000430', 'hex').toString('latin1'),
  sha512: Buffer.from('3051300d060960864801650304020305000440', 'hex').toString('latin1'),
};

/**
 * RSASSA-PKCS1-v1_5 (RFC 7518 §3.3), the other way round that RFC 8017 §8.2.2 ends with: the signature is opened and
 * what it holds compared with the hash that is here already. A sixth cheaper than `verify`, which most tokens pay:
 * docs/decisions/0010.
 */
function pkcs1(key: KeyObject, name: Hash): Verify {
  const signatureBytes = Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8);
  const before = DIGEST_INFO[name];
  return ({ text, sha256 }, signature) => {
    if (signature.length !== signatureBytes) return false;
    const held = opened(key, signature);
    return held === before + (name === 'sha256' ? sha256 : hash(name, text, 'latin1'));
  };
}

/** What a signature holds behind its padding, all of it, each byte as one character; undefined without padding. */
function opened(key: KeyObject, signature: Buffer): string | undefined {
  try {
    return publicDecrypt(key, signature).toString('latin1');
  } catch {
    return undefined;
  }
}

/** RSASSA-PSS (RFC 7518 §3.5): the salt is as long as the hash. */
function pss(key: KeyObject, name: Hash): Verify {
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  return verifier(name, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST });
}

/** ECDSA (RFC 7518 §3.4): the signature is two numbers of fixed length, never DER. */
function ecdsa(key: KeyObject, name: Hash, signatureBytes: number): Verify {
  const isValid = verifier(name, { key, dsaEncoding: 'ieee-p1363' });
  return (signed, signature) => signature.length === signatureBytes && isValid(signed, signature);
}

function eddsa(key: KeyObject): Verify {
  return verifier(null, { key });
}

function verifier(name: Hash | null, input: VerifyKeyObjectInput): Verify {
  return ({ text }, signature) => verify(name, Buffer.from(text, 'latin1'), input, signature);
}
