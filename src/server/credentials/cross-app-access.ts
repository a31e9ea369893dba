import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { CompileContext } from '../kernel/compile-context.ts';
import { locationSchema } from './location.ts';
import { exchangeForClients, type TokenExchange } from './subject-token.ts';
import { type IssuedToken, openTokenCache, tokenCacheSchema } from './token-cache.ts';
import { clientAuthSchema, endpointFields, GRANTS, tokenEndpoint } from './token-endpoint.ts';

// draft-ietf-oauth-identity-assertion-authz-grant: §4.3 is the first request, §4.4 the second.
const ID_TOKEN = 'urn:ietf:params:oauth:token-type:id_token';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';

const strings = z.array(z.string().min(1)).default([]);

const endpoint = z
  .strictObject({
    ...endpointFields,
    clientAuth: clientAuthSchema.describe('Authentication of the gateway at this server.'),
  })
  .meta({
    elsewhere: {
      backend: 'write the address itself: `host: name:port`',
      service: 'services exist only with a Kubernetes control plane: write `host: name:port`',
      policies: 'remove it: authorization servers are called with the certificates that Node.js trusts',
    },
  });

export const crossAppAccessSchema = z.lazy(() =>
  z
    .strictObject({
      identityProvider: endpoint.describe(
        'Authorization server that signed the user in; it issues the assertion (ID-JAG).',
      ),
      resourceAuthorizationServer: endpoint.describe(
        'Authorization server of the backend; it issues the access token for the assertion.',
      ),
      audience: z.string().min(1).describe('Identifier (issuer) of `resourceAuthorizationServer`.'),
      resources: strings.describe('URIs of the services that the token is for.'),
      scopes: strings.describe('Scopes to request.'),
      accessTokenScopes: z
        .array(z.string().min(1))
        .optional()
        .describe('Scopes to request in the second step. Default: `scopes`. An empty list requests none.'),
      subjectToken: z
        .strictObject({
          source: locationSchema
            .optional()
            .describe(
              'Location of the token of the user. Default: `Authorization: Bearer`, else the token that a policy has validated.',
            ),
          tokenType: z
            .url({ error: 'expected a URI, such as `urn:ietf:params:oauth:token-type:id_token`' })
            .refine((type) => type !== ID_JAG, { error: 'an assertion cannot be exchanged for an assertion' })
            .default(ID_TOKEN)
            .describe('Its type (RFC 8693 §3).'),
        })
        .prefault({})
        .describe('The token of the user: that of OpenID Connect (ID token).'),
      cache: tokenCacheSchema,
    })
    .describe(
      'A token for a service of another organization, in the name of the user (Cross App Access): the identity provider issues an assertion, for which the authorization server of the service issues the token.',
    ),
);

/** Compiles both steps; undefined if a server or secret cannot be used, which is reported. */
export function crossAppAccess(
  config: z.output<typeof crossAppAccessSchema>,
  context: CompileContext,
): (TokenExchange & { close(): Promise<void> }) | undefined {
  const { audience, resources, scopes, subjectToken } = config;
  const accessScopes = config.accessTokenScopes ?? scopes;
  const provider = tokenEndpoint(config.identityProvider, context.at('identityProvider'));
  const resource = tokenEndpoint(
    config.resourceAuthorizationServer,
    context.at('resourceAuthorizationServer'),
  );
  const beyond = accessScopes.filter((scope) => scopes.length > 0 && !scopes.includes(scope));
  if (beyond.length > 0)
    context.at('accessTokenScopes').report({
      code: 'AGW0105',
      severity: 'warning',
      message: `the assertion is not requested for ${beyond.map((scope) => `\`${scope}\``).join(', ')}`,
      help: 'add them to `scopes`: a server refuses scopes that the assertion does not have',
    });
  if (provider === undefined || resource === undefined) return undefined;
  const cache = openTokenCache(config.cache, context);
  return {
    ...exchangeForClients(subjectToken.source, context.at('subjectToken', 'source'), (_, { own }) => {
      const key = createHash('sha256').update(own).digest('base64url');
      const request = async (): Promise<IssuedToken> => {
        const wanted = new URLSearchParams({
          requested_token_type: ID_JAG,
          audience,
          subject_token: own,
          subject_token_type: subjectToken.tokenType,
        });
        for (const each of resources) wanted.append('resource', each);
        if (scopes.length > 0) wanted.set('scope', scopes.join(' '));
        const { value: assertion } = await provider.request(GRANTS.tokenExchange, wanted, ID_JAG);
        const presented = new URLSearchParams({ assertion });
        if (accessScopes.length > 0) presented.set('scope', accessScopes.join(' '));
        return resource.request(GRANTS.jwtBearer, presented);
      };
      return () => cache.get(key, request);
    }),
    async close() {
      await Promise.all([provider.close(), resource.close()]);
    },
  };
}
