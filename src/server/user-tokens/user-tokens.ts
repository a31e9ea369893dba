import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { AppError, detailOf } from '../../core/errors.ts';
import { membersOf, numberIn, stringIn } from '../../core/foreign.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Database } from '../kernel/database.ts';
import type { Challenge } from './discovery.ts';
import { GrantRefused, type IssuedTokens, type OAuthClient, type OAuthRequests } from './oauth-client.ts';
import { clientIn, type ProtectedServer } from './protected-server.ts';
import type { Seal } from './seal.ts';
import { SignInRequired } from './sign-in-required.ts';
import type { SignedIn, SignIns } from './sign-ins.ts';
import { type TokenRow, TokenTable } from './token-table.ts';
import type { User } from './user.ts';

/** What `sealed` of a token contains. */
interface Sealed {
  readonly access: string;
  readonly refresh: string | undefined;
  /** The client that it was issued to. */
  readonly client: OAuthClient;
  readonly resource: string;
  /** The authorization server that has issued it, which alone gets it. */
  readonly issuer: string;
  /** When it was issued, as a Unix time in ms. */
  readonly at: number;
}

interface Known extends TokenRow {
  readonly secret: Sealed;
}

/** A token and the generation of its row. */
export interface UserToken {
  readonly value: string;
  readonly generation: string;
}

const SCOPE = 'mcp::sign-in';

/**
 * The tokens of users at MCP servers. All of their state is in the database: any replica renews a token, and only one at a time, as
 * a server that rotates refresh tokens takes a second use for theft (RFC 9700 §4.14.2).
 */
export class UserTokens {
  readonly table: TokenTable;
  readonly #seal: Seal;
  readonly #signIns: SignIns;
  readonly #log: Log;
  readonly #limits: Limits;
  /** Renewals under way in this process. */
  readonly #renewals = new Map<string, Promise<Known | undefined>>();

  constructor(options: { database: Database; seal: Seal; signIns: SignIns; log: Log; limits: Limits }) {
    this.table = new TokenTable(options.database);
    this.#seal = options.seal;
    this.#signIns = options.signIns;
    this.#log = options.log;
    this.#limits = options.limits;
  }

