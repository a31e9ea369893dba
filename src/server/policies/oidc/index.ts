import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { emptyReply } from '../../kernel/error-response.ts';
import { definePolicy } from '../../kernel/policy.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import { processSecret } from '../../kernel/shared-slots.ts';
import { DocumentClient } from '../../transport/document-client.ts';
import { TokenError } from '../jwt/jwt-precheck.ts';
import { KeySet, KeySetUnavailableError } from '../jwt/key-set.ts';
import { httpUrl, jwksSchema, keySource, reportKeySetProblems, watchedKeySet } from '../jwt/key-source.ts';
import { acceptToken } from '../jwt/outcome.ts';
import { LEEWAY, TokenValidator } from '../jwt/token-validator.ts';
import { SealedCookies } from './cookies.ts';
import { type Login, Provider, SignInError } from './provider.ts';

/** How long a sign-in at the provider may take, and a session lasts at most (upstream). In seconds. */
const LOGIN_LIFETIME = 5 * 60;
const SESSION_LIFETIME = 60 * 60;
/** Sign-ins that a browser may have begun and not ended; then its cookies for them are removed. */
const OPEN_LOGINS = 5;
/** Longer paths are not returned to: the cookie would be too large. */
const RETURN_LENGTH = 2048;

const schema = z
  .strictObject({
    issuer: httpUrl.describe('Issuer: must equal that of the metadata and the `iss` claim of ID tokens.'),
    discovery: jwksSchema
      .optional()
      .describe(
        'Metadata of the provider: inline JSON, `url` or `file`. Default: `/.well-known/openid-configuration` of the issuer.',
      ),
    authorizationEndpoint: httpUrl
      .nullish()
      .describe('Where browsers sign in. With `tokenEndpoint` and `jwks`, no metadata is read.'),
    tokenEndpoint: httpUrl.nullish().describe('Where the gateway redeems codes.'),
    tokenEndpointAuth: z
      .enum(['clientSecretBasic', 'clientSecretPost'])
      .nullish()
      .describe('How the gateway authenticates at `tokenEndpoint`; `clientSecretBasic` by default.'),
    jwks: jwksSchema.optional().describe('Keys of ID tokens: inline JSON, `url` or `file`.'),
    clientId: z.string().min(1).describe('Id of the client at the provider.'),
    clientSecret: z.string().min(1).meta({ secret: true }).describe('Secret of the client.'),
    redirectURI: httpUrl
      .refine((text) => isCallback(text), {
        error: 'expected a URL with a path, and without user, query and fragment',
      })
      .describe(
        'URL of the gateway that browsers return to, such as `https://example.com/oauth/callback`. Its path belongs to the policy.',
      ),
    scopes: z.array(z.string().min(1)).default([]).describe('Scopes to request besides `openid`.'),
  })
  .superRefine((value, context) => {
    const { authorizationEndpoint, tokenEndpoint, jwks, discovery, tokenEndpointAuth } = value;
    const explicit = [authorizationEndpoint, tokenEndpoint, jwks].filter((part) => part != null).length;
    const report = (message: string, path: string[] = []): void =>
      context.addIssue({ code: 'custom', path, message, params: { code: 'AGW0105' } });
    if (explicit !== 0 && explicit !== 3)
      report('expected all of `authorizationEndpoint`, `tokenEndpoint`, `jwks`, or none');
    else if (explicit === 3 && discovery !== undefined)
      report('no metadata is read, because the endpoints are configured', ['discovery']);
    else if (explicit === 0 && tokenEndpointAuth != null)
      report('the metadata decides, unless `tokenEndpoint` is configured', ['tokenEndpointAuth']);
  })
  .describe('Signs browsers in at an OpenID provider, with a session in encrypted cookies.');

type Config = z.output<typeof schema>;

function isCallback(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { pathname, search, hash, username, password } = new URL(text);
  return pathname !== '/' && !/%2f|%5c/i.test(pathname) && search + hash + username + password === '';
}

