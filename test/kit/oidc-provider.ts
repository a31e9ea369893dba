import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet } from 'jose/jwks/remote';
import { jwtVerify } from 'jose/jwt/verify';
import type { Provider } from 'oidc-provider';
import { AUDIENCE } from './idp.ts';
import { signingKey } from './tokens.ts';

/** A real authorization server under the paths of the specification. */
export interface OidcProvider extends AsyncDisposable {
  readonly issuer: string;
  /** What it was asked, as method and path. */
  readonly asked: readonly string[];
}

export interface OidcProviderOptions {
  /** Whether responses to the client carry `iss` (RFC 9207). Keycloak can leave it out per client. */
  readonly sendsIss?: boolean;
  /** In seconds. */
  readonly idTokenLifetime?: number;
  /** Whether the client `mcp-client` exists and gets tokens for `alice` with a password, as Keycloak allows for tests. */
  readonly hasPasswords?: boolean;
  /** Whether the client `gateway` exchanges tokens for those of other audiences (RFC 8693). Needs `hasPasswords`. */
  readonly exchangesTokens?: boolean;
  /** Who signs in next; `alice` otherwise. */
  readonly account?: () => string;
  /** In seconds. */
  readonly accessTokenLifetime?: number;
  /** Whether a refresh token can be used once: with a second use, all tokens of the grant are void. */
  readonly rotates?: boolean;
  /** Whether users agree to what a client asks for. */
  readonly agrees?: () => boolean;
}

const MOUNT = '/realms/main';
const RFC8414 = `/.well-known/oauth-authorization-server${MOUNT}`;
const SCOPES = 'read write';

/** Seconds. */
export const ACCESS_TOKEN_LIFETIME = 300;

/**
 * Starts it on a free port. Anybody may register and is signed in as `alice` without being asked. Access tokens are
 * JWTs for the one audience of the realm, whatever resource a client names.
 */