  /** The token of a user. Rejects with `SignInRequired`, or with another `AppError` if it cannot be had at present. */
  async get(user: User, server: ProtectedServer): Promise<UserToken> {
    let known = await this.#read(user, server);
    if (known === undefined) throw await this.#signIn(user, server, 'the user has to sign in at the server');
    if (isStale(known, this.#limits.tokenRenewal)) known = await this.#renewed(user, server, known);
    return { value: known.secret.access, generation: known.generation };
  }

  /**
   * The server has refused the token of this generation. Returns whether the request may be sent again, with another one. Rejects
   * as `get`, if the user has to sign in again.
   */
  async refused(
    user: User,
    server: ProtectedServer,
    generation: string,
    { status, challenge, isSecond }: { status: number; challenge: Challenge; isSecond: boolean },
  ): Promise<boolean> {
    const known = await this.#read(user, server);
    if (known === undefined) throw await this.#signIn(user, server, 'the user has to sign in at the server');
    if (status === 403) return this.#moreScopes(user, server, known, challenge);
    if (!isSecond && known.generation !== generation) return true;
    const isFresh = Date.now() - known.secret.at < this.#limits.freshToken;
    const isRenewable = known.secret.refresh !== undefined;
    // A fresh one may just not be known everywhere yet; later, it is renewed.
    if (known.generation === generation && (isSecond || !isRenewable))
      await this.#removeRefused(server, known);
    if (isSecond || isFresh || !isRenewable)
      throw await this.#signIn(
        user,
        server,
        'the server no longer accepts the token of the user, who has to sign in again',
        known,
        challenge,
      );
    await this.#renewed(user, server, known, true);
    return true;
  }

  /** Who looks at the table, and the next request, know that the user is no longer signed in. Nothing newer is removed. */
  async #removeRefused(server: ProtectedServer, known: Known): Promise<void> {
    if (!(await this.table.remove(known))) return;
    this.#log.warn(SCOPE, 'a server no longer accepts the token of a user, who is signed out there', {
      server: server.key,
      user: known.who,
    });
  }

  /** Stores what a user has got by signing in. */
  async store({ user, server, tokens, scopes, ...others }: SignedIn): Promise<void> {
    const now = Date.now();
    const { client, resource, issuer } = others;
    const { access, refresh } = tokens;
    const secret: Sealed = { access, refresh, client, resource, issuer, at: now };
    await this.table.put({
      owner: user.id,
      server: server.key,
      who: user.who,
      // RFC 6749 §5.1: without it, all that was requested is granted.
      scope: tokens.scope ?? scopes.join(' '),
      generation: newGeneration(),
      sealed: await this.#seal.seal('token', [user.id, server.key], secret),
      createdAt: now,
      expiresAt: tokens.lifetime === undefined ? null : now + tokens.lifetime,
    });
  }

  /**
   * Signs a user out of a server: removes the token, and revokes it at the authorization server if that can be asked. Returns
   * whether it was revoked there: the refresh token, if there is one.
   */
  async remove({ owner, server: key }: Pick<TokenRow, 'owner' | 'server'>): Promise<boolean> {
    let row = await this.table.read(owner, key);
    // One that is renewed meanwhile is another one.
    while (row !== undefined && !(await this.table.remove(row))) row = await this.table.read(owner, key);
    const secret = row && (await this.#open(row));
    const server = this.#signIns.server(key);
    return secret !== undefined && server !== undefined && this.#revoke(server, secret);
  }

  /** Revokes both tokens: not every server revokes those of a grant together (RFC 7009 §2.1). Never rejects. */
  async #revoke(server: ProtectedServer, { client, refresh, access, issuer }: Sealed): Promise<boolean> {
    const revoke = async (kind: 'refresh_token' | 'access_token', token: string): Promise<boolean> => {
      try {
        return await (await server.requestsTo(issuer)).revoke(server.current(client), token, kind);
      } catch (error) {
        this.#log.warn(SCOPE, 'a token was removed, but could not be revoked at its server', {
          server: server.key,
          token: kind,
          problem: detailOf(error),
        });
        return false;
      }
    };
    const isRefreshRevoked = refresh === undefined ? undefined : await revoke('refresh_token', refresh);
    const isAccessRevoked = await revoke('access_token', access);
    return isRefreshRevoked ?? isAccessRevoked;
  }

  async #moreScopes(
    user: User,
    server: ProtectedServer,
    known: Known,
    challenge: Challenge,
  ): Promise<boolean> {
    if (challenge.error !== 'insufficient_scope') return false;
    const granted = scopesIn(known.scope);
    const missing = scopesIn(challenge.scope ?? '').filter((scope) => !granted.includes(scope));
    // Signing in again would not help.
    if (missing.length === 0) return false;
    throw await this.#signIn(
      user,
      server,
      'the server requires more permissions, for which the user has to sign in again',
      known,
      challenge,
    );
  }

  async #signIn(
    user: User,
    server: ProtectedServer,
    why: string,
    known?: Known,
    challenge: Challenge = {},
  ): Promise<SignInRequired> {
    const granted = known === undefined ? [] : scopesIn(known.scope);
    const scopes = [...new Set([...granted, ...scopesIn(challenge.scope ?? '')])].slice(
      0,
      this.#limits.oauthScopes,
    );
    const link = await this.#signIns.begin(user, server, scopes, async () => {
      const row = await this.table.read(user.id, server.key);
      return row !== undefined && row.generation !== known?.generation;
    });
    return new SignInRequired(link, why);
  }

  async #read(user: User, server: ProtectedServer): Promise<Known | undefined> {
    const row = await this.table.read(user.id, server.key);
    const secret = row && (await this.#open(row));
    return row === undefined || secret === undefined ? undefined : { ...row, secret };
  }

  async #open({ owner, server, sealed }: TokenRow): Promise<Sealed | undefined> {
    const value = membersOf(await this.#seal.open('token', [owner, server], sealed));
    const client = clientIn(value['client']);
    const { access, refresh, resource, issuer, at } = value;
    if (typeof access !== 'string' || typeof resource !== 'string' || client === undefined) return undefined;
    if (typeof issuer !== 'string') return undefined;
    return { access, refresh: stringIn(refresh), client, resource, issuer, at: numberIn(at) ?? 0 };
  }

  /** The renewed token. `isForced`: the server has refused the current one. */
  async #renewed(user: User, server: ProtectedServer, old: Known, isForced = false): Promise<Known> {
    const key = JSON.stringify([old.owner, old.server, old.generation]);
    let renewal = this.#renewals.get(key);
    if (renewal === undefined) {
      renewal = this.#renew(server, old, isForced).finally(() => this.#renewals.delete(key));
      this.#renewals.set(key, renewal);
    }
    const renewed = await renewal;
    if (renewed !== undefined) return renewed;
    throw await this.#signIn(
      user,
      server,
      'the sign-in of the user at the server has ended, and has to be repeated',
      old,
    );
  }

  /** Undefined if it cannot be renewed any more. */
  async #renew(server: ProtectedServer, old: Known, isForced: boolean): Promise<Known | undefined> {
    const isValid = !isForced && (old.expiresAt ?? Number.POSITIVE_INFINITY) > Date.now();
    const { refresh, client, resource, issuer } = old.secret;
    if (refresh === undefined) return isValid ? old : undefined;
    let requests: OAuthRequests;
    try {
      // Before the lease, which is not long enough for the metadata of slow servers.
      requests = await server.requestsTo(issuer);
    } catch (error) {
      return this.#notRenewed(server, old, isValid, error);
    }
    const now = Date.now();
    if (!(await this.table.begin(old, now, now + this.#limits.renewalLease)))
      return isValid ? old : this.#renewedByAnother(old);
    let tokens: IssuedTokens;
    try {
      tokens = await requests.refresh(server.current(client), refresh, resource);
    } catch (error) {
      return this.#notRenewed(server, old, isValid, error);
    }
    return this.#keep(server, old, tokens);
  }

  async #notRenewed(
    server: ProtectedServer,
    old: Known,
    isValid: boolean,
    error: unknown,
  ): Promise<Known | undefined> {
    this.#log.warn(SCOPE, 'the token of a user could not be renewed', {
      server: old.server,
      user: old.who,
      problem: detailOf(error),
    });
    if (!(error instanceof GrantRefused)) {
      await this.table.giveUp(old);
      if (isValid) return old;
      throw error instanceof AppError ? error : new AppError('provider_failed', { detail: detailOf(error) });
    }
    if (error.code === 'invalid_client') await server.forgetClient(old.secret.client);
    if (error.code !== 'invalid_grant') {
      await this.table.giveUp(old);
      return isValid ? old : undefined;
    }
    // This one only: whoever has lost a race must not remove what the winner has stored (can1357/oh-my-pi#5081).
    if (await this.table.remove(old)) return undefined;
    return this.#current(old);
  }

  /** Stores what a token was renewed to: with rotation, the old refresh token is void. */
  async #keep(server: ProtectedServer, old: Known, tokens: IssuedTokens): Promise<Known | undefined> {
    const at = Date.now();
    const secret = {
      ...old.secret,
      access: tokens.access,
      refresh: tokens.refresh ?? old.secret.refresh,
      at,
    };
    const renewed: Known = {
      ...old,
      scope: tokens.scope ?? old.scope,
      generation: newGeneration(),
      sealed: await this.#seal.seal('token', [old.owner, old.server], secret),
      expiresAt: tokens.lifetime === undefined ? null : at + tokens.lifetime,
      secret,
    };
    for (let attempt = 0; ; attempt += 1)
      try {
        if (await this.table.renew(old, renewed)) return renewed;
        const current = await this.#current(old);
        // The user was signed out meanwhile, which cannot have revoked what was issued since.
        if (current === undefined) await this.#revoke(server, secret);
        return current;
      } catch (error) {
        if (attempt >= this.#limits.renewalWrites) throw error;
        await pause(this.#limits.renewalPoll, undefined, { ref: false });
      }
  }

  /** Waits for the process that renews the token. */
  async #renewedByAnother(old: Known): Promise<Known | undefined> {
    const until = performance.now() + this.#limits.renewalLease;
    while (performance.now() < until) {
      const current = await this.#current(old);
      if (current?.generation !== old.generation) return current;
      await pause(this.#limits.renewalPoll, undefined, { ref: false });
    }
    throw new AppError('provider_failed', { detail: 'another process has not renewed the token in time' });
  }

  async #current({ owner, server }: Known): Promise<Known | undefined> {
    const row = await this.table.read(owner, server);
    const secret = row && (await this.#open(row));
    return row === undefined || secret === undefined ? undefined : { ...row, secret };
  }
}

const newGeneration = (): string => randomBytes(16).toString('base64url');

/** RFC 6749 §3.3. GitHub separates them by commas. */
const scopesIn = (text: string): string[] => text.split(/[\s,]+/).filter((scope) => scope !== '');

const isStale = ({ expiresAt }: TokenRow, margin: number): boolean =>
  expiresAt !== null && expiresAt - Date.now() < margin;