/** Sign-in of browsers (OpenID Connect, authorization code flow with PKCE). The session is in the browser only. */
export const oidc = definePolicy({
  key: 'oidc',
  restrictsClients: true,
  schema,
  trace: { kind: 'oidc', stage: 'oidc' },
  compile(config, context) {
    const { issuer, clientId, redirectURI, jwks } = config;
    const client = new DocumentClient(context.settings.callMeter('Policy', 'Oidc'));
    if (jwks !== undefined) reportKeySetProblems(jwks, context.at('jwks'));
    if (config.discovery !== undefined) reportKeySetProblems(config.discovery, context.at('discovery'));
    const provider = openProvider(config, client, context);
    const keys = new KeySet(
      jwks === undefined
        ? async () => client.fetch((await provider.endpoints()).keys ?? '', LIMITS.keySetBytes)
        : keySource(jwks, context.folder, client),
      context.log,
    );
    const validator = new TokenValidator(keys, {
      issuer,
      audiences: [clientId],
      required: ['exp'],
      accessTokenType: undefined,
    });
    const { pathname, protocol } = new URL(redirectURI);
    const id = createHash('sha256')
      .update(JSON.stringify([issuer, clientId, redirectURI]))
      .digest('hex')
      .slice(0, 16);
    const cookies = new SealedCookies(secretOf(context), id, protocol === 'https:');
    const at = context.path.join('.');
    context.inspection.bounds.push({
      name: 'oidc.tokens',
      at,
      max: LIMITS.validTokens,
      used: () => validator.remembered,
    });
    const signIn = new SignIn(provider, validator, cookies);
    return {
      paths: [pathname],
      async request(ctx) {
        const query = new URLSearchParams(ctx.query);
        const isAnswer = query.has('state') && (query.has('code') || query.has('error'));
        if (ctx.method === 'GET' && ctx.path === pathname && isAnswer) return signIn.end(ctx, query);
        if (isPreflight(ctx)) return undefined;
        return (await signIn.isSignedIn(ctx)) ? undefined : signIn.begin(ctx);
      },
      reloads: watchedKeySet(jwks, context.folder, () => keys.reread()),
      close: () => client.close(),
    };
  },
});

function openProvider(config: Config, client: DocumentClient, context: CompileContext): Provider {
  const { issuer, authorizationEndpoint, tokenEndpoint, tokenEndpointAuth, discovery } = config;
  const document = discovery ?? { url: `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration` };
  return new Provider({
    issuer,
    clientId: config.clientId,
    clientSecret: config.clientSecret,
    redirectUri: config.redirectURI,
    scope: [...new Set(['openid', ...config.scopes])].join(' '),
    endpoints:
      authorizationEndpoint == null || tokenEndpoint == null
        ? undefined
        : {
            authorization: authorizationEndpoint,
            token: tokenEndpoint,
            keys: undefined,
            auth: tokenEndpointAuth ?? 'clientSecretBasic',
            sendsIssuer: false,
          },
    metadata: keySource(document, context.folder, client),
    client,
    log: context.log,
  });
}

/** The variable of upstream, else the key of session ids, which all workers share. */
function secretOf(context: CompileContext): Buffer {
  const configured = context.env['OIDC_COOKIE_SECRET'];
  if (configured !== undefined && configured.length >= 32) return Buffer.from(configured);
  if (configured !== undefined)
    context.report({
      code: 'AGW0104',
      atKey: true,
      message: 'the environment variable OIDC_COOKIE_SECRET has fewer than 32 characters',
      help: 'set it to random text, such as that of `openssl rand -hex 32`',
    });
  const secret = processSecret.get(context.settings);
  if (configured === undefined && secret?.isConfigured !== true)
    context.report({
      code: 'AGW0305',
      severity: 'warning',
      atKey: true,
      message:
        'sessions of browsers end when agctl restarts, because the key of their cookies is generated at each start',
      help: 'set the environment variable OIDC_COOKIE_SECRET to random text, such as that of `openssl rand -hex 32`',
    });
  return secret?.value() ?? randomBytes(32);
}

/** The steps of a sign-in. */
class SignIn {
  readonly #provider: Provider;
  readonly #validator: TokenValidator;
  readonly #cookies: SealedCookies;

  constructor(provider: Provider, validator: TokenValidator, cookies: SealedCookies) {
    this.#provider = provider;
    this.#validator = validator;
    this.#cookies = cookies;
  }

