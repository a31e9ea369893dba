import { createHash } from 'node:crypto';
import type { ClientAuth } from 'oauth4webapi';
import { z } from 'zod';
import { durationSchema } from '../../core/duration.ts';
import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { validatedToken } from '../kernel/shared-slots.ts';
import { DocumentClient } from '../transport/document-client.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';
import { parseAddress } from '../transport/upstream.ts';
import { type CredentialLocation, credentialLocation, locationSchema } from './location.ts';
import { placementSchema } from './placement.ts';
import { type IssuedToken, TokenCache } from './token-cache.ts';

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const GRANTS = {
  tokenExchange: 'urn:ietf:params:oauth:grant-type:token-exchange',
  jwtBearer: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
} as const;

/** Parameters that the policy sets itself: `additionalParams` cannot replace them. */
const RESERVED = new Set([
  ...['grant_type', 'subject_token', 'subject_token_type', 'actor_token', 'actor_token_type', 'assertion'],
  ...['audience', 'resource', 'scope', 'requested_token_type'],
  ...['client_id', 'client_secret', 'client_assertion', 'client_assertion_type'],
]);

const strings = z.array(z.string().min(1)).default([]);
const tokenType = z.url({ error: 'expected a URI, such as `urn:ietf:params:oauth:token-type:jwt`' });

export const tokenExchangeSchema = z
  .strictObject({
    host: z
      .string()
      .min(1)
      .describe('Authorization server: `host:port` or a URL without a path. Port 443 uses TLS.'),
    path: z
      .string()
      .regex(/^\/[\x21-\x7e]*$/, { error: 'expected a path that starts with `/`' })
      .default('/')
      .describe('Path of its token endpoint.'),
    grantType: z
      .enum(['tokenExchange', 'jwtBearer'])
      .default('tokenExchange')
      .describe(
        '`tokenExchange`: RFC 8693. `jwtBearer`: RFC 7523, the token of the client is the assertion.',
      ),
    subjectToken: z
      .strictObject({
        source: locationSchema
          .optional()
          .describe(
            'Location of the token of the client. Default: `Authorization: Bearer`, else the token that a policy has validated.',
          ),
        tokenType: tokenType.default(ACCESS_TOKEN).describe('Its type (RFC 8693 §3).'),
      })
      .prefault({})
      .describe('The token to exchange.'),
    actorToken: z
      .strictObject({
        source: locationSchema.describe('Location of the token in the request.'),
        tokenType: tokenType.default(ACCESS_TOKEN).describe('Its type (RFC 8693 §3).'),
      })
      .optional()
      .describe('Token of who acts for the client (RFC 8693 §1.1).'),
    audiences: strings.describe('Requested audiences.'),
    scopes: strings.describe('Requested scopes.'),
    resources: strings.describe('URIs of the services that the token is for.'),
    requestedTokenType: tokenType.optional().describe('Requested type of token.'),
    clientAuth: z
      .strictObject({
        method: z
          .enum(['clientSecretBasic', 'clientSecretPost'])
          .default('clientSecretBasic')
          .describe('How the gateway authenticates.'),
        clientId: z.string().min(1).describe('Id of the gateway at the server.'),
        clientSecret: textOrFile.optional().meta({ secret: true }).describe('Its secret, or `{ file: … }`.'),
      })
      .refine(({ method, clientSecret }) => method === 'clientSecretPost' || clientSecret !== undefined, {
        error: '`clientSecretBasic` needs `clientSecret`',
      })
      .optional()
      .describe('Authentication of the gateway at the server; none by default.'),
    additionalParams: z
      .record(z.string(), z.string().min(1))
      .superRefine((parameters, check) => {
        for (const name of Object.keys(parameters))
          if (RESERVED.has(name.toLowerCase()))
            check.addIssue({
              code: 'custom',
              path: [name],
              message: `the policy sets \`${name}\` itself`,
            });
      })
      .default({})
      .describe('Further parameters, as CEL expressions.'),
    authorizationLocation: placementSchema
      .optional()
      .describe('Place of the new token; `Authorization: Bearer` by default.'),
    cache: z
      .strictObject({
        maxEntries: z.int().min(0).max(100_000).default(8192).describe('Tokens to keep; 0 keeps none.'),
        defaultTtl: durationSchema
          .prefault('300s')
          .describe('How long to keep tokens that have no lifetime.'),
      })
      .prefault({})
      .describe('Cache of tokens. They are kept until shortly before they expire.'),
  })
  .superRefine(({ grantType, actorToken, requestedTokenType }, context) => {
    if (grantType === 'tokenExchange') return;
    for (const [key, value] of Object.entries({ actorToken, requestedTokenType }))
      if (value !== undefined)
        context.addIssue({
          code: 'custom',
          path: [key],
          message: 'only the grant `tokenExchange` has it',
          params: { code: 'AGW0105' },
        });
  })
  .describe('A token that an OAuth authorization server issues for that of the client.');

type Config = z.output<typeof tokenExchangeSchema>;

export interface TokenExchange {
  /** The new token for a request, whose own tokens are removed. Rejects with an `AppError`. */
  token(ctx: RequestContext): Promise<string>;
  close(): Promise<void>;
}

