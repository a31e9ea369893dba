import { hash } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { admitUntil, type StandingWork } from '../../kernel/admission.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { jwtClaims, principal, validatedToken } from '../../kernel/request/shared-slots.ts';
import { type Claims, TokenError } from './jwt-precheck.ts';
import { KeySetUnavailableError } from './key-set.ts';
import { validUntil } from './token-validator.ts';

// What follows from a token: the variable `jwt` and the identity of the caller, or a refusal.

export type Mode = 'strict' | 'optional' | 'permissive';

/** What the refusals of a policy that validates tokens need to know of it. */
export interface TokenPolicy {
  readonly key: 'mcpAuthentication' | 'jwtAuth';
  readonly mode: Mode;
  readonly standing: StandingWork | undefined;
  /** URL of the resource's metadata, if clients can find out there where to sign in (RFC 9728 §5.1). */
  metadataUrl?(ctx: RequestContext): string;
}

/**
 * Tells other policies the claims of a valid token, and whose it is. What the request opens stands up to `until`, in ms since 1970.
 */
export function acceptToken(
  ctx: RequestContext,
  { key: kind, standing }: Pick<TokenPolicy, 'standing'> & { readonly key: TokenPolicy['key'] | 'oidc' },
  token: string,
  claims: Claims,
  until = validUntil(claims),
): undefined {
  jwtClaims.set(ctx, claims);
  validatedToken.set(ctx, token);
  ctx.invalidateVariable('jwt');
  if (until !== undefined) admitUntil(ctx, standing, until);
  principal.set(ctx, `jwt:${String(claims['iss'])} ${subjectOf(claims, token)}`);
  ctx.observer?.policy({
    kind,
    action: 'apply',
    reason: 'the token is valid',
    snapshot: { sub: claims['sub'] },
  });
  return undefined;
}

/** Subject of the token. Tokens without `sub` are distinguished by hash, since they may belong to different users. */
function subjectOf({ sub }: Claims, token: string): string {
  return typeof sub === 'string' ? `sub ${sub}` : `token ${hash('sha256', token, 'base64url')}`;
}

/** For a request without a token: returns if the mode allows that, otherwise throws the 401 that starts a sign-in. */
export function withoutToken(ctx: RequestContext, policy: TokenPolicy): undefined {
  const { key: kind, mode } = policy;
  if (mode !== 'strict') {
    ctx.observer?.policy({ kind, action: 'skip', reason: `no token; allowed in mode ${mode}` });
    return undefined;
  }
  ctx.observer?.policy({ kind, action: 'deny', reason: 'no token' });
  throw new AppError('token_missing', {
    headers: ['www-authenticate', challenge(ctx, policy)],
    ...bodyFor(policy, 'unauthorized', 'JWT token required'),
  });
}

/**
 * For a token that is not valid or cannot be checked: returns in mode `permissive`, otherwise throws 401, or 503 while no
 * keys can be loaded.
 */
export function invalidToken(ctx: RequestContext, policy: TokenPolicy, error: unknown): undefined {
  const unavailable = error instanceof KeySetUnavailableError;
  if (!(unavailable || error instanceof TokenError)) throw error;
  const { key: kind, mode } = policy;
  ctx.observer?.policy({
    kind,
    action: mode === 'permissive' ? 'skip' : 'deny',
    reason: error.message,
  });
  if (mode === 'permissive') return undefined;
  if (unavailable)
    throw new AppError('keys_unavailable', {
      detail: error.message,
      headers: ['retry-after', String(LIMITS.retryDelayMax / 1000)],
    });
  const description = error.message.replace(/["\\]/g, '');
  throw new AppError('token_invalid', {
    detail: error.message,
    headers: [
      'www-authenticate',
      challenge(ctx, policy, `error="invalid_token"`, `error_description="${description}"`),
    ],
    ...bodyFor(policy, 'invalid_token', error.message),
  });
}

/** RFC 6750 §3. */
function challenge(ctx: RequestContext, { metadataUrl }: TokenPolicy, ...more: string[]): string {
  const parameters = metadataUrl === undefined ? more : [`resource_metadata="${metadataUrl(ctx)}"`, ...more];
  return parameters.length === 0 ? 'Bearer' : `Bearer ${parameters.join(', ')}`;
}

/** The specification prescribes a JSON body for MCP clients; others get the message. */
function bodyFor({ key }: TokenPolicy, error: string, description: string): object {
  if (key !== 'mcpAuthentication') return error === 'invalid_token' ? { message: description } : {};
  const text = JSON.stringify({ error, error_description: description });
  return { body: { type: 'application/json', text } };
}
