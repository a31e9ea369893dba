import { createPrivateKey, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose/jwt/sign';
import { z } from 'zod';
import { durationSchema } from '../../core/duration.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';

/** Algorithms with the kind of key that they need: for EC, the curve (RFC 7518 §3.4). */
const KEYS = {
  RS256: 'rsa',
  RS384: 'rsa',
  RS512: 'rsa',
  PS256: 'rsa',
  ES256: 'prime256v1',
  ES384: 'secp384r1',
} as const;
export type Algorithm = keyof typeof KEYS;

const algorithmSchema = z
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- keys of a constant.
  .enum(Object.keys(KEYS) as [Algorithm, ...Algorithm[]])
  .default('RS256')
  .describe('Algorithm of the signature; it must fit the key.');

/** The signer sets these itself. */
const RESERVED = ['iat', 'exp', 'nbf'];

/** Receivers whose clocks are behind still accept a new token. In seconds. */
const BACKDATED = 10;

export const jwtSignSchema = z.strictObject({
  signingKey: textOrFile.meta({ secret: true }).describe('Private key (PEM), or `{ file: … }`.'),
  alg: algorithmSchema,
  kid: z.string().min(1).nullish().describe('Id of the key, for the header of the token.'),
  claims: z
    .record(z.string(), z.json())
    .default({})
    .superRefine((claims, check) => {
      for (const name of RESERVED)
        if (name in claims)
          check.addIssue({
            code: 'custom',
            path: [name],
            message: `\`${name}\` is set for each token, and cannot be configured`,
          });
    })
    .describe('Claims of every token, such as `iss`, `sub` and `aud`.'),
  ttl: durationSchema
    .refine((value) => value >= 1000, { error: 'expected at least one second' })
    .prefault('300s')
    .describe('Lifetime of a token, as its `exp` says.'),
});

/** Signs tokens; undefined if the key cannot be used, which is reported. */
export function jwtSigner(
  { signingKey, alg, kid, claims, ttl }: z.output<typeof jwtSignSchema>,
  context: CompileContext,
): (() => Promise<string>) | undefined {
  const key = privateKey(signingKey, alg, context.at('signingKey'));
  if (key === undefined) return undefined;
  return () => {
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({ ...claims, iat: now - BACKDATED, exp: now + Math.ceil(ttl / 1000) })
      .setProtectedHeader({ alg, typ: 'JWT', ...(kid ? { kid } : {}) })
      .sign(key);
  };
}

/** A private key for an algorithm. Reports one that cannot be read, or is of another kind. */
function privateKey(
  source: z.output<typeof textOrFile>,
  alg: Algorithm,
  context: CompileContext,
): KeyObject | undefined {
  const pem = readText(source, context);
  if (pem === undefined) return undefined;
  let kind = 'not a private key in PEM format';
  try {
    const key = createPrivateKey(pem);
    const { namedCurve, modulusLength = 0 } = key.asymmetricKeyDetails ?? {};
    kind = `of the kind ${namedCurve ?? key.asymmetricKeyType}`;
    if (
      (namedCurve ?? key.asymmetricKeyType) === KEYS[alg] &&
      (namedCurve !== undefined || modulusLength >= 2048)
    )
      return key;
    // RFC 7518 §3.3.
    if (key.asymmetricKeyType === KEYS[alg]) kind = `shorter than 2048 bits`;
  } catch {
    // Reported below: the error of OpenSSL says nothing that helps.
  }
  context.report({
    code: 'AGW0104',
    message: `the signing key is ${kind}; ${alg} needs one of the kind ${KEYS[alg]}`,
    help: 'set it to the text of a PEM file, `-----BEGIN PRIVATE KEY-----…`, or to `{ file: … }`',
  });
  return undefined;
}
