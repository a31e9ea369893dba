import type {
  AuthorizationServer,
  Client,
  ClientAuth,
  TokenEndpointRequestOptions,
  TokenEndpointResponse,
} from 'oauth4webapi';
import { AppError, messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { checkIssuer, isHttpUrl } from '../../credentials/issuer-metadata.ts';
import { refusedByProvider } from '../../credentials/refused-by-provider.ts';
import { oauthAnswer, tokenFetch } from '../../credentials/token-fetch.ts';
import type { Document, DocumentClient } from '../../transport/upstream/document-client.ts';
import { keySetUrlIn } from '../jwt/issuer.ts';
import { ACCEPTED_ALGORITHMS } from '../jwt/key-set.ts';
import { LEEWAY } from '../jwt/token-validator.ts';

/** What to correct. */
const CLIENT =
  'compare `clientId`, `clientSecret`, `redirectURI`, `scopes` and `tokenEndpointAuth` of the policy `oidc` with the client at the provider';

type Library = typeof import('oauth4webapi');

export interface ProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
  readonly scope: string;
  /** Endpoints in the configuration; otherwise the metadata names them. */
  readonly endpoints: Endpoints | undefined;
  /** Reads the metadata. */
  metadata(): Promise<Document>;
  readonly client: DocumentClient;
  readonly log: Log;
}

export interface Endpoints {
  readonly authorization: string;
  readonly token: string;
  /** URL of the keys, unless they are configured. */
  readonly keys: string | undefined;
  readonly auth: 'clientSecretBasic' | 'clientSecretPost';
  /** Whether callbacks name the issuer (RFC 9207): then one without it is refused. */
  readonly sendsIssuer: boolean;
  /** Where browsers are signed out (OpenID Connect RP-Initiated Logout), and where refresh tokens are revoked (RFC 7009). */
  readonly endSession: string | undefined;
  readonly revocation: string | undefined;
}

/** What the provider issues. The signature of the ID token is not verified yet. */
export interface Tokens {
  readonly idToken: string;
  readonly refreshToken?: string;
}

/** Secrets of one sign-in, which the browser keeps in an encrypted cookie meanwhile. */
export interface Login {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** A callback that does not end a sign-in: the request is at fault, or the provider refuses. */
export class SignInError extends Error {}

/**
 * The provider as an OAuth client sees it (authorization code with PKCE, RFC 6749 §4.1, RFC 7636, OpenID Connect Core §3.1).
 * Requests and responses are those of oauth4webapi.
 */
export class Provider {
  readonly #options: ProviderOptions;
  #endpoints: Endpoints | undefined;
  #expiresAt = 0;
  #retryAt = 0;
  #problem = '';
  #loading: Promise<void> | undefined;

  constructor(options: ProviderOptions) {
    this.#options = options;
    this.#endpoints = options.endpoints;
    if (options.endpoints !== undefined) this.#expiresAt = Number.POSITIVE_INFINITY;
  }

  /** Rejects with `provider_failed` while the metadata has never been read; the old one stays in use after a failure. */
  async endpoints(): Promise<Endpoints> {
    const now = performance.now();
    if (now >= this.#expiresAt && now >= this.#retryAt) {
      this.#loading ??= this.#load().finally(() => {
        this.#loading = undefined;
      });
      await this.#loading;
    }
    if (this.#endpoints === undefined) throw new AppError('provider_failed', { detail: this.#problem });
    return this.#endpoints;
  }

