import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { createLog } from '../../src/core/log.ts';
import { TokenError } from '../../src/server/policies/jwt/jwt-precheck.ts';
import { KeySet } from '../../src/server/policies/jwt/key-set.ts';
import { TokenValidator } from '../../src/server/policies/jwt/token-validator.ts';
import { AUDIENCES, almostToken, ISSUER, KEYS, partsOf, STRICTER, seeded } from './token-mutations.ts';

/** Verdicts of our validator and of jose's `jwtVerify` on the same tokens. */
export interface Comparison {
  readonly accepted: number;
  readonly refused: number;
  /** Number of tokens that only our validator refuses, by the reason in `STRICTER`. */
  readonly stricter: Readonly<Record<string, number>>;
  /** Tokens with different verdicts for no known reason. Must be empty. */
  readonly unexplained: readonly string[];
}

const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((family) => ['256', '384', '512'].map((bits) => family + bits));
const JWKS = { keys: Object.values(KEYS).map(({ jwk }) => jwk) };

/**
 * Validates mutated tokens with our validator and with `jwtVerify`, under the same rules and at the same time. Both
 * verify signatures with jose; what is compared are our rules for headers and claims, and the choice of the key.
 */
export async function compareWithJose(count: number, seed: number): Promise<Comparison> {
  const random = seeded(seed);
  const quiet = createLog(
    { write: () => undefined, dropped: 0, flush: async () => undefined },
    'error',
    'text',
  );
  const keys = new KeySet(async () => ({ value: JWKS, lifetime: Number.POSITIVE_INFINITY }), quiet);
  const rules = { issuer: ISSUER, audiences: AUDIENCES, required: ['exp'], accessTokenType: undefined };
  const validator = new TokenValidator(keys, rules);
  const jose = createLocalJWKSet(JWKS as unknown as JSONWebKeySet);
  const { now } = Date;
  const fixed = now();
  // Many tokens expire about now: both must use the same time.
  Date.now = () => fixed;
  try {
    const result = {
      accepted: 0,
      refused: 0,
      stricter: {} as Record<string, number>,
      unexplained: [] as string[],
    };
    for (let index = 0; index < count; index += 1) {
      const text = almostToken(random);
      const ours = await verdict(async () => validator.validate(text));
      const theirs = await verdict(() =>
        jwtVerify(text, jose, {
          issuer: ISSUER,
          audience: AUDIENCES,
          clockTolerance: 60,
          algorithms: [...ALGORITHMS, 'EdDSA', 'Ed25519'],
          requiredClaims: ['exp'],
          currentDate: new Date(fixed),
        }),
      );
      tally(result, text, ours, theirs);
    }
    return result;
  } finally {
    Date.now = now;
  }
}

/** Undefined for an accepted token, otherwise the message of the error. */
async function verdict(validate: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await validate();
    return undefined;
  } catch (error) {
    // Any other error is a bug, not a verdict.
    if (error instanceof TokenError || (error as { code?: string }).code?.startsWith('ERR_'))
      return (error as Error).message;
    throw error;
  }
}

function tally(
  result: { accepted: number; refused: number; stricter: Record<string, number>; unexplained: string[] },
  text: string,
  ours: string | undefined,
  theirs: string | undefined,
): void {
  if (ours === undefined && theirs === undefined) result.accepted += 1;
  else if (ours !== undefined && theirs !== undefined) result.refused += 1;
  else {
    const reason =
      ours === undefined
        ? undefined
        : Object.entries(STRICTER).find(([, isTrue]) => isTrue(partsOf(text)))?.[0];
    if (reason === undefined) result.unexplained.push(`${text}: ours ${ours}, jose's ${theirs}`);
    else result.stricter[reason] = (result.stricter[reason] ?? 0) + 1;
  }
}
