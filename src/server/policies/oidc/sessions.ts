import { randomBytes } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import { membersOf, parseJson } from '../../../core/foreign.ts';
import type { Admitter } from '../../kernel/admission.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import type { Remote } from '../../kernel/shared-state.ts';
import { Slot } from '../../kernel/slot.ts';
import { type Claims, TokenError } from '../jwt/jwt-precheck.ts';
import { KeySetUnavailableError } from '../jwt/key-set.ts';
import { acceptToken } from '../jwt/outcome.ts';
import { LEEWAY, type TokenValidator } from '../jwt/token-validator.ts';
import { type SealedCookies, withCookies } from './cookies.ts';
import type { EndedSessions } from './ended-sessions.ts';
import type { Tokens } from './provider.ts';
import type { Renewal } from './renewals.ts';

/** How long a session lasts at most, in seconds: without a refresh token (upstream), and with one since the sign-in. */
const SESSION_LIFETIME = 60 * 60;
const RENEWED_LIFETIME = 12 * 60 * 60;
/** A session is renewed so long before its ID token expires, in seconds: backends may get the token. */
const RENEW_BEFORE = 30;

/** Operations on renewals, which one process performs for all workers. */
export type RenewalOperations = { readonly renew: (refreshToken: string) => Promise<Renewal> };

interface Session {
  /** Names it among those that have ended, also after it was renewed. */
  readonly id: string;
  readonly token: string;
  readonly refresh?: string;
  /** Unix time in seconds. */
  readonly expires: number;
}

/** The session of a request, and its new cookies until they are in the response, if it was renewed. */
interface RequestSession {
  readonly session: Session;
  cookies: readonly string[] | undefined;
}

/**
 * Sessions by the names of their cookies, which are no longer in the request: a policy of the same client at another level
 * continues with them, and one of another client has its own.
 */
const requestSessions = new Slot<Map<string, RequestSession>>();

/**
 * Sessions of browsers. The gateway keeps none: the ID and refresh tokens are in encrypted cookies. It knows those that their users have
 * ended.
 */
export class Sessions {
  readonly #cookies: SealedCookies;
  readonly #ended: EndedSessions;
  readonly #admitter: Admitter;
  readonly #validator: TokenValidator;
  readonly #renewals: Remote<RenewalOperations>;

  constructor(
    cookies: SealedCookies,
    validator: TokenValidator,
    renewals: Remote<RenewalOperations>,
    ended: EndedSessions,
    admitter: Admitter,
  ) {
    this.#ended = ended;
    this.#admitter = admitter;
    this.#cookies = cookies;
    this.#validator = validator;
    this.#renewals = renewals;
  }

