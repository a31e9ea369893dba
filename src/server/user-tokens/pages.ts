import { AppError, detailOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { textReply } from '../kernel/request/error-response.ts';
import { ownCookies } from '../kernel/request/own-cookies.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { credentialParameters } from '../kernel/request/shared-slots.ts';
import { hashOf } from './seal.ts';
import { CALLBACK, CLIENT_DOCUMENTS, LINK } from './settings.ts';
import { type OpenSignIn, SignInFailed, type SignIns } from './sign-ins.ts';
import { type User, userOf } from './user.ts';
import type { UserTokens } from './user-tokens.ts';

/** The pages of a sign-in at an MCP server, which browsers open. */
export class SignInPages {
  readonly path: string;
  readonly #signIns: SignIns;
  readonly #tokens: UserTokens;
  readonly #log: Log;
  readonly #origin: string;

  constructor(signIns: SignIns, tokens: UserTokens, log: Log) {
    const { pathname, origin } = new URL(signIns.settings.url);
    this.path = pathname;
    this.#signIns = signIns;
    this.#tokens = tokens;
    this.#log = log;
    this.#origin = origin;
  }

  get pathsBelow(): string[] {
    return [this.path + CALLBACK, this.path + CLIENT_DOCUMENTS];
  }

  /**
   * The description of the gateway as a client of one server (OAuth Client ID Metadata Document), which is public; undefined for other
   * requests.
   */
  clientDocument({ path, method }: RequestContext): Reply | undefined {
    const before = `${this.path}${CLIENT_DOCUMENTS}/`;
    if (method !== 'GET' || !path.startsWith(before) || !path.endsWith('.json')) return undefined;
    const server = this.#signIns.serverById(path.slice(before.length, -'.json'.length));
    if (server?.clientDocument === undefined) return undefined;
    const document = {
      client_id: server.clientDocument,
      client_name: 'agctl',
      redirect_uris: [server.redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    };
    return textReply(200, JSON.stringify(document), 'application/json');
  }

  /** Undefined for other paths. */
  async answer(ctx: RequestContext): Promise<Reply> {
    const query = new URLSearchParams(ctx.query);
    credentialParameters.set(ctx, SECRET_PARAMETERS);
    for (const secret of SECRET_PARAMETERS)
      for (const value of query.getAll(secret)) ctx.observer?.hide(value);
    try {
      if (this.#isCallback(ctx) && ctx.method === 'GET') return await this.#end(ctx, query);
      if (ctx.path === this.path && ctx.method === 'GET')
        return formPage(await this.#signIns.open(onlyIn(query, LINK), userOf(ctx)), userOf(ctx));
      if (ctx.path === this.path && ctx.method === 'POST') return await this.#begin(ctx, query);
    } catch (error) {
      if (!(error instanceof SignInFailed)) return this.#failed(error);
      ctx.error = error.detail;
      this.#log.debug('mcp::sign-in', 'a sign-in of a user was refused', { problem: error.detail });
      return page(400, 'The sign-in was not completed', [error.message]);
    }
    throw new AppError('oidc_failed', {
      status: ctx.path === this.path ? 405 : 404,
      message: 'open the link that your client shows',
    });
  }

  /** The user has confirmed, in a form of this page. */
  async #begin(ctx: RequestContext, query: URLSearchParams): Promise<Reply> {
    if (!isOwnForm(ctx, this.#origin))
      throw new SignInFailed('Open the link of your client, and confirm there.');
    const user = userOf(ctx);
    const opened = await this.#signIns.open(onlyIn(query, LINK), user);
    const form = new URLSearchParams((await ctx.body.read(FORM_BYTES)).toString());
    const { url, state, browser } = await this.#signIns.leave(
      opened,
      form.get('code') ?? '',
      user !== undefined,
    );
    ctx.observer?.hide(state);
    ctx.observer?.hide(browser);
    const reply = page(303, 'Go on', ['Your browser goes on to the server.']);
    reply.headers.set('location', url);
    reply.headers.append(
      'set-cookie',
      `${this.#cookie(state)}=${browser}; Max-Age=${COOKIE_SECONDS}; ${this.#attributes}`,
    );
    return reply;
  }

  async #end(ctx: RequestContext, query: URLSearchParams): Promise<Reply> {
    // RFC 6749 §3.1: parameters must not be repeated. Two readers could take different ones.
    if ([...new Set(query.keys())].some((key) => query.getAll(key).length > 1))
      throw new SignInFailed(
        'The server has sent an address that is not valid.',
        'the callback has a parameter twice',
      );
    const name = this.#cookie(query.get('state') ?? '');
    const browser = cookieIn(ctx, name);
    ctx.observer?.hide(browser);
    const user = userOf(ctx);
    const signedIn = await this.#signIns.finish(ctx.path, query, browser, user);
    const { server, tokens } = signedIn;
    for (const secret of [tokens.access, tokens.refresh]) ctx.observer?.hide(secret);
    await this.#tokens.store(signedIn);
    this.#log.info('mcp::sign-in', 'a user has signed in at a server', {
      server: server.key,
      user: signedIn.user.who,
    });
    const reply = page(200, 'You are signed in', [
      `The gateway now acts as you at ${server.host}, for ${signedIn.user.who}.`,
      'You can close this page and go on in your client.',
    ]);
    reply.headers.append('set-cookie', `${name}=; Max-Age=0; ${this.#attributes}`);
    return reply;
  }

  #isCallback({ path }: RequestContext): boolean {
    return path.startsWith(`${this.path}${CALLBACK}/`);
  }

  #failed(error: unknown): Reply {
    if (error instanceof AppError && error.status < 500) throw error;
    this.#log.warn('mcp::sign-in', 'a sign-in of a user failed', { problem: detailOf(error) });
    return page(502, 'The sign-in was not completed', [
      'The server at which you sign in could not be used. The log of the gateway has the reason. Try again later.',
    ]);
  }

  get #isHttps(): boolean {
    return this.#origin.startsWith('https:');
  }

  get #attributes(): string {
    return `Path=/; HttpOnly; SameSite=Lax${this.#isHttps ? '; Secure' : ''}`;
  }

  /** Several sign-ins of one browser have a cookie each. Backends never get it (`isOwnCookie`). */
  #cookie(state: string): string {
    return `${this.#isHttps ? '__Host-' : ''}agctl_sign_in_${hashOf(state).slice(0, 16)}`;
  }
}

