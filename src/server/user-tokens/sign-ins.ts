import { randomBytes, randomInt, timingSafeEqual } from 'node:crypto';
import { elementsOf, membersOf, stringIn } from '../../core/foreign.ts';
import type { Limits } from '../../core/limits.ts';
import type { Database } from '../kernel/database.ts';
import { GrantRefused, type IssuedTokens, type OAuthClient } from './oauth-client.ts';
import { clientIn, type ProtectedServer } from './protected-server.ts';
import { hashOf, type Seal } from './seal.ts';
import { LINK, type SignInSettings } from './settings.ts';
import type { SignInLink } from './sign-in-required.ts';
import { type SignInRow, SignInTable } from './sign-in-table.ts';
import type { User } from './user.ts';

/** What `sealed` of a sign-in contains. */
interface Sealed {
  readonly who: string;
  readonly code: string;
  /** Scopes to request beside those of the configuration. */
  readonly scopes: readonly string[];
  /** Since the user has gone to the authorization server. */
  readonly left?: {
    readonly state: string;
    readonly verifier: string;
    readonly browser: string;
    readonly issuer: string;
    readonly client: OAuthClient;
  };
}

/** A link that was opened. */
export interface OpenSignIn {
  readonly row: SignInRow;
  readonly user: User;
  readonly server: ProtectedServer;
  readonly sealed: Sealed;
}

/** What a sign-in has led to. */
export interface SignedIn {
  readonly user: User;
  readonly server: ProtectedServer;
  readonly tokens: IssuedTokens;
  readonly client: OAuthClient;
  readonly scopes: readonly string[];
  readonly resource: string;
  readonly issuer: string;
}

/** A sign-in that cannot go on. `message` is for the user, `detail` for the log. */
export class SignInFailed extends Error {
  readonly detail: string;

  constructor(message: string, detail = message) {
    super(message);
    this.detail = detail;
  }
}

interface Pending {
  readonly link: SignInLink;
  readonly scopes: string;
  readonly expiresAt: number;
  readonly isDone: () => Promise<boolean>;
  /** Who waits for the user, also with earlier links, which are still valid. */
  readonly waiting: readonly { readonly expiresAt: number; readonly resolve: () => void }[];
}

const EXPIRED = 'This link has expired or was used before. Ask your client for another one.';

/**
 * Sign-ins of users at MCP servers, from the link that a client shows to the callback of the authorization server. A sign-in belongs
 * to the user whose request has caused it. Who opens the link has to be that user, and the callback has to come from the browser that
 * has gone to the authorization server: otherwise one person could attach an account to the user of another.
 */
