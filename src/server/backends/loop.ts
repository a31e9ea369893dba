import { AppError } from '../../core/errors.ts';
import { PSEUDONYM } from '../../core/via.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';

// For backends whose server is not in the configuration: it may be this gateway.

/** Header that recognizes requests which come back. */
export const LOOP_MARK = ['via', `1.1 ${PSEUDONYM}`] as const;

/** @throws AppError for a request that has come back */
export function refuseLoop(ctx: RequestContext): void {
  if (ctx.headers.all('via').some((value) => value.includes(PSEUDONYM)))
    throw new AppError('no_backend', { detail: 'the request has come back to this gateway' });
}