  /** Whether the request has a session, which is renewed if necessary. Its cookies are removed, and its claims set. */
  async resume(ctx: RequestContext): Promise<boolean> {
    let session = await this.read(ctx);
    if (session === undefined || session.expires <= unixTime()) return false;
    if ((await this.#ended.has(session.id)) === true) return false;
    let cookies = requestSessions.get(ctx)?.get(this.#name)?.cookies;
    let claims = await this.#validClaims(session.token);
    if (session.refresh !== undefined && needsRenewal(claims)) {
      const renewed = await this.#renew(ctx, { ...session, refresh: session.refresh }, claims);
      if (renewed !== undefined) ({ session, cookies, claims } = renewed);
    }
    if (claims === undefined) return false;
    requestSessions.ensure(ctx, () => new Map()).set(this.#name, { session, cookies });
    // A session that can be renewed outlasts its token.
    const { standing } = this.#admitter;
    acceptToken(ctx, { key: 'oidc', standing }, session.token, claims, session.expires * 1000);
    this.#admitter.admit(ctx, session.id, true);
    return true;
  }

  /** Ends a session everywhere: its streams, and what copies of its cookies may do. */
  async end({ id, expires }: Session): Promise<void> {
    await this.#ended.end(id, expires);
  }

  /** `Set-Cookie` fields of a new session. Rejects with `TokenError`; undefined if the tokens are too large for cookies. */
  async begin(tokens: Tokens): Promise<{ cookies: string[]; claims: Claims } | undefined> {
    const { idToken: token, refreshToken: refresh } = tokens;
    const claims = await this.#claimsOf(token);
    const now = unixTime();
    const id = randomBytes(16).toString('base64url');
    const short = { id, token, expires: now + lifetimeWithoutRenewal(claims, now) };
    const renewable = refresh !== undefined && { id, token, refresh, expires: now + RENEWED_LIFETIME };
    const cookies = (renewable && (await this.#seal(renewable, now))) || (await this.#seal(short, now));
    return cookies && { cookies, claims };
  }

  /** The session of a request, also one that has expired. */
  async read(ctx: RequestContext): Promise<Session | undefined> {
    const known = requestSessions.get(ctx)?.get(this.#name);
    if (known !== undefined) return known.session;
    const session = await this.#cookies.read(ctx, this.#name, 'session');
    // An earlier or later build may have sealed something else with the same secret.
    const { id, token, expires, refresh } = membersOf(session);
    if (typeof id !== 'string' || typeof token !== 'string' || typeof expires !== 'number') return undefined;
    ctx.observer?.hide(token);
    if (typeof refresh !== 'string') return { id, token, expires };
    ctx.observer?.hide(refresh);
    return { id, token, expires, refresh };
  }

  /** Adds the cookies of a renewed session to the response, which shared caches then may not store. */
  respond(ctx: RequestContext, reply: Reply): void {
    const known = requestSessions.get(ctx)?.get(this.#name);
    if (known?.cookies === undefined) return;
    withCookies(reply, known.cookies);
    known.cookies = undefined;
  }

  /**
   * The renewed session. Without one, the current claims are used as long as they are valid: undefined. Rejects if the
   * provider cannot be asked, and the current token is no longer valid.
   */
  async #renew(
    ctx: RequestContext,
    session: Session & { readonly refresh: string },
    current: Claims | undefined,
  ): Promise<(RequestSession & { readonly claims: Claims }) | undefined> {
    // Undefined: a reload has removed the component that does this.
    const renewal: Renewal | undefined = await this.#renewals.renew(session.refresh);
    let problem = 'the configuration has changed';
    if (renewal !== undefined && 'tokens' in renewal) {
      const { idToken: token, refreshToken: refresh = session.refresh } = renewal.tokens;
      const claims = await this.#validClaims(token);
      const next = { id: session.id, token, refresh, expires: session.expires };
      const cookies = await this.#seal(next, unixTime());
      if (claims !== undefined && cookies !== undefined && isSameUser(claims, session.token)) {
        ctx.observer?.policy({ kind: 'oidc', action: 'apply', reason: 'the session was renewed' });
        return { session: next, cookies, claims };
      }
      problem = 'the provider has sent an ID token that is not valid, is of another user, or is too large';
    } else if (renewal !== undefined) problem = renewal.problem;
    ctx.observer?.policy({ kind: 'oidc', action: 'skip', reason: `not renewed: ${problem}` });
    const isRefused = renewal === undefined || 'tokens' in renewal || renewal.isRefused;
    if (current === undefined && !isRefused) throw new AppError('provider_failed', { detail: problem });
    return undefined;
  }

  /** Claims of a token; undefined if it is not valid. */
  async #validClaims(token: string): Promise<Claims | undefined> {
    try {
      return await this.#claimsOf(token);
    } catch (error) {
      if (error instanceof TokenError) return undefined;
      throw error;
    }
  }

  /** Rejects with `TokenError`, or with `keys_unavailable`. */
  async #claimsOf(token: string): Promise<Claims> {
    try {
      return await this.#validator.validate(token);
    } catch (error) {
      if (!(error instanceof KeySetUnavailableError)) throw error;
      throw new AppError('keys_unavailable', { detail: error.message });
    }
  }

  #seal(session: Session, now: number): Promise<string[] | undefined> {
    return this.#cookies.set(this.#name, 'session', session, session.expires - now);
  }

  get #name(): string {
    return this.#cookies.name('s');
  }
}

function needsRenewal(claims: Claims | undefined): boolean {
  if (claims === undefined) return true;
  const { exp, iat } = claims;
  if (typeof exp !== 'number') return true;
  const half = typeof iat === 'number' ? (exp - iat) / 2 : RENEW_BEFORE;
  return exp - Math.min(RENEW_BEFORE, half) <= unixTime();
}

function lifetimeWithoutRenewal(claims: Claims, now: number): number {
  // Whole seconds, because `Max-Age` has no fraction; `exp` may have one.
  return Math.max(1, Math.floor(Math.min(SESSION_LIFETIME, Number(claims['exp']) + LEEWAY - now)));
}

/** OpenID Connect Core §12.2. The token of the session comes from an encrypted cookie, so it was verified once. */
function isSameUser({ sub }: Claims, token: string): boolean {
  const payload = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  return membersOf(parseJson(payload))['sub'] === sub;
}

const unixTime = (): number => Math.floor(Date.now() / 1000);
