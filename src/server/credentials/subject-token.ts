import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { validatedToken } from '../kernel/request/shared-slots.ts';
import { Slot } from '../kernel/slot.ts';
import { type CredentialLocation, credentialLocation, type locationSchema } from './location.ts';

/** A token for the caller of a request, which may be sent with later requests too. */
export interface CallerToken {
  /** Tells callers apart whose tokens differ. Undefined if the policy that has validated the token does that already. */
  readonly key?: string | undefined;
  /** The token, from the cache or a new one; undefined if the request has none. Rejects with an `AppError`. */
  get(): string | undefined | Promise<string>;
  /** The server has refused the token. Whether the request may be sent again; rejects with an `AppError`. */
  refused?(refusal: Refusal): Promise<boolean>;
}

/** How a server has refused a token. */
export interface Refusal {
  readonly status: 401 | 403;
  /** `WWW-Authenticate`. */
  readonly challenge: string | string[] | undefined;
  /** The request was sent again already. */
  readonly isSecond: boolean;
}

/** Tokens that were exchanged and removed, by their place: a server of the route, or another model, may need another for it. */
const exchangedTokens = new Slot<Map<string, string>>();

/** Tokens that are issued for those of clients. */
export interface TokenExchange {
  /**
   * The new token for a request, whose own tokens are removed. A repeated call of the backend, which no longer finds them, gets
   * the token that was issued before. Rejects with an `AppError`.
   */
  token(ctx: RequestContext): Promise<string>;
  /** Reads the tokens of a request, and leaves them there. Throws an `AppError` (400) if one is missing. */
  read(ctx: RequestContext): CallerToken;
  /** Names of the headers that they are read from. */
  readonly headers: readonly string[];
}

/** The tokens that a request is exchanged for: `own` is that of the client, `acting` that of who acts for it. */
export interface PresentedTokens {
  readonly own: string;
  readonly acting: string | undefined;
}

/**
 * Compiles the exchange of the token of the client, which is at `source`; by default also the one that a policy has validated.
 * `prepare` reads whatever else it needs from the request, and returns a function that requests the token.
 */
export function exchangeForClients(
  source: z.output<typeof locationSchema> | undefined,
  context: CompileContext,
  prepare: (ctx: RequestContext, tokens: PresentedTokens) => () => Promise<string>,
  actor?: CredentialLocation,
): TokenExchange {
  const subject = credentialLocation(source, context);
  const issued = new WeakMap<RequestContext, string>();
  const place = JSON.stringify(source ?? null);
  const tokensOf = (ctx: RequestContext): PresentedTokens => {
    const own =
      subject.read(ctx) ??
      (source === undefined ? validatedToken.get(ctx) : undefined) ??
      exchangedTokens.get(ctx)?.get(place);
    if (own === undefined)
      throw new AppError('bad_request', { message: 'the request has no token to exchange' });
    ctx.observer?.hide(own, true);
    const acting = actor?.read(ctx);
    if (actor !== undefined && acting === undefined)
      throw new AppError('bad_request', { message: 'the request has no actor token' });
    ctx.observer?.hide(acting, true);
    return { own, acting };
  };
  return {
    async token(ctx) {
      const known = issued.get(ctx);
      if (known !== undefined) return known;
      const tokens = tokensOf(ctx);
      const token = await prepare(ctx, tokens)();
      if (tokens.acting !== undefined) actor?.remove(ctx, tokens.acting);
      subject.remove(ctx, tokens.own);
      exchangedTokens.ensure(ctx, () => new Map()).set(place, tokens.own);
      issued.set(ctx, token);
      return token;
    },
    read(ctx) {
      const tokens = tokensOf(ctx);
      const isKnown = tokens.acting === undefined && tokens.own === validatedToken.get(ctx);
      const key = isKnown
        ? undefined
        : createHash('sha256')
            .update(JSON.stringify([tokens.own, tokens.acting]))
            .digest('base64url');
      return { key, get: prepare(ctx, tokens) };
    },
    headers: [subject.header, actor?.header].filter((name) => name !== undefined),
  };
}
