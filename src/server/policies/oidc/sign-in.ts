import { createHash } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { TokenError } from '../jwt/jwt-precheck.ts';
import { redirect, type SealedCookies } from './cookies.ts';
import { type Login, type Provider, SignInError } from './provider.ts';
import type { Sessions } from './sessions.ts';

/** How long a sign-in at the provider may take, in seconds (upstream). */
const LOGIN_LIFETIME = 5 * 60;
/** Sign-ins that a browser may have begun and not ended; then its cookies for them are removed. */
const OPEN_LOGINS = 5;
/** Longer paths are not returned to: the cookie would be too large. */
const RETURN_LENGTH = 2048;

/** The steps of a sign-in. */
export class SignIn {
  readonly #provider: Provider;
  readonly #sessions: Sessions;
  readonly #cookies: SealedCookies;

  constructor(provider: Provider, sessions: Sessions, cookies: SealedCookies) {
    this.#provider = provider;
    this.#sessions = sessions;
    this.#cookies = cookies;
  }

  /** Sends a browser to the provider. A script would only see a page of another site: it gets status 401. */
  async begin(ctx: RequestContext): Promise<Reply> {
    if (!isNavigation(ctx)) {
      ctx.observer?.policy({ kind: 'oidc', action: 'deny', reason: 'no session' });
      throw new AppError('oidc_failed', {
        status: 401,
        message: 'sign-in is required, or has ended: open a page of this address in a browser',
        headers: ['www-authenticate', 'Cookie'],
      });
    }
    const { url, login } = await this.#provider.start();
    const open = this.#cookies.namesIn(ctx, 'l');
    const value = { ...login, to: returnPath(ctx), expires: Date.now() / 1000 + LOGIN_LIFETIME };
    const added = await this.#cookies.set(this.#loginCookie(login.state), 'login', value, LOGIN_LIFETIME);
    ctx.observer?.policy({ kind: 'oidc', action: 'deny', reason: 'no session: sign-in begins' });
    return redirect(url, [
      ...(open.length >= OPEN_LOGINS ? this.#cookies.clear(open) : []),
      ...(added ?? []),
    ]);
  }

  /** Ends a sign-in: the callback of the provider. */
  async end(ctx: RequestContext, query: URLSearchParams): Promise<Reply> {
    for (const secret of ['code', 'state'])
      for (const value of query.getAll(secret)) ctx.observer?.hide(value);
    // RFC 6749 §3.1: parameters must not be repeated. Two readers could take different ones.
    const repeated = [...new Set(query.keys())].find((key) => query.getAll(key).length > 1);
    if (repeated !== undefined) throw refusal('the callback has a parameter twice');
    const name = this.#loginCookie(query.get('state') ?? '');
    const login = loginIn(await this.#cookies.read(ctx, name, 'login'));
    if (login === undefined || login.expires <= Date.now() / 1000)
      throw refusal(
        'the sign-in was not begun in this browser, or at another host name than that of `redirectURI`, or took too long',
      );
    try {
      const tokens = await this.#provider.redeem(query, login);
      for (const token of [tokens.idToken, tokens.refreshToken]) ctx.observer?.hide(token);
      const begun = await this.#sessions.begin(tokens);
      if (begun === undefined) throw refusal('the ID token is too large for cookies');
      const { cookies, claims } = begun;
      ctx.observer?.policy({
        kind: 'oidc',
        action: 'apply',
        reason: 'signed in',
        snapshot: { sub: claims['sub'] },
      });
      return redirect(login.to, [...cookies, ...this.#cookies.clear([name])]);
    } catch (error) {
      if (error instanceof SignInError || error instanceof TokenError)
        throw refusal(error.message, [name], this.#cookies);
      throw error;
    }
  }

  /** Several sign-ins of one browser have a cookie each. */
  #loginCookie(state: string): string {
    return this.#cookies.name(`l${createHash('sha256').update(state).digest('hex').slice(0, 16)}`);
  }
}

/** What `begin` has sealed; undefined for anything else, such as what another build has sealed with the same secret. */
function loginIn(value: unknown): (Login & { readonly to: string; readonly expires: number }) | undefined {
  const { state, nonce, verifier, to, expires } = membersOf(value);
  if (typeof state !== 'string' || typeof nonce !== 'string' || typeof verifier !== 'string')
    return undefined;
  if (typeof to !== 'string' || typeof expires !== 'number') return undefined;
  return { state, nonce, verifier, to, expires };
}

/** A failed callback (400). The reason may come from the provider, so only the log has it. */
function refusal(detail: string, cleared: string[] = [], cookies?: SealedCookies): AppError {
  const headers = (cookies?.clear(cleared) ?? []).flatMap((cookie) => ['set-cookie', cookie]);
  return new AppError('oidc_failed', { detail, headers });
}

/**
 * Path and query to return to. Only one slash at the start: `//host` and `/\host` are other sites to browsers. Paths have no
 * backslash any more (`canonicalPath`), so that part is a second lock.
 */
function returnPath({ path, query }: RequestContext): string {
  const target = path + query;
  return target.length <= RETURN_LENGTH && /^\/(?![/\\])[^\\]*$/.test(target) ? target : '/';
}

/** Whether a browser shows the response to its user: by Fetch Metadata, or else by what it accepts, which scripts and `curl` leave open. */
function isNavigation({ method, headers }: RequestContext): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (headers.get('x-requested-with')?.toLowerCase() === 'xmlhttprequest') return false;
  const mode = headers.get('sec-fetch-mode');
  if (mode !== undefined) return mode === 'navigate';
  return /\btext\/html\b/i.test(headers.get('accept') ?? '');
}
