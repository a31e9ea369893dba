import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import type { Discovery } from './discovery.ts';
import { TokenError } from './jwt-precheck.ts';
import { KeySetUnavailableError } from './key-set.ts';

type Mode = 'strict' | 'optional' | 'permissive';

/** For a request without a token: returns if the mode allows that, otherwise throws the 401 that starts a sign-in. */
export function withoutToken(ctx: RequestContext, mode: Mode, discovery: Discovery): undefined {
  if (mode !== 'strict') {
    ctx.observer?.policy({
      kind: 'mcpAuthentication',
      action: 'skip',
      reason: `no token; allowed in mode ${mode}`,
    });
    return undefined;
  }
  ctx.observer?.policy({ kind: 'mcpAuthentication', action: 'deny', reason: 'no token' });
  // Header and body are prescribed by the specification.
  throw new AppError('token_missing', {
    headers: ['www-authenticate', `Bearer resource_metadata="${discovery.metadataUrl(ctx)}"`],
    body: json({ error: 'unauthorized', error_description: 'JWT token required' }),
  });
}

/**
 * For a token that is not valid or cannot be checked: returns in mode `permissive`, otherwise throws 401, or 503 while no
 * keys can be loaded.
 */
export function invalidToken(
  ctx: RequestContext,
  mode: Mode,
  discovery: Discovery,
  error: unknown,
): undefined {
  const unavailable = error instanceof KeySetUnavailableError;
  if (!(unavailable || error instanceof TokenError)) throw error;
  ctx.observer?.policy({
    kind: 'mcpAuthentication',
    action: mode === 'permissive' ? 'skip' : 'deny',
    reason: error.message,
  });
  if (mode === 'permissive') return undefined;
  if (unavailable)
    throw new AppError('keys_unavailable', {
      detail: error.message,
      headers: ['retry-after', String(LIMITS.retryDelayMax / 1000)],
    });
  throw new AppError('token_invalid', {
    detail: error.message,
    headers: [
      'www-authenticate',
      `Bearer resource_metadata="${discovery.metadataUrl(ctx)}", error="invalid_token", error_description="${error.message.replace(/["\\]/g, '')}"`,
    ],
    body: json({ error: 'invalid_token', error_description: error.message }),
  });
}

const json = (value: object): { type: string; text: string } => ({
  type: 'application/json',
  text: JSON.stringify(value),
});

/** Challenge for a failed rule on scopes (RFC 6750 §3.1). Contains only the known scopes that the rule names. */
export function insufficientScope(metadataUrl: string, known: readonly string[], ruleSource: string): string {
  const required = known.filter(
    (scope) => ruleSource.includes(`"${scope}"`) || ruleSource.includes(`'${scope}'`),
  );
  const scope = required.length === 0 ? '' : `, scope="${required.join(' ')}"`;
  return `Bearer error="insufficient_scope"${scope}, resource_metadata="${metadataUrl}"`;
}