  /** Whether the request has a session. Its cookies are removed, and its claims set. */
  async isSignedIn(ctx: RequestContext): Promise<boolean> {
    const session = await this.#cookies.read(ctx, this.#cookies.name('s'), 'session');
    const { token, expires } = session ?? {};
    if (typeof token !== 'string' || typeof expires !== 'number' || expires <= Date.now() / 1000)
      return false;
    try {
      const claims = await this.#validator.validate(token);
      this.#cookies.remove(ctx);
      ctx.observer?.hide(token);
      acceptToken(ctx, { key: 'oidc' }, token, claims);
      return true;
    } catch (error) {
      if (error instanceof TokenError) return false;
      throw keysUnavailable(error);
    }
  }

  /** Sends a browser to the provider. A script would only see a page of another site: it gets status 401. */
  async begin(ctx: RequestContext): Promise<Reply> {
    if (!isNavigation(ctx)) {
      ctx.observer?.policy({ kind: 'oidc', action: 'deny', reason: 'no session' });
      throw new AppError('oidc_failed', {
        status: 401,
        message: 'sign-in is required: open this address in a browser',
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
    for (const secret of ['code', 'state']) ctx.observer?.hide(query.get(secret) ?? undefined);
    const name = this.#loginCookie(query.get('state') ?? '');
    const login = await this.#cookies.read(ctx, name, 'login');
    if (login === undefined || Number(login['expires']) <= Date.now() / 1000)
      throw refusal('the sign-in was not begun in this browser, or took too long');
    try {
      const token = await this.#provider.redeem(query, login as unknown as Login);
      const claims = await this.#validator.validate(token);
      const now = Math.floor(Date.now() / 1000);
      const lifetime = Math.max(1, Math.min(SESSION_LIFETIME, Number(claims['exp']) + LEEWAY - now));
      const session = { token, expires: now + lifetime };
      const added = await this.#cookies.set(this.#cookies.name('s'), 'session', session, lifetime);
      if (added === undefined) throw refusal('the ID token is too large for cookies');
      ctx.observer?.policy({
        kind: 'oidc',
        action: 'apply',
        reason: 'signed in',
        snapshot: { sub: claims['sub'] },
      });
      return redirect(String(login['to']), [...added, ...this.#cookies.clear([name])]);
    } catch (error) {
      if (error instanceof SignInError || error instanceof TokenError)
        throw refusal(error.message, [name], this.#cookies);
      throw keysUnavailable(error);
    }
  }

  /** Several sign-ins of one browser have a cookie each. */
  #loginCookie(state: string): string {
    return this.#cookies.name(`l${createHash('sha256').update(state).digest('hex').slice(0, 16)}`);
  }
}

/** A failed callback (400). The reason may come from the provider, so only the log has it. */
function refusal(detail: string, cleared: string[] = [], cookies?: SealedCookies): AppError {
  const headers = (cookies?.clear(cleared) ?? []).flatMap((cookie) => ['set-cookie', cookie]);
  return new AppError('oidc_failed', { detail, headers });
}

function keysUnavailable(error: unknown): unknown {
  return error instanceof KeySetUnavailableError
    ? new AppError('keys_unavailable', { detail: error.message })
    : error;
}

function redirect(location: string, cookies: readonly string[]): Reply {
  const reply = emptyReply(302);
  reply.headers.append('location', location);
  // RFC 6749 §10.3: what contains a credential is not cached.
  reply.headers.append('cache-control', 'no-store');
  for (const cookie of cookies) reply.headers.append('set-cookie', cookie);
  return reply;
}

/** Path and query to return to. Only one slash at the start: `//host` and `/\host` are other sites to browsers. */
function returnPath({ path, query }: RequestContext): string {
  const target = path + query;
  return target.length <= RETURN_LENGTH && /^\/(?![/\\])[^\\]*$/.test(target) ? target : '/';
}

/** Whether a browser shows the response to its user (Fetch Metadata), as far as the request says so. */
function isNavigation({ method, headers }: RequestContext): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (headers.get('x-requested-with')?.toLowerCase() === 'xmlhttprequest') return false;
  const mode = headers.get('sec-fetch-mode');
  return mode === undefined || mode === 'navigate';
}

function isPreflight({ method, headers }: RequestContext): boolean {
  return method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method');
}