export class SignIns {
  readonly settings: SignInSettings;
  readonly #table: SignInTable;
  readonly #seal: Seal;
  readonly #limits: Limits;
  readonly #servers = new Map<string, Set<ProtectedServer>>();
  readonly #pending = new Map<string, Pending>();
  /** Links that are being made. */
  readonly #beginning = new Map<string, Promise<SignInLink>>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { database: Database; seal: Seal; settings: SignInSettings; limits: Limits }) {
    this.settings = options.settings;
    this.#table = new SignInTable(options.database);
    this.#seal = options.seal;
    this.#limits = options.limits;
  }

  /** Number of links that this process waits for. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Adds a server of the configuration. Returns the function that removes it. */
  add(server: ProtectedServer): () => void {
    const all = this.#servers.get(server.key) ?? new Set();
    this.#servers.set(server.key, all.add(server));
    return () => {
      all.delete(server);
      if (all.size === 0 && this.#servers.get(server.key) === all) this.#servers.delete(server.key);
    };
  }

  server(key: string): ProtectedServer | undefined {
    const [first] = this.#servers.get(key) ?? [];
    return first;
  }

  /** The server whose `id` that is. */
  serverById(id: string): ProtectedServer | undefined {
    for (const [first] of this.#servers.values()) if (first?.id === id) return first;
    return undefined;
  }

  /** The link for a user, which is the same while it is new. `isDone` says whether the user has signed in. */
  begin(
    user: User,
    server: ProtectedServer,
    scopes: readonly string[],
    isDone: () => Promise<boolean>,
  ): Promise<SignInLink> {
    const key = JSON.stringify([user.id, server.key, ...scopes]);
    const beginning =
      this.#beginning.get(key) ??
      this.#begin(user, server, scopes, isDone).finally(() => this.#beginning.delete(key));
    this.#beginning.set(key, beginning);
    return beginning;
  }

  async #begin(
    user: User,
    server: ProtectedServer,
    scopes: readonly string[],
    isDone: () => Promise<boolean>,
  ): Promise<SignInLink> {
    const key = JSON.stringify([user.id, server.key]);
    const now = Date.now();
    const known = this.#pending.get(key);
    const wanted = scopes.join(' ');
    const isNew = known?.scopes === wanted && known.expiresAt - now > this.#limits.signInLifetime / 2;
    // A callback uses it up, also one that has failed.
    if (isNew && (await this.#table.read(known.link.id, now)) !== undefined) return known.link;
    const id = randomBytes(24).toString('base64url');
    const code = newCode();
    const expiresAt = now + this.#limits.signInLifetime;
    const hashed = hashOf(id);
    const value: Sealed = { who: user.who, code, scopes };
    const row = { id: hashed, owner: user.id, server: server.key, expiresAt };
    const sealed = await this.#seal.seal('sign-in', rowKey(row), value);
    await this.#table.add({ ...row, sealed }, now, this.#limits.openSignIns);
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const link = {
      id: hashed,
      url: `${this.settings.url}?${LINK}=${id}`,
      code: this.settings.users === 'code' ? code : undefined,
      done,
    };
    const earlier = (known?.waiting ?? []).filter((each) => each.expiresAt > now);
    const waiting = [...earlier, { expiresAt, resolve }].slice(-this.#limits.openSignIns);
    this.#wait(key, { link, scopes: wanted, expiresAt, isDone, waiting });
    return link;
  }

  /** The sign-in of a link. Throws `SignInFailed` if there is none, or if the user of the browser is another one. */
  async open(id: string, user: User | undefined): Promise<OpenSignIn> {
    const row = await this.#table.read(hashOf(id), Date.now());
    if (row === undefined) throw new SignInFailed(EXPIRED);
    return this.#opened(row, user);
  }

  /**
   * The user wants to sign in. Returns where the browser goes, and a secret for it to keep. Throws `SignInFailed`, also for a wrong
   * code.
   */
  async leave(
    { row, server, sealed }: OpenSignIn,
    code: string,
    isKnown: boolean,
  ): Promise<{ url: string; state: string; browser: string }> {
    if (!isKnown) {
      if (!(await this.#table.mayTry(row.id, this.#limits.signInAttempts)))
        throw new SignInFailed('Too many codes were entered. Ask your client for another link.');
      if (!isSameCode(code, sealed.code))
        throw new SignInFailed('The code is not the one that your client shows.');
    }
    const { server: authorization, resource, scopes: offered } = await server.discovered();
    const scopes = scopesFor(server, sealed, offered, authorization.scopes_supported);
    const client = await server.client(scopes);
    const requests = await server.requests();
    const { url, state, verifier } = await requests.start(client, resource, scopes);
    const browser = randomBytes(24).toString('base64url');
    const left = { state, verifier, browser: hashOf(browser), issuer: authorization.issuer, client };
    const next: Sealed = { ...sealed, scopes, left };
    if (
      !(await this.#table.leave(row.id, hashOf(state), await this.#seal.seal('sign-in', rowKey(row), next)))
    )
      throw new SignInFailed(EXPIRED);
    return { url, state, browser };
  }

  /**
   * The callback of the authorization server, at this path. Its `state` is used up, whatever comes of it. Throws `SignInFailed`.
   */
  async finish(
    path: string,
    query: URLSearchParams,
    browser: string | undefined,
    user: User | undefined,
  ): Promise<SignedIn> {
    const state = query.get('state') ?? '';
    const row = await this.#table.take(hashOf(state));
    if (row === undefined || row.expiresAt < Date.now()) throw new SignInFailed(EXPIRED);
    const opened = await this.#opened(row, user);
    const { left } = opened.sealed;
    // PrefectHQ/fastmcp#3201: the address of the authorization server can be sent to another person.
    if (left === undefined || browser === undefined || hashOf(browser) !== left.browser)
      throw new SignInFailed(
        'The sign-in was not begun in this browser. Open the link of your client again.',
      );
    const { server } = opened;
    if (new URL(server.redirectUri).pathname !== path)
      throw new SignInFailed(
        'You have signed in at another server than the one of the link. Ask your client for another link.',
        'the callback is that of another server: its authorization server may have sent the browser there',
      );
    const { server: authorization, resource } = await server.discovered();
    if (authorization.issuer !== left.issuer)
      throw new SignInFailed(EXPIRED, 'the authorization server is another one than when the sign-in began');
    // Another sign-in may have registered the gateway again, for more scopes.
    const client = server.current(left.client);
    try {
      const requests = await server.requests();
      const tokens = await requests.redeem(client, query, { ...left, resource });
      const { issuer } = left;
      return { user: opened.user, server, tokens, client, scopes: opened.sealed.scopes, resource, issuer };
    } catch (error) {
      if (!(error instanceof GrantRefused)) throw error;
      if (error.code === 'invalid_client') await server.forgetClient(client);
      throw new SignInFailed(
        error.code === 'access_denied'
          ? 'The sign-in was cancelled. Nothing has changed.'
          : 'The server did not accept the sign-in. Ask your client for another link.',
        error.message,
      );
    }
  }

  /** Open links of a user. */
  removeOf(owner: string): Promise<void> {
    return this.#table.removeOf(owner);
  }

  async #opened(row: SignInRow, user: User | undefined): Promise<OpenSignIn> {
    if (user !== undefined && user.id !== row.owner)
      throw new SignInFailed('This link belongs to another user. Ask your own client for a link.');
    if (user === undefined && this.settings.users !== 'code')
      throw new SignInFailed(
        'This page does not know who you are.',
        'no policy of the route with `mcpSignIn` authenticates users: add `oidc` or `basicAuth`, or set `users: code`',
      );
    const sealed = sealedIn(await this.#seal.open('sign-in', rowKey(row), row.sealed));
    const server = this.server(row.server);
    if (sealed === undefined || server === undefined)
      throw new SignInFailed(EXPIRED, 'the server is no longer configured');
    return { row, user: user ?? { id: row.owner, who: sealed.who }, server, sealed };
  }

  /** Without room, nobody is told that the user has signed in: the next request finds out. */
  #wait(key: string, pending: Pending): void {
    this.#pending.delete(key);
    if (this.#pending.size >= this.#limits.pendingSignIns) return;
    this.#pending.set(key, pending);
    this.#timer ??= setInterval(() => void this.#poll(), this.#limits.signInPoll).unref();
  }

  async #poll(): Promise<void> {
    for (const [key, pending] of this.#pending) {
      const isOver = pending.expiresAt < Date.now();
      const isDone = !isOver && (await pending.isDone().catch(() => false));
      if (isDone) for (const { resolve } of pending.waiting) resolve();
      if ((isOver || isDone) && this.#pending.get(key) === pending) this.#pending.delete(key);
    }
    if (this.#pending.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

const rowKey = ({ id, owner, server }: Pick<SignInRow, 'id' | 'owner' | 'server'>): string[] => [
  id,
  owner,
  server,
];

function sealedIn(value: unknown): Sealed | undefined {
  const { who, code, scopes, left } = membersOf(value);
  if (typeof who !== 'string' || typeof code !== 'string') return undefined;
  const known = { who, code, scopes: elementsOf(scopes).flatMap((scope) => stringIn(scope) ?? []) };
  const { state, verifier, browser, issuer, client: registered } = membersOf(left);
  const client = clientIn(registered);
  if (client === undefined) return known;
  if (typeof state !== 'string' || typeof verifier !== 'string') return known;
  if (typeof browser !== 'string' || typeof issuer !== 'string') return known;
  return { ...known, left: { state, verifier, browser, issuer, client } };
}

/** Those of the configuration, else those that the server names; with those that it has asked for since. */
function scopesFor(
  { scopes }: ProtectedServer,
  { scopes: asked }: Sealed,
  offered: readonly string[],
  supported: readonly string[] | undefined,
): string[] {
  const own = scopes.length > 0 ? scopes : asked.length > 0 ? asked : offered;
  const isRenewable = own.length > 0 && supported?.includes('offline_access') === true;
  return [...new Set([...own, ...asked, ...(isRenewable ? ['offline_access'] : [])])];
}

/** No vowels, which could form words, and no characters that look alike. 20^8 codes, of which few can be tried. */
const ALPHABET = 'BCDFGHJKLMNPQRSTVWXZ';

function newCode(): string {
  const letters = Array.from({ length: 8 }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  return `${letters.slice(0, 4)}-${letters.slice(4)}`;
}

function isSameCode(given: string, expected: string): boolean {
  const plain = (text: string): Buffer => Buffer.from(hashOf(text.toUpperCase().replaceAll(/[\s-]/g, '')));
  return timingSafeEqual(plain(given), plain(expected));
}
