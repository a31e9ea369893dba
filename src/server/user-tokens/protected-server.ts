import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { text } from '../../core/sql-row.ts';
import type { Database } from '../kernel/database.ts';
import { isHeaderValue } from '../kernel/request/header-list.ts';
import type { DocumentClient } from '../transport/upstream/document-client.ts';
import { type Discovered, discover, textsIn } from './discovery.ts';
import { authMethodIn, GrantRefused, type OAuthClient, OAuthRequests } from './oauth-client.ts';
import { hashOf, type Seal } from './seal.ts';
import { CALLBACK, CLIENT_DOCUMENTS } from './settings.ts';

/** Settings of `backendAuth.oauth`, with name and URL of the target. */
export interface ServerOptions {
  readonly target: string;
  readonly url: URL;
  /** Configured; otherwise the gateway registers itself. */
  readonly client: OAuthClient | undefined;
  readonly scopes: readonly string[];
  /** Issuer of the authorization server, if the server does not say it. */
  readonly authorizationServer: string | undefined;
}

interface Shared {
  readonly database: Database;
  readonly seal: Seal;
  /** URL of the page. */
  readonly page: string;
}

/** An MCP server with the authorization server at which its users sign in. */
export class ProtectedServer {
  /** Tokens are kept under it: another URL is another server, whatever the name of the target. */
  readonly key: string;
  /** For people. */
  readonly host: string;
  readonly scopes: readonly string[];
  /** In paths. */
  readonly id: string;
  /**
   * Where its authorization server sends browsers back. Each server has its own: an authorization server that has browsers sign in at
   * another one instead does not get what they bring back (RFC 9700 §4.4). People who register a client know the name of the target.
   */
  readonly redirectUri: string;
  /** URL of the description of the gateway as its client, which its authorization server fetches; undefined without TLS. */
  readonly clientDocument: string | undefined;
  readonly #options: ServerOptions;
  readonly #shared: Shared;
  readonly #documents: DocumentClient;
  #discovered: { readonly value: Promise<Discovered>; readonly until: number } | undefined;

  constructor(options: ServerOptions, shared: Shared, documents: DocumentClient) {
    const { target, url, client, scopes } = options;
    this.key = client === undefined ? url.href : `${url.href} ${client.id}`;
    this.id = hashOf(this.key).slice(0, 22);
    const { page } = shared;
    this.redirectUri = `${page}${CALLBACK}/${client === undefined ? this.id : target}`;
    this.clientDocument =
      client === undefined && page.startsWith('https:')
        ? `${page}${CLIENT_DOCUMENTS}/${this.id}.json`
        : undefined;
    this.host = url.host;
    this.scopes = scopes;
    this.#options = options;
    this.#shared = shared;
    this.#documents = documents;
  }

  /** Its authorization server. Rejects with `AppError`; concurrent callers share one attempt. */
  discovered(): Promise<Discovered> {
    const known = this.#discovered;
    if (known !== undefined && performance.now() < known.until) return known.value;
    const { target, url, authorizationServer } = this.#options;
    const value = discover(url, authorizationServer, this.#documents).catch((error: unknown) => {
      throw new AppError('provider_failed', { detail: `target "${target}": ${messageOf(error)}` });
    });
    const found = { value, until: performance.now() + LIMITS.serverMetadataLifetime };
    this.#discovered = found;
    value.catch(() => {
      if (this.#discovered === found) this.#discovered = undefined;
    });
    return value;
  }

  async requests(): Promise<OAuthRequests> {
    const { server } = await this.discovered();
    const { target } = this.#options;
    const { redirectUri } = this;
    const own = { target, redirectUri, registeredUri: `${this.#shared.page}${CALLBACK}/${target}` };
    return new OAuthRequests(server, this.#documents, own);
  }

  /**
   * Requests to the authorization server that has issued a token. Rejects with `GrantRefused` if the MCP server names another one by
   * now: that one gets neither the token nor the secret of the client.
   */
  async requestsTo(issuer: string): Promise<OAuthRequests> {
    if ((await this.discovered()).server.issuer !== issuer)
      throw new GrantRefused(
        'the server names another authorization server than when the user has signed in',
      );
    return this.requests();
  }

  /**
   * The gateway as a client of the authorization server, for these scopes: configured, described by its own document, or registered
   * once for all replicas.
   */
  async client(scopes: readonly string[]): Promise<OAuthClient> {
    const { client } = this.#options;
    if (client !== undefined) return client;
    const { server, clientMetadataDocuments } = await this.discovered();
    const { database, seal } = this.#shared;
    const { redirectUri, clientDocument } = this;
    // MCP "Client Registration Approaches" prefers it to a registration.
    if (clientMetadataDocuments && clientDocument !== undefined) return { id: clientDocument };
    const { issuer } = server;
    const known = await this.#registered(issuer);
    const before = known?.scope?.split(' ') ?? [];
    // One of an earlier release does not say it.
    if (known !== undefined && (known.scope === undefined || scopes.every((scope) => before.includes(scope))))
      return known;
    const registered = await (await this.requests()).register([...new Set([...before, ...scopes])]);
    const sealed = await seal.seal('client', [issuer, redirectUri], registered);
    if (known !== undefined) await this.forgetClient(known);
    // Another replica may have registered at the same time: the first one counts. What cannot be read is replaced.
    await database.transaction([
      {
        sql: `INSERT INTO agctl_oauth_clients (issuer, redirect_uri, sealed, created_at) VALUES (?, ?, ?, ?)
          ON CONFLICT (issuer, redirect_uri) DO NOTHING`,
        values: [issuer, redirectUri, sealed, Date.now()],
      },
    ]);
    return (await this.#registered(issuer)) ?? registered;
  }

  /** The client that a token was issued to, with the secret that is configured now. */
  current(client: OAuthClient): OAuthClient {
    const configured = this.#options.client;
    return configured?.id === client.id ? configured : client;
  }

  /** The authorization server no longer knows the gateway: the next sign-in registers it again. */
  async forgetClient({ id }: OAuthClient): Promise<void> {
    if (this.#options.client !== undefined) return;
    const { issuer } = (await this.discovered()).server;
    if ((await this.#registered(issuer))?.id !== id) return;
    await this.#shared.database.transaction([
      {
        sql: 'DELETE FROM agctl_oauth_clients WHERE issuer = ? AND redirect_uri = ?',
        values: [issuer, this.redirectUri],
      },
    ]);
  }

  async #registered(issuer: string): Promise<OAuthClient | undefined> {
    const { database, seal } = this.#shared;
    const { redirectUri } = this;
    const [row] = await database.query(
      'SELECT sealed FROM agctl_oauth_clients WHERE issuer = ? AND redirect_uri = ?',
      [issuer, redirectUri],
    );
    return row && clientIn(await seal.open('client', [issuer, redirectUri], text(row, 'sealed')));
  }
}

/** A client that the database keeps. */
export function clientIn(value: unknown): OAuthClient | undefined {
  const { id, secret, method: named, scope } = textsIn(value);
  if (id === undefined || !isHeaderValue(id)) return undefined;
  const method = authMethodIn(named);
  return {
    id,
    ...(secret !== undefined && { secret }),
    ...(method !== undefined && { method }),
    ...(scope !== undefined && { scope }),
  };
}