const SECRET_PARAMETERS = new Set([LINK, 'code', 'state']);
const FORM_BYTES = 4096;
const COOKIE_SECONDS = 600;

/** The only value of a parameter; empty if there are none or several. */
function onlyIn(query: URLSearchParams, name: string): string {
  const values = query.getAll(name);
  return values.length === 1 ? (values[0] ?? '') : '';
}

function cookieIn(ctx: RequestContext, name: string): string | undefined {
  const found = ownCookies.get(ctx)?.filter((pair) => pair.startsWith(`${name}=`)) ?? [];
  return found.length === 1 ? found[0]?.slice(name.length + 1).trim() : undefined;
}

/** Whether a form of this page has sent it (Fetch Metadata; older browsers send `Origin`). */
function isOwnForm({ headers }: RequestContext, origin: string): boolean {
  const site = headers.get('sec-fetch-site');
  return site === undefined ? headers.get('origin') === origin : site === 'same-origin';
}

function formPage({ server, user, row }: OpenSignIn, known: User | undefined): Reply {
  const field =
    known === undefined
      ? '<p><label>Code that your client shows beside the link: <input name="code" autocomplete="off" autofocus required maxlength="20"></label></p>'
      : '';
  const minutes = Math.max(1, Math.round((row.expiresAt - Date.now()) / 60_000));
  return page(
    200,
    `Sign in at ${server.host}`,
    [
      `A client of ${user.who} wants to use ${server.host} in your name. You will sign in there, and decide what it may do.`,
      `Go on only if you have just asked for it in your own client. If somebody has sent you this link${known === undefined ? ' or a code' : ''}, close this page: that person's client would act with your account.`,
    ],
    `<form method="post">${field}<p><button>Sign in at ${escaped(server.host)}</button></p></form><p><small>The link expires in ${minutes} min.</small></p>`,
  );
}

function page(status: number, title: string, paragraphs: readonly string[], form = ''): Reply {
  const text = paragraphs.map((paragraph) => `<p>${escaped(paragraph)}</p>`).join('');
  const reply = textReply(
    status,
    `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title><style>body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}button,input{font:inherit;padding:.3rem .6rem}</style><h1>${escaped(title)}</h1>${text}${form}</html>`,
    'text/html; charset=utf-8',
  );
  const headers = {
    'cache-control': 'no-store',
    // Without `form-action`: browsers apply it to the redirect to the authorization server too.
    'content-security-policy':
      "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    // Not `no-referrer`, with which browsers send `Origin: null` with a form.
    'referrer-policy': 'same-origin',
  };
  for (const [name, value] of Object.entries(headers)) reply.headers.set(name, value);
  return reply;
}

const escaped = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => `&#${character.codePointAt(0)};`);
