import { createHash } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { choice, mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { tryEvaluate } from '../expressions/cel/expression.ts';
import { requestScope } from '../expressions/scopes.ts';
import { resolverFor } from '../expressions/variable.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { credentialLocation, locationSchema } from './location.ts';
import { placementSchema } from './placement.ts';
import { exchangeForClients, type TokenExchange } from './subject-token.ts';
import { openTokenCache, tokenCacheSchema } from './token-cache.ts';
import { clientAuthSchema, endpointFields, GRANTS, tokenEndpoint } from './token-endpoint.ts';

const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';

/** Parameters that the policy sets itself: `additionalParams` cannot replace them. */
const RESERVED = new Set([
  ...['grant_type', 'subject_token', 'subject_token_type', 'actor_token', 'actor_token_type', 'assertion'],
  ...['audience', 'resource', 'scope', 'requested_token_type'],
  ...['client_id', 'client_secret', 'client_assertion', 'client_assertion_type'],
]);

const strings = z.array(nonEmpty).default([]);
const tokenType = z.url({ error: 'expected a URI, such as `urn:ietf:params:oauth:token-type:jwt`' });

export const tokenExchangeSchema = z.lazy(() =>
  z
    .strictObject({
      ...endpointFields,
      grantType: choice(
        '`tokenExchange`: RFC 8693. `jwtBearer`: RFC 7523, the token of the client is the assertion.',
        ['tokenExchange', 'jwtBearer'],
        'tokenExchange',
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
      actorToken: mapping('Token of who acts for the client (RFC 8693 §1.1).', {
        source: locationSchema.describe('Location of the token in the request.'),
        tokenType: tokenType.default(ACCESS_TOKEN).describe('Its type (RFC 8693 §3).'),
      }).optional(),
      audiences: strings.describe('Requested audiences.'),
      scopes: strings.describe('Requested scopes.'),
      resources: strings.describe('URIs of the services that the token is for.'),
      requestedTokenType: tokenType.optional().describe('Requested type of token.'),
      clientAuth: clientAuthSchema
        .optional()
        .describe('Authentication of the gateway at the server; none by default.'),
      additionalParams: z
        .record(z.string(), nonEmpty)
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
      cache: tokenCacheSchema,
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
    .describe('A token that an OAuth authorization server issues for that of the client.'),
);

type Config = z.output<typeof tokenExchangeSchema>;

/** Compiles a token exchange; undefined if the server or secret cannot be used, which is reported. */
export function tokenExchange(
  config: Config,
  context: CompileContext,
): (TokenExchange & { close(): Promise<void> }) | undefined {
  const { subjectToken, actorToken } = config;
  const actor = actorToken && credentialLocation(actorToken.source, context.at('actorToken', 'source'));
  const extra = Object.entries(config.additionalParams).map(
    ([name, source]) => [name, context.at('additionalParams', name).cel(source, requestScope)] as const,
  );
  const endpoint = tokenEndpoint(config, context);
  if (endpoint === undefined) return undefined;
  const cache = openTokenCache(config.cache, context);
  return {
    ...exchangeForClients(
      subjectToken.source,
      context.at('subjectToken', 'source'),
      (ctx, { own, acting }) => {
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
        const key = createHash('sha256').update(parameters.toString()).digest('base64url');
        return () => cache.get(key, () => endpoint.request(GRANTS[config.grantType], parameters));
      },
      actor,
    ),
    close: () => endpoint.close(),
  };
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
