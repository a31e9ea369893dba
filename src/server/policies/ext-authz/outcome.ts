import { AppError } from '../../../core/errors.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { Sized } from './cache.ts';

/** What the service has decided, in a form that can be applied to further requests. */
export interface Outcome extends Sized {
  /** For traces. */
  readonly reason: string;
  /** Whether it is a decision: a failure of the service is not. */
  readonly isCacheable: boolean;
  /** Values for the variable `extauthz`. */
  readonly values: Readonly<Record<string, unknown>> | undefined;
  /** Headers to set in the response to the client. */
  readonly responseHeaders?: readonly (readonly [string, string])[];
  /** Changes an allowed request; returns the reply or the error for a denied one. */
  apply(ctx: RequestContext): undefined | Reply | AppError;
}

/** The error for a request that is denied with a fixed response. */
export function denial(ctx: RequestContext, reason: string, status?: number): AppError {
  ctx.observer?.policy({ kind: 'extAuthz', action: 'deny', reason });
  return new AppError('ext_authz_failed', { detail: reason, ...(status === undefined ? {} : { status }) });
}
