import type { AuthorizationServer, Client, ClientAuth, TokenEndpointRequestOptions } from 'oauth4webapi';
import { REDACTED } from '../../core/credentials.ts';
import { AppError, detailOf, messageOf } from '../../core/errors.ts';
import { jsonIn, membersOf, stringIn } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { oauthAnswer, tokenFetch } from '../credentials/token-fetch.ts';
import { isHeaderValue } from '../kernel/request/header-list.ts';
import type { DocumentClient } from '../transport/upstream/document-client.ts';

type Library = typeof import('oauth4webapi');

/** The gateway as a client of an authorization server. */
export interface OAuthClient {
  readonly id: string;
  readonly secret?: string;
  /** How it authenticates, if the registration has said it. */
  readonly method?: AuthMethod;
  /** The scopes that it was registered for: some servers refuse all others (python-sdk, Ory Hydra). */
  readonly scope?: string;
}

/** Methods with which the gateway can authenticate, the preferred one first (RFC 7591 §2). */
const METHODS = ['client_secret_basic', 'client_secret_post', 'none'] as const;
type AuthMethod = (typeof METHODS)[number];

export const authMethodIn = (value: unknown): AuthMethod | undefined =>
  METHODS.find((method) => method === value);

/** What the server has issued. */
export interface IssuedTokens {
  readonly access: string;
  readonly refresh?: string;
  /** In ms. */
  readonly lifetime?: number;
  readonly scope?: string;
}

/** The authorization server refuses: asking again does not help. Its words are for the log. */
export class GrantRefused extends Error {
  /** The code of the error (RFC 6749 §5.2), if there is one. */
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}

interface Own {
  readonly target: string;
  readonly redirectUri: string;
  /** The redirect URI of a client that people register. */
  readonly registeredUri: string;
}

/** Requests to one authorization server (RFC 6749, 7636, 7591, 7009, 8707, 9207). */
export class OAuthRequests {
  readonly #server: AuthorizationServer;
  readonly #documents: DocumentClient;
  readonly #own: Own;

  constructor(server: AuthorizationServer, documents: DocumentClient, own: Own) {
    this.#server = server;
    this.#documents = documents;
    this.#own = own;
  }

