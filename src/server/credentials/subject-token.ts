import type { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { validatedToken } from '../kernel/request/shared-slots.ts';
import { credentialLocation, type locationSchema } from './location.ts';

/**
 * Returns a function that exchanges the token of the client (at `source`; by default also the one that a policy has
 * validated) and removes it from the request. A repeated call of the backend, which no longer finds it, gets the token that
 * was issued before. Rejects with an `AppError` (400) if the request has no token, and as `exchange` does.
 */
export function exchangeOncePerRequest(
  source: z.output<typeof locationSchema> | undefined,
  context: CompileContext,
  exchange: (ctx: RequestContext, own: string) => Promise<string>,
): (ctx: RequestContext) => Promise<string> {
  const subject = credentialLocation(source, context);
  const issued = new WeakMap<RequestContext, string>();
  return async (ctx) => {
    const known = issued.get(ctx);
    if (known !== undefined) return known;
    const own = subject.read(ctx) ?? (source === undefined ? validatedToken.get(ctx) : undefined);
    if (own === undefined)
      throw new AppError('bad_request', { message: 'the request has no token to exchange' });
    ctx.observer?.hide(own, true);
    const token = await exchange(ctx, own);
    subject.remove(ctx);
    issued.set(ctx, token);
    return token;
  };
}