/** Compiles a token exchange; undefined if the server or secret cannot be used, which is reported. */
export function tokenExchange(config: Config, context: CompileContext): TokenExchange | undefined {
  const address = parseAddress(
    /:443$/.test(config.host) && !config.host.includes('://') ? `https://${config.host}` : config.host,
    context.at('host'),
  );
  const { clientAuth, subjectToken, actorToken } = config;
  const secret =
    clientAuth?.clientSecret === undefined
      ? undefined
      : readText(clientAuth.clientSecret, context.at('clientAuth', 'clientSecret'));
  const subject = credentialLocation(subjectToken.source, context.at('subjectToken', 'source'));
  const actor = actorToken && credentialLocation(actorToken.source, context.at('actorToken', 'source'));
  const extra = Object.entries(config.additionalParams).map(
    ([name, source]) => [name, context.at('additionalParams', name).cel(source, requestScope)] as const,
  );
  if (address === undefined || address.socketPath !== undefined) return undefined;
  const url = address.origin + config.path;
  const cache = new TokenCache(config.cache.maxEntries, config.cache.defaultTtl);
  context.inspection.bounds.push({
    name: 'backendAuth.tokens',
    at: context.path.join('.'),
    max: config.cache.maxEntries,
    used: () => cache.size,
  });
  const client = new DocumentClient(context.settings.callMeter('Policy', 'TokenExchange'));
  // A repeated call of the backend finds the token of the client removed.
  const issued = new WeakMap<RequestContext, string>();
  return {
    async token(ctx) {
      const known = issued.get(ctx);
      if (known !== undefined) return known;
      const own =
        subject.read(ctx) ?? (subjectToken.source === undefined ? validatedToken.get(ctx) : undefined);
      if (own === undefined)
        throw new AppError('bad_request', { message: 'the request has no token to exchange' });
      const acting = readActor(ctx, actor);
      const parameters = parametersOf(config, own, acting);
      const resolver = resolverFor(ctx);
      for (const [name, expression] of extra) {
        const value = tryEvaluate(expression, resolver);
        if (typeof value !== 'string')
          throw new AppError('bad_request', {
            message: 'the request lacks what the token exchange needs',
            detail: `additionalParams.${name} is not a string`,
          });
        parameters.append(name, value);
      }
      for (const token of [own, acting]) ctx.observer?.hide(token, true);
      const key = createHash('sha256').update(parameters.toString()).digest('base64url');
      const token = await cache.get(key, () => request(url, parameters, config, secret, client));
      subject.remove(ctx);
      actor?.remove(ctx);
      issued.set(ctx, token);
      return token;
    },
    close: () => client.close(),
  };
}

function readActor(ctx: RequestContext, actor: CredentialLocation | undefined): string | undefined {
  const token = actor?.read(ctx);
  if (actor !== undefined && token === undefined)
    throw new AppError('bad_request', { message: 'the request has no actor token' });
  return token;
}

/** RFC 8693 §2.1 or RFC 7523 §2.1. */
function parametersOf(config: Config, subject: string, actor: string | undefined): URLSearchParams {
  const { grantType, subjectToken, actorToken, audiences, scopes, resources, requestedTokenType } = config;
  const parameters = new URLSearchParams(
    grantType === 'jwtBearer'
      ? { assertion: subject }
      : { subject_token: subject, subject_token_type: subjectToken.tokenType },
  );
  if (actor !== undefined && actorToken !== undefined) {
    parameters.append('actor_token', actor);
    parameters.append('actor_token_type', actorToken.tokenType);
  }
  for (const audience of audiences) parameters.append('audience', audience);
  for (const resource of resources) parameters.append('resource', resource);
  if (scopes.length > 0) parameters.append('scope', scopes.join(' '));
  if (requestedTokenType !== undefined) parameters.append('requested_token_type', requestedTokenType);
  return parameters;
}

/** Requests a token. A refusal of the server is the client's fault (400), any other failure that of the server (502). */
async function request(
  url: string,
  parameters: URLSearchParams,
  { grantType, clientAuth }: Config,
  secret: string | undefined,
  client: DocumentClient,
): Promise<IssuedToken> {
  const oauth = await import('oauth4webapi');
  const server = { issuer: new URL(url).origin, token_endpoint: url };
  const own = { client_id: clientAuth?.clientId ?? 'none' };
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
    response = await oauth.genericTokenEndpointRequest(
      server,
      own,
      authenticate,
      GRANTS[grantType],
      parameters,
      {
        [oauth.allowInsecureRequests]: true,
        [oauth.customFetch]: (target, options) =>
          client.fetchLike(target, options as RequestInit, LIMITS.metadataBytes),
      },
    );
  } catch (error) {
    throw new AppError('provider_failed', { detail: messageOf(error) });
  }
  const isRefusal = response.status >= 400 && response.status < 500;
  try {
    const answer = await oauth.processGenericTokenEndpointResponse(server, own, response);
    const { access_token: value, expires_in: seconds } = answer;
    return { value, lifetime: seconds === undefined ? undefined : seconds * 1000 };
  } catch (error) {
    if (isRefusal)
      throw new AppError('bad_request', {
        message: 'the authorization server refused to exchange the token',
        detail: messageOf(error),
      });
    throw new AppError('provider_failed', { detail: messageOf(error) });
  }
}