  /** For metadata that has changed: the next sign-in reads it again. */
  reread(): undefined {
    if (this.#options.endpoints !== undefined) return;
    this.#expiresAt = 0;
    this.#retryAt = 0;
  }

  /** Where the browser signs in, with the secrets of this sign-in. */
  async start(): Promise<{ url: string; login: Login }> {
    const { authorization } = await this.endpoints();
    const oauth = await library();
    const login = {
      state: oauth.generateRandomState(),
      nonce: oauth.generateRandomNonce(),
      verifier: oauth.generateRandomCodeVerifier(),
    };
    const url = new URL(authorization);
    const { clientId, redirectUri, scope } = this.#options;
    const parameters = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope,
      state: login.state,
      nonce: login.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(login.verifier),
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { url: url.href, login };
  }

  /**
   * Redeems the code of a callback. Rejects with `SignInError`, or with `provider_failed`. The caller verifies the signature
   * of the ID token.
   */
  async redeem(query: URLSearchParams, { state, nonce, verifier }: Login): Promise<Tokens> {
    const oauth = await library();
    const { server, client, auth, options } = await this.#request(oauth);
    let callback: URLSearchParams;
    try {
      callback = oauth.validateAuthResponse(server, client, query, state);
    } catch (error) {
      throw new SignInError(refusedByProvider(error, CLIENT), { cause: error });
    }
    const { redirectUri } = this.#options;
    const response = await oauthAnswer(
      oauth.authorizationCodeGrantRequest(server, client, auth, callback, redirectUri, verifier, options),
    );
    return tokensOf(
      oauth.processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: nonce,
        requireIdToken: true,
      }),
    );
  }

  /** Gets new tokens (OpenID Connect Core §12). Rejects like `redeem`. */
  async refresh(refreshToken: string): Promise<Tokens> {
    const oauth = await library();
    const { server, client, auth, options } = await this.#request(oauth);
    const response = await oauthAnswer(
      oauth.refreshTokenGrantRequest(server, client, auth, refreshToken, options),
    );
    // RFC 6749 §6: without a new refresh token, the old one stays valid.
    return { refreshToken, ...(await tokensOf(oauth.processRefreshTokenResponse(server, client, response))) };
  }

  /** Revokes a refresh token, where the provider can. Rejects like `redeem`. */
  async revoke(refreshToken: string): Promise<void> {
    const { revocation } = await this.endpoints();
    if (revocation === undefined) return;
    const oauth = await library();
    const { server, client, auth, options } = await this.#request(oauth);
    const revoking = { ...server, revocation_endpoint: revocation };
    await oauthAnswer(oauth.revocationRequest(revoking, client, auth, refreshToken, options));
  }

  /** What each request to the provider needs. */
  async #request(oauth: Library): Promise<{
    server: AuthorizationServer;
    client: Client;
    auth: ClientAuth;
    options: TokenEndpointRequestOptions;
  }> {
    const { token, auth, sendsIssuer } = await this.endpoints();
    const { issuer, clientId, clientSecret } = this.#options;
    return {
      server: {
        issuer,
        token_endpoint: token,
        authorization_response_iss_parameter_supported: sendsIssuer,
        // The keys decide, when the caller verifies the signature.
        id_token_signing_alg_values_supported: [...ACCEPTED_ALGORITHMS],
      },
      client: { client_id: clientId, [oauth.clockTolerance]: LEEWAY },
      auth:
        auth === 'clientSecretPost'
          ? oauth.ClientSecretPost(clientSecret)
          : oauth.ClientSecretBasic(clientSecret),
      options: {
        [oauth.allowInsecureRequests]: true,
        [oauth.customFetch]: tokenFetch(this.#options.client),
      },
    };
  }

  async #load(): Promise<void> {
    const { issuer, log } = this.#options;
    try {
      const { value, lifetime } = await this.#options.metadata();
      this.#endpoints = endpointsOf(value, issuer);
      this.#expiresAt = performance.now() + lifetime;
    } catch (error) {
      this.#problem = messageOf(error);
      log.warn('auth', 'metadata of the identity provider could not be read', { problem: this.#problem });
    }
    this.#retryAt = performance.now() + LIMITS.retryDelayMax;
  }
}

async function tokensOf(response: Promise<TokenEndpointResponse>): Promise<Tokens> {
  const { id_token: idToken, refresh_token: refreshToken } = await response.catch((error: unknown) => {
    throw new SignInError(refusedByProvider(error, CLIENT), { cause: error });
  });
  if (idToken === undefined) throw new SignInError('the provider has sent no ID token');
  return { idToken, ...(refreshToken !== undefined && { refreshToken }) };
}

/** OpenID Connect Discovery §3 and §4.3; RP-Initiated Logout §2.1, RFC 8414 §2. */
function endpointsOf(value: unknown, issuer: string): Endpoints {
  const metadata = membersOf(value);
  checkIssuer(metadata['issuer'], issuer);
  const urlIn = (name: string): string | undefined => {
    const text = metadata[name];
    return isHttpUrl(text) ? text : undefined;
  };
  const url = (name: string): string => {
    const text = urlIn(name);
    if (text === undefined) throw new Error(`its metadata has no \`${name}\``);
    return text;
  };
  const methods = metadata['token_endpoint_auth_methods_supported'];
  const isPostOnly =
    Array.isArray(methods) &&
    methods.includes('client_secret_post') &&
    !methods.includes('client_secret_basic');
  return {
    authorization: url('authorization_endpoint'),
    token: url('token_endpoint'),
    keys: keySetUrlIn(metadata, issuer),
    auth: isPostOnly ? 'clientSecretPost' : 'clientSecretBasic',
    sendsIssuer: metadata['authorization_response_iss_parameter_supported'] === true,
    endSession: urlIn('end_session_endpoint'),
    revocation: urlIn('revocation_endpoint'),
  };
}

function library(): Promise<Library> {
  return import('oauth4webapi');
}