  /** Where the browser goes, with the secrets of this sign-in. */
  async start(
    client: OAuthClient,
    resource: string,
    scopes: readonly string[],
  ): Promise<{ url: string; state: string; verifier: string }> {
    const oauth = await library();
    const state = oauth.generateRandomState();
    const verifier = oauth.generateRandomCodeVerifier();
    const url = new URL(this.#server.authorization_endpoint ?? '');
    const parameters = {
      response_type: 'code',
      client_id: client.id,
      redirect_uri: this.#own.redirectUri,
      ...(scopes.length > 0 && { scope: scopes.join(' ') }),
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      resource,
      // OpenID Connect Core §11: without being asked for consent, users get no refresh token.
      ...(scopes.includes('offline_access') && { prompt: 'consent' }),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { url: url.href, state, verifier };
  }

  /** Redeems the code of a callback. Rejects with `GrantRefused` or `AppError`. */
  async redeem(
    client: OAuthClient,
    query: URLSearchParams,
    { state, verifier, resource }: { state: string; verifier: string; resource: string },
  ): Promise<IssuedTokens> {
    const oauth = await library();
    const own = asClient(client);
    let callback: URLSearchParams;
    try {
      callback = oauth.validateAuthResponse(this.#server, own, query, state);
    } catch (error) {
      throw refused(error, []);
    }
    const options = { ...this.#options(oauth), additionalParameters: { resource } };
    const response = await this.#answer(
      this.#server.token_endpoint,
      oauth.authorizationCodeGrantRequest(
        this.#server,
        own,
        this.#auth(oauth, client),
        callback,
        this.#own.redirectUri,
        verifier,
        options,
      ),
    );
    return issued(oauth.processAuthorizationCodeResponse(this.#server, own, await withoutIdToken(response)), [
      query.get('code'),
      verifier,
      client.secret,
    ]);
  }

  /** Renews a token. Without a new refresh token, the old one stays valid (RFC 6749 §6). Rejects as `redeem`. */
  async refresh(client: OAuthClient, token: string, resource: string): Promise<IssuedTokens> {
    const oauth = await library();
    const own = asClient(client);
    const options = { ...this.#options(oauth), additionalParameters: { resource } };
    const auth = this.#auth(oauth, client);
    const response = await this.#answer(
      this.#server.token_endpoint,
      oauth.refreshTokenGrantRequest(this.#server, own, auth, token, options),
    );
    const tokens = await issued(
      oauth.processRefreshTokenResponse(this.#server, own, await withoutIdToken(response)),
      [token, client.secret],
    );
    return { refresh: token, ...tokens };
  }

  /** Revokes a token (RFC 7009). False if the server cannot do that. Rejects as `redeem`. */
  async revoke(client: OAuthClient, token: string, kind: 'access_token' | 'refresh_token'): Promise<boolean> {
    if (this.#server.revocation_endpoint === undefined) return false;
    const oauth = await library();
    const auth = this.#auth(oauth, client);
    const options = { ...this.#options(oauth), additionalParameters: { token_type_hint: kind } };
    const response = await this.#answer(
      this.#server.revocation_endpoint,
      oauth.revocationRequest(this.#server, asClient(client), auth, token, options),
    );
    if (response.status >= 400)
      await oauth.processRevocationResponse(response).catch((error: unknown) => {
        throw refused(error, [token, client.secret]);
      });
    return true;
  }

  /** Registers the gateway for these scopes (RFC 7591). Rejects with the reason. */
  async register(scopes: readonly string[]): Promise<OAuthClient> {
    const { registration_endpoint: endpoint, issuer } = this.#server;
    const fix = `register the gateway there with the redirect URI ${this.#own.registeredUri}, and set \`oauth.clientId\``;
    if (endpoint === undefined)
      throw this.#failure(
        `the authorization server ${issuer} registers no clients, as its metadata has no \`registration_endpoint\` (RFC 7591): ${fix}`,
      );
    const methods = this.#server.token_endpoint_auth_methods_supported;
    const scope = scopes.join(' ');
    const oauth = await library();
    const response = await this.#answer(
      endpoint,
      oauth.dynamicClientRegistrationRequest(
        this.#server,
        {
          client_name: 'agctl',
          redirect_uris: [this.#own.redirectUri],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: methods === undefined ? 'client_secret_basic' : methodOf(methods),
          // Without it, a client may get a default set (open-webui#29967), or none.
          ...(scope !== '' && { scope }),
        },
        { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: tokenFetch(this.#documents) },
      ),
    );
    try {
      const registered = await oauth.processDynamicClientRegistrationResponse(response);
      const secret = stringIn(registered['client_secret']);
      // RFC 7591 §3.2.1: the server may replace what was requested.
      const method = authMethodIn(registered['token_endpoint_auth_method']);
      return {
        id: registered.client_id,
        ...(secret !== undefined && { secret }),
        ...(method !== undefined && { method }),
        ...(scope !== '' && { scope }),
      };
    } catch (error) {
      throw this.#failure(
        `${endpoint} did not register the gateway (RFC 7591): ${reasonOf(error, [])}: ${fix}`,
      );
    }
  }

  /** An answer of an endpoint. Rejects as `oauthAnswer`, with the address. */
  async #answer(endpoint: string | undefined, request: Promise<Response>): Promise<Response> {
    return oauthAnswer(request).catch((error: unknown) => {
      throw this.#failure(`${endpoint}: ${detailOf(error)}`);
    });
  }

  #failure(detail: string): AppError {
    return new AppError('provider_failed', { detail: `target "${this.#own.target}": ${detail}` });
  }

  #auth(oauth: Library, { secret, method }: OAuthClient): ClientAuth {
    if (secret === undefined || method === 'none') return oauth.None();
    const methods = this.#server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (method ?? methodOf(methods)) === 'client_secret_post'
      ? oauth.ClientSecretPost(secret)
      : oauth.ClientSecretBasic(secret);
  }

  #options(oauth: Library): TokenEndpointRequestOptions {
    return { [oauth.allowInsecureRequests]: true, [oauth.customFetch]: tokenFetch(this.#documents) };
  }
}

const asClient = ({ id }: OAuthClient): Client => ({ client_id: id });

const methodOf = (methods: readonly string[]): AuthMethod =>
  METHODS.find((method) => methods.includes(method)) ?? 'client_secret_basic';

/** Nothing here depends on who the user is at the other server, which an ID token says. */
async function withoutIdToken(response: Response): Promise<Response> {
  if (response.status !== 200) return response;
  const { id_token: _, ...rest } = membersOf(jsonIn(await response.text()));
  return Response.json(rest);
}

/** `sent`: secrets of the request, which the answer to it may repeat. */
async function issued(
  answer: Promise<{ access_token: string; refresh_token?: string; expires_in?: number; scope?: string }>,
  sent: Secrets,
): Promise<IssuedTokens> {
  const { access_token: access, ...rest } = await answer.catch((error: unknown) => {
    throw refused(error, sent);
  });
  const { refresh_token: refresh, expires_in: seconds, scope } = rest;
  if (access.length > LIMITS.tokenLength || !isHeaderValue(access))
    throw new GrantRefused('the authorization server has issued a token that does not fit into a header');
  return {
    access,
    ...(refresh !== undefined && refresh.length <= LIMITS.tokenLength && { refresh }),
    ...(seconds !== undefined && { lifetime: seconds * 1000 }),
    ...(scope !== undefined && { scope: scope.slice(0, LIMITS.tokenLength) }),
  };
}

/** `error` of an answer (RFC 6749 §4.1.2.1 and §5.2). */
const codeOf = (error: unknown): string | undefined => stringIn(membersOf(error)['error']);

/** What the server says of its refusal, or what is wrong with its answer. `sent`: secrets of the request, which it may repeat. */
function reasonOf(error: unknown, sent: Secrets): string {
  const text = sent.reduce<string>(
    (rest, secret) => (secret ? rest.replaceAll(secret, REDACTED) : rest),
    wordsOf(error),
  );
  return text.slice(0, LONGEST_REASON);
}

function wordsOf(error: unknown): string {
  const code = codeOf(error);
  if (code === undefined) return messageOf(error);
  const description = stringIn(membersOf(error)['error_description']);
  return `${code}${description === undefined ? '' : ` (${description})`}`;
}

const LONGEST_REASON = 300;

type Secrets = readonly (string | null | undefined)[];

const refused = (error: unknown, sent: Secrets): GrantRefused =>
  new GrantRefused(reasonOf(error, sent), codeOf(error));

function library(): Promise<Library> {
  return import('oauth4webapi');
}
