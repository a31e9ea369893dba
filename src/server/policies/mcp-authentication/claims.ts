import { type Claims, TokenError } from './jwt-precheck.ts';

/** What a token must claim. */
export interface ClaimRules {
  readonly issuer: string;
  readonly audiences: readonly string[];
  /** Claims that must be present: of exp, nbf, aud, iss, sub. */
  readonly required: readonly string[];
  /** The identity provider says in `typ` what a token is for; only access tokens are accepted then. */
  readonly accessTokenType: string | undefined;
}

/** Difference between the clocks of the provider and this machine that is forgiven, in seconds. */
const LEEWAY = 60;

/** Checks the claims of a token whose signature is valid (RFC 7519 §4.1). Throws `TokenError` saying expected and got. */
export function checkClaims(
  claims: Claims,
  { issuer, audiences, required, accessTokenType }: ClaimRules,
  nowSeconds: number,
): void {
  if (claims['iss'] !== issuer)
    throw new TokenError(`the token's issuer is ${shown(claims['iss'])}, expected ${shown(issuer)}`);
  checkAudience(claims['aud'], audiences);
  for (const name of required)
    if (claims[name] === undefined) throw new TokenError(`the token has no \`${name}\` claim`);
  const expires = numericDate(claims, 'exp');
  if (expires !== undefined && expires + LEEWAY <= nowSeconds) throw new TokenError('the token has expired');
  const notBefore = numericDate(claims, 'nbf');
  if (notBefore !== undefined && notBefore - LEEWAY > nowSeconds)
    throw new TokenError('the token is not valid yet');
  const issuedAt = numericDate(claims, 'iat');
  if (issuedAt !== undefined && issuedAt - LEEWAY > nowSeconds)
    throw new TokenError('the token was issued in the future');
  const { typ } = claims;
  if (accessTokenType !== undefined && typ !== undefined && typ !== accessTokenType) {
    throw new TokenError(
      `the token is of type ${shown(typ)}, expected ${shown(accessTokenType)}: an access token is needed`,
    );
  }
}

function checkAudience(audience: unknown, accepted: readonly string[]): void {
  const values = Array.isArray(audience) ? (audience as unknown[]) : [audience];
  for (const value of values) if (typeof value === 'string' && accepted.includes(value)) return;
  throw new TokenError(
    `the token's audience is ${shown(audience)}, expected ${accepted.map(shown).join(' or ')}`,
  );
}

/** NumericDate (RFC 7519 §2): seconds; anything but a finite number is refused. */
function numericDate(claims: Claims, name: string): number | undefined {
  const value = claims[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new TokenError(`the token's \`${name}\` claim is not a number`);
  return value;
}

/** A claim as it may stand in a message: short, quoted, and without characters that end a header parameter. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  return `'${(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replace(/[^\x20-\x7e]|["\\']/g, '?').slice(0, 120)}'`;
}
