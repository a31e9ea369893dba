import { AppError } from '../../../core/errors.ts';
import { textReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { Config } from './config.ts';
import { redirect, type SealedCookies, withCookies } from './cookies.ts';
import type { Provider } from './provider.ts';
import type { Sessions } from './sessions.ts';

/** A longer ID token is not sent to the provider, which then asks the user: servers refuse longer addresses. */
const HINT_LENGTH = 4096;

/** Ends the session of a browser here and at the provider (OpenID Connect RP-Initiated Logout 1.0). */
export class SignOut {
  readonly #provider: Provider;
  readonly #sessions: Sessions;
  readonly #cookies: SealedCookies;
  readonly #config: Config;

  constructor(provider: Provider, sessions: Sessions, cookies: SealedCookies, config: Config) {
    this.#provider = provider;
    this.#sessions = sessions;
    this.#cookies = cookies;
    this.#config = config;
  }

  async reply(ctx: RequestContext): Promise<Reply> {
    if (ctx.method !== 'GET' && ctx.method !== 'POST')
      throw new AppError('oidc_failed', {
        status: 405,
        message: 'sign-out is requested with GET or POST',
        headers: ['allow', 'GET, POST'],
      });
    if (isUnwanted(ctx))
      throw new AppError('oidc_failed', {
        status: 403,
        message:
          'sign-out must be requested by its user: open this address, or a link on a page of this site',
      });
    const session = await this.#sessions.read(ctx);
    if (session !== undefined) await this.#sessions.end(session);
    // The session here has ended, whatever the provider answers.
    if (session?.refresh !== undefined) await this.#provider.revoke(session.refresh).catch(() => undefined);
    const { endSession } = await this.#provider.endpoints().catch(() => ({ endSession: undefined }));
    ctx.observer?.policy({ kind: 'oidc', action: 'apply', reason: 'signed out' });
    const cleared = this.#cookies.clear(this.#cookies.namesIn(ctx, ''));
    const target =
      endSession === undefined
        ? this.#config.logout?.redirectURI
        : this.#atProvider(endSession, session?.token);
    return target === undefined
      ? withCookies(textReply(200, 'you are signed out'), cleared)
      : redirect(target, cleared);
  }

  #atProvider(endSession: string, token: string | undefined): string {
    const url = new URL(endSession);
    url.searchParams.set('client_id', this.#config.clientId);
    if (token !== undefined && token.length <= HINT_LENGTH) url.searchParams.set('id_token_hint', token);
    const back = this.#config.logout?.redirectURI;
    if (back !== undefined) url.searchParams.set('post_logout_redirect_uri', back);
    return url.href;
  }
}

/** Whether a page of another site, or a browser that loads pages in advance, has requested it (Fetch Metadata). */
function isUnwanted({ headers }: RequestContext): boolean {
  return headers.get('sec-fetch-site') === 'cross-site' || headers.has('sec-purpose');
}
