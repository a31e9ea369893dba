import type { ClientAuth } from 'oauth4webapi';
import { z } from 'zod';
import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { isHeaderValue } from '../kernel/request/header-list.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';
import { DocumentClient } from '../transport/upstream/document-client.ts';
import { parseAddress } from '../transport/upstream/upstream.ts';
import { refusedByProvider } from './refused-by-provider.ts';
import type { IssuedToken } from './token-cache.ts';
import { tokenFetch } from './token-fetch.ts';

/** RFC 8693 §2.1 and RFC 7523 §2.1. */
export const GRANTS = {
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
  jwtBearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
} as const;

/** Address of a token endpoint. */
export const endpointFields = {
  host: nonEmpty.describe('Authorization server: `host:port` or a URL without a path. Port 443 uses TLS.'),
  path: z
    .string()
    .regex(/^\/[\x21-\x7e]*$/, { error: 'expected a path that starts with `/`' })
    .default('/')
    .describe('Path of its token endpoint.'),
};

export const clientAuthSchema = z.lazy(() =>
  z
    .strictObject({
      method: z
        .enum(['clientSecretBasic', 'clientSecretPost'])
        .default('clientSecretBasic')
        .describe('How the gateway authenticates.'),
      clientId: nonEmpty.describe('Id of the gateway at the server.'),
      clientSecret: textOrFile.optional().meta({ secret: true }).describe('Its secret, or `{ file: … }`.'),
    })
    .refine(({ method, clientSecret }) => method === 'clientSecretPost' || clientSecret !== undefined, {
      error: '`clientSecretBasic` needs `clientSecret`',
    }),
);

interface EndpointConfig {
  readonly host: string;
  readonly path: string;
  readonly clientAuth?: z.output<typeof clientAuthSchema> | undefined;
}

export interface TokenEndpoint {
  /**
   * Requests a token. A refusal of the server is the client's fault (400), any other failure that of the server (502).
   * `type` is the type that the token must have (RFC 8693 §2.2.1), if the grant says one.
   */
  request(grant: string, parameters: URLSearchParams, type?: string): Promise<IssuedToken>;
  close(): Promise<void>;
}

/** Tokens that are not access tokens have the type `N_A` (RFC 8693 §2.2.1). */
const ANY_TOKEN = { recognizedTokenTypes: { n_a: () => undefined } };

/** Compiles the endpoint of an authorization server; undefined if its address cannot be used, which is reported. */
export function tokenEndpoint(
  { host, path, clientAuth }: EndpointConfig,
  context: CompileContext,
): TokenEndpoint | undefined {
  const address = parseAddress(
    /:443$/.test(host) && !host.includes('://') ? `https://${host}` : host,
    context.at('host'),
  );
  const secret =
    clientAuth?.clientSecret === undefined
      ? undefined
      : readText(clientAuth.clientSecret, context.at('clientAuth', 'clientSecret'));
  if (address === undefined || address.socketPath !== undefined) return undefined;
  const server = { issuer: address.origin, token_endpoint: address.origin + path };
  const own = { client_id: clientAuth?.clientId ?? 'none' };
  const client = new DocumentClient(context.settings.callMeter('Policy', 'TokenExchange'));
  const fetchTokens = tokenFetch(client);
  return {
    async request(grant, parameters, type) {
      const oauth = await import('oauth4webapi');
      const authenticate: ClientAuth = (_server, _client, body, headers) => {
        if (clientAuth === undefined) return;
        const method =
          secret === undefined
            ? oauth.None()
            : clientAuth.method === 'clientSecretPost'
              ? oauth.ClientSecretPost(secret)
              : oauth.ClientSecretBasic(secret);
        return method(server, own, body, headers);
      };
      let response: Response;
      try {
        response = await oauth.genericTokenEndpointRequest(server, own, authenticate, grant, parameters, {
          [oauth.allowInsecureRequests]: true,
          [oauth.customFetch]: fetchTokens,
        });
      } catch (error) {
        throw new AppError('provider_failed', { detail: messageOf(error) });
      }
      const isRefusal = response.status >= 400 && response.status < 500;
      try {
        const answer = await oauth.processGenericTokenEndpointResponse(server, own, response, ANY_TOKEN);
        const { access_token: value, expires_in: seconds, issued_token_type: issued } = answer;
        if (type !== undefined && issued !== type)
          throw new Error(`${server.issuer} issued a token of another type than ${type}`);
        // The value is a second lock: no call is sent with such a header.
        if (value.length > LIMITS.tokenLength || !isHeaderValue(value))
          throw new Error(`${server.issuer} issued a token that does not fit into a header`);
        return { value, lifetime: seconds === undefined ? undefined : seconds * 1000 };
      } catch (error) {
        if (isRefusal)
          throw new AppError('bad_request', {
            message: 'the authorization server refused to exchange the token',
            detail: refusedByProvider(error, 'compare `clientAuth` with the client at the provider'),
          });
        throw new AppError('provider_failed', { detail: messageOf(error) });
      }
    },
    close: () => client.close(),
  };
}
