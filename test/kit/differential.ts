import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { createLog } from '../../src/core/log.ts';
import { TokenError } from '../../src/server/policies/mcp-authentication/jwt-precheck.ts';
import { KeySet } from '../../src/server/policies/mcp-authentication/key-set.ts';
import { TokenValidator } from '../../src/server/policies/mcp-authentication/token-validator.ts';
import { AUDIENCES, almostToken, ISSUER, KEYS, partsOf, STRICTER, seeded } from './token-mutations.ts';

/** How two judges of the same tokens compare. */
export interface Comparison {
  readonly accepted: number;
  readonly refused: number;
  /** Refused by us alone, by the reason that we have for it. */
  readonly stricter: Readonly<Record<string, number>>;
  /** Tokens on which the two differ without a reason, with what each said. None may be left. */
  readonly unexplained: readonly string[];
}

const ALGORITHMS = ['RS', 'PS', 'ES'].flatMap((family) => ['256', '384', '512'].map((bits) => family + bits));
const JWKS = { keys: Object.values(KEYS).map(({ jwk }) => jwk) };

/** Lets jose and our validator judge the same tokens under the same rules at the same time. */
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
  // Tokens lie around the edges of the hour: both judges must mean the same one.
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

/** Undefined for an accepted token, otherwise what was said against it. */
async function verdict(judge: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await judge();
    return undefined;
  } catch (error) {
    // Anything else than these is a fault of a judge, not a verdict.
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
