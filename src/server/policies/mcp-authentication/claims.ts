import { type Claims, TokenError } from './jwt-precheck.ts';

/** Rules for the claims of a token. */
export interface ClaimRules {
  /** Must equal `iss`, character by character (RFC 8725 §3.8). */
  readonly issuer: string;
  /** One of them must be in `aud` (RFC 8725 §3.9). */
  readonly audiences: readonly string[];
  /** Claims that must be present, of `exp`, `nbf`, `aud`, `iss` and `sub`. */
  readonly required: readonly string[];
  /** For providers that put the type of a token into a claim `typ`: the value that access tokens have. */
  readonly accessTokenType: string | undefined;
}

/** Accepted difference between the clocks of the provider and this machine, in seconds (RFC 7519 §4.1.4). */
const LEEWAY = 60;

/**
 * Checks the registered claims of a token (RFC 7519 §4.1). `nowSeconds` is the time since 1970, in seconds.
 * Throws `TokenError` with the expected and the actual value of the first claim that breaks a rule.
 */
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

/**
 * A NumericDate (RFC 7519 §2): seconds since 1970. `1e999` is valid JSON and parsed as `Infinity`: such a token would never
 * expire. Throws `TokenError` for anything but a finite number.
 */
function numericDate(claims: Claims, name: string): number | undefined {
  const value = claims[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new TokenError(`the token's \`${name}\` claim is not a number`);
  return value;
}

/** A claim for an error message: quoted, at most 120 characters, none of which ends a header parameter. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  return `'${(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replace(/[^\x20-\x7e]|["\\']/g, '?').slice(0, 120)}'`;
}