export async function startOidcProvider({
  sendsIss = true,
  idTokenLifetime = 600,
  hasPasswords = false,
  exchangesTokens = false,
  account = () => 'alice',
  accessTokenLifetime = ACCESS_TOKEN_LIFETIME,
  rotates = false,
  agrees = () => true,
}: OidcProviderOptions = {}): Promise<OidcProvider> {
  const asked: string[] = [];
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}${MOUNT}`;
  const provider = await quietly(async () => {
    const { Provider } = await import('oidc-provider');
    const { clients, ...own } = PASSWORD_CLIENT;
    const known = exchangesTokens ? [...clients, EXCHANGING_CLIENT] : clients;
    return new Provider(issuer, {
      ...configuration(idTokenLifetime, accessTokenLifetime, rotates),
      ...(hasPasswords && { ...own, clients: known }),
    });
  });
  if (hasPasswords) grantToPasswords(provider);
  if (exchangesTokens) grantToExchanges(provider, issuer);
  const callback = provider.callback();
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? '/', issuer);
    asked.push(`${request.method} ${pathname}`);
    if (!sendsIss) withoutIss(response);
    if (pathname.startsWith(`${MOUNT}/interaction/`)) {
      approve(provider, request, response, account(), agrees()).catch(() => response.destroy());
      return;
    }
    // Mounted as routers of Express do it: the provider sees paths below its issuer.
    const original =
      pathname === RFC8414 ? `${MOUNT}/.well-known/openid-configuration` : (request.url ?? '/');
    if (!original.startsWith(`${MOUNT}/`)) return void response.writeHead(404).end();
    Object.assign(request, { originalUrl: original, url: original.slice(MOUNT.length) });
    callback(request, response).catch(() => response.destroy());
  });
  return {
    issuer,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function configuration(idTokenLifetime: number, accessTokenLifetime: number, rotates: boolean): object {
  const { jwk, privateKey } = signingKey('oidc-1');
  return {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: jwk.kid, alg: jwk.alg, use: 'sig' }] },
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: ['openid', 'offline_access', ...SCOPES.split(' ')],
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    clientBasedCORS: () => false,
    clientDefaults: { id_token_signed_response_alg: jwk.alg },
    interactions: {
      url: (_: unknown, { uid }: { uid: string }) => `${MOUNT}/interaction/${uid}`,
    },
    issueRefreshToken: () => true,
    // Not by default: a client whose stream and call find the token expired at the same moment renews it twice.
    rotateRefreshToken: rotates,
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      rpInitiatedLogout: {
        // Its own page says on the console that it should be replaced.
        logoutSource: (context: { body: string }, form: string) => {
          context.body = `${form}<button form="op.logoutForm" name="logout" value="yes">yes</button>`;
        },
      },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: SCOPES,
          audience: AUDIENCE,
          accessTokenFormat: 'jwt',
          accessTokenTTL: accessTokenLifetime,
          jwt: { sign: { alg: 'ES256' } },
        }),
        useGrantedResource: () => true,
      },
    },
    routes: {
      authorization: '/protocol/openid-connect/auth',
      token: '/protocol/openid-connect/token',
      jwks: '/protocol/openid-connect/certs',
      registration: '/clients-registrations/openid-connect',
    },
    ttl: {
      AccessToken: accessTokenLifetime,
      Session: 600,
      Interaction: 600,
      Grant: 600,
      RefreshToken: 600,
      IdToken: idTokenLifetime,
    },
  };
}

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** The client that may exchange tokens, as `clientAuth` names it. */
export const GATEWAY = { clientId: 'gateway', clientSecret: 'secret-of-the-gateway' };

const EXCHANGING_CLIENT = {
  client_id: GATEWAY.clientId,
  client_secret: GATEWAY.clientSecret,
  grant_types: [EXCHANGE],
  redirect_uris: [],
  response_types: [],
};

const PASSWORD_CLIENT = {
  clients: [
    {
      client_id: AUDIENCE,
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'password'],
      redirect_uris: ['http://127.0.0.1:33418/callback'],
    },
  ],
  extraTokenClaims: () => ({ realm_access: { roles: ['tools'] } }),
};

/** Gives everybody with a name a token for the realm's audience. */
function grantToPasswords(provider: Provider): void {
  provider.registerGrantType(
    'password',
    async (ctx) => {
      const { client, params } = ctx.oidc;
      const token = new provider.AccessToken({
        client,
        accountId: String(params?.['username']),
        gty: 'password',
        scope: SCOPES,
      });
      token.resourceServer = new provider.ResourceServer(AUDIENCE, {
        scope: SCOPES,
        audience: AUDIENCE,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      });
      ctx.body = { access_token: await token.save(), expires_in: token.expiration, token_type: 'Bearer' };
    },
    ['username', 'password'],
  );
}

/** Exchanges a token of the realm's audience for one of the audience that is asked for. */
function grantToExchanges(provider: Provider, issuer: string): void {
  const keys = createRemoteJWKSet(new URL(`${issuer}/protocol/openid-connect/certs`));
  provider.registerGrantType(
    EXCHANGE,
    async (ctx) => {
      const { client, params } = ctx.oidc;
      const subject = String(params?.['subject_token']);
      const { payload } = await jwtVerify(subject, keys, { issuer, audience: AUDIENCE });
      const token = new provider.AccessToken({
        client,
        accountId: payload.sub ?? '',
        gty: 'exchange',
        scope: SCOPES,
      });
      const audience = String(params?.['audience']);
      token.resourceServer = new provider.ResourceServer(audience, {
        scope: SCOPES,
        audience,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      });
      ctx.body = {
        access_token: await token.save(),
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: token.expiration,
        token_type: 'Bearer',
      };
    },
    ['subject_token', 'subject_token_type', 'audience'],
  );
}

/** What a person would do at the login and the consent page. */
async function approve(
  provider: Provider,
  request: IncomingMessage,
  response: ServerResponse,
  accountId: string,
  agrees: boolean,
): Promise<void> {
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login')
    return provider.interactionFinished(request, response, { login: { accountId } });
  if (!agrees) return provider.interactionFinished(request, response, { error: 'access_denied' });
  const grant = new provider.Grant({
    accountId: session?.accountId ?? accountId,
    clientId: String(params['client_id']),
  });
  grant.addOIDCScope(`openid offline_access ${SCOPES}`);
  grant.addResourceScope(String(params['resource']), SCOPES);
  return provider.interactionFinished(request, response, { consent: { grantId: await grant.save() } });
}

/** Takes `iss` out of the address that the browser is sent back to. */
function withoutIss(response: ServerResponse): void {
  const setHeader = response.setHeader.bind(response);
  response.setHeader = (name, value) => {
    if (name.toLowerCase() !== 'location' || !String(value).includes('iss=')) return setHeader(name, value);
    const location = new URL(String(value));
    location.searchParams.delete('iss');
    return setHeader(name, location.href);
  };
}

/** The provider warns of the Node that it runs on and of its store, which forgets: both are as we want them. */
async function quietly<T>(run: () => Promise<T>): Promise<T> {
  const { warn } = console;
  console.warn = () => undefined;
  try {
    return await run();
  } finally {
    console.warn = warn;
  }
}
