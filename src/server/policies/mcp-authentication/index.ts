import { z } from 'zod';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { choice, mapping, nonEmpty } from '../../../core/schema/mapping.ts';
import { credentialLocation, locationSchema } from '../../credentials/location.ts';
import { toCel } from '../../expressions/cel/values.ts';
import { defineVariable } from '../../expressions/variable.ts';
import { standingWork } from '../../kernel/admission.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { ReloadedFile } from '../../kernel/files/reloaded-file.ts';
import type { CallMeter } from '../../kernel/observer.ts';
import { definePolicy } from '../../kernel/policy.ts';
import { jwtClaims, scopeChallenge } from '../../kernel/request/shared-slots.ts';
import { readText, textOrFile } from '../../transport/text-or-file.ts';
import { DocumentClient } from '../../transport/upstream/document-client.ts';
import { issuerKeys } from '../jwt/issuer.ts';
import type { Claims } from '../jwt/jwt-precheck.ts';
import { KeySet, type KeySource } from '../jwt/key-set.ts';
import { httpUrl, jwksSchema, keySource, reportKeySetProblems, watchedDocument } from '../jwt/key-source.ts';
import { acceptToken, invalidToken, type TokenPolicy, withoutToken } from '../jwt/outcome.ts';
import { TokenValidator } from '../jwt/token-validator.ts';
import { createDiscovery } from './discovery.ts';
import { providerOf, providerSchema } from './provider.ts';
import { isAppUri } from './redirect-uris.ts';
import { RegistrationLimit } from './registration.ts';

const schema = z.lazy(() =>
  mapping(
    'Validates bearer tokens (JWT) of an identity provider, and serves the metadata that MCP clients need to sign in.',
    {
      mode: choice(
        '`strict`: a valid token is required. `optional`: no token or a valid one. `permissive`: requests are never rejected; claims are set if the token is valid.',
        ['strict', 'optional', 'permissive'],
        'strict',
      ),
      issuer: httpUrl.describe(
        'Issuer of the tokens: must equal their `iss` claim, as in `https://idp.example.com/realms/main`.',
      ),
      audiences: z
        .array(nonEmpty)
        .min(1)
        .describe('Accepted audiences: `aud` of a token must contain one of them.'),
      provider: providerSchema
        .optional()
        .describe('Kind of identity provider, if it follows neither RFC 8414 nor OpenID Connect Discovery.'),
      jwks: jwksSchema
        .optional()
        .describe(
          'Signing keys: inline JSON, `url` or `file`. Default: those of `provider`, or `jwks_uri` of the metadata of `issuer`.',
        ),
      resourceMetadata: z
        .looseObject({
          resource: httpUrl.optional().describe('URL of the protected resource: `{base_url}/mcp`.'),
        })
        .default({})
        .describe(
          'Protected-resource metadata for clients (RFC 9728), such as `scopesSupported`. Names become snake case.',
        ),
      authorizationServer: z
        .enum(['gateway', 'issuer'])
        .optional()
        .describe(
          "Authorization server that clients are directed to. `gateway`: the gateway's copy of the provider's metadata. `issuer`: the provider itself. Defaults to `gateway` with `provider`; without it, always `issuer`.",
        ),
      authorizationLocation: locationSchema
        .optional()
        .describe('Location of the token in the request; `Authorization: Bearer` by default.'),
      jwtValidationOptions: z
        .strictObject({
          requiredClaims: z
            .array(z.enum(['exp', 'nbf', 'aud', 'iss', 'sub']))
            .default(['exp'])
            .describe('Claims that a token must have.'),
        })
        .prefault({})
        .describe('Validation of tokens.'),
      clientId: nonEmpty
        .optional()
        .describe(
          'Answer all client registrations with this client id instead of forwarding them to the provider.',
        ),
      allowedRedirectURIs: z
        .array(
          z.string().refine(isAppUri, {
            error:
              'expected an https URL or a URI of an app, such as `https://claude.ai/api/mcp/auth_callback`',
          }),
        )
        .max(LIMITS.redirectUris)
        .default([])
        .meta({ examples: [['https://vscode.dev/redirect', 'cursor://anysphere.cursor-mcp/oauth/callback']] })
        .describe(
          "Redirect URIs that registrations for `clientId` may have, besides those on the user's own machine (`localhost`, `127.0.0.1`, `[::1]`). Compared as text.",
        ),
      clientSecret: textOrFile
        .optional()
        .meta({ secret: true })
        .describe(
          'Secret of `clientId`, or `{ file: … }`, added to token requests of users for the provider `entra`, if they have none.',
        ),
    },
  ),
);

export type McpAuthenticationConfig = z.output<typeof schema>;

/** Sign-in with tokens of an external identity provider (MCP "Authorization"). Serves the discovery documents itself. */
export const mcpAuthentication = definePolicy({
  key: 'mcpAuthentication',
  restrictsClients: true,
  requestExpressions: ['authorizationLocation.expression'],
  schema,
  trace: { kind: 'jwt', stage: 'jwt auth', listedAs: 'jwt' },
  dump: (settings) => ({ jwtAuth: dumped(settings) }),
  sets: {
    others: ['jwtAuth', 'oidc'],
    isReadBy: ({ roots }) => roots.has('jwt'),
    missingFrom: (route) => ({
      code: 'AGW0301',
      message: `route \`${route}\` reads \`jwt\`, but none of its policies validates a token`,
      help: 'add the policy `mcpAuthentication` or `jwtAuth`; until then `jwt` is null',
    }),
  },
  compile(config, context) {
    const meter = context.settings.callMeter('Policy', 'Oidc');
    const { validator, client, close, reread } = createValidator(config, context.folder, context.log, meter);
    const at = context.path.join('.');
    const registrations = new RegistrationLimit(context.settings.limits);
    context.inspection.bounds.push(
      {
        name: 'mcpAuthentication.tokens',
        at,
        max: LIMITS.validTokens,
        keepsLatest: true,
        used: () => validator.remembered,
      },
      { name: 'mcpAuthentication.keys', at, max: LIMITS.keys, used: () => validator.keys },
      {
        name: 'mcpAuthentication.registrations',
        at,
        max: LIMITS.registrationAddresses,
        used: () => registrations.addresses,
      },
    );
    const provider = providerOf(config.provider);
    const { resource, ...metadata } = config.resourceMetadata;
    reportProblems(config, context);
    const discovery = createDiscovery({
      issuer: config.issuer,
      provider,
      resource,
      metadata: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [snakeCase(key), value])),
      listsIssuer: authorizationServerOf(config) === 'issuer',
      clientId: config.clientId,
      allowedRedirectUris: config.allowedRedirectURIs,
      clientSecret: config.clientSecret && readText(config.clientSecret, context.at('clientSecret')),
      audience: config.audiences[0],
      registrations,
      client,
      log: context.log,
    });
    const credential = credentialLocation(config.authorizationLocation, context.at('authorizationLocation'));
    const scopes = Array.isArray(metadata['scopesSupported'])
      ? metadata['scopesSupported'].filter((scope) => typeof scope === 'string')
      : [];
    const challenge = (url: string) => (source: string) => insufficientScope(url, scopes, source);
    // Shared by all requests if it does not depend on the request: a closure per request would keep the request alive.
    const shared = resource === undefined ? undefined : challenge(discovery.metadataUrl());
    const policy: TokenPolicy = {
      key: 'mcpAuthentication',
      mode: config.mode,
      standing: standingWork.get(context.settings),
      metadataUrl: (ctx) => discovery.metadataUrl(ctx),
    };
    return {
      identifies: {
        variable: 'jwt',
        takes: 'a token',
        isRequired: config.mode === 'strict',
        claimsOf: (token) => validator.validate(token),
        ignoresInvalid: config.mode === 'permissive',
      },
      paths: discovery.paths,
      hostnames: resource === undefined ? [] : [new URL(resource).hostname],
      request(ctx) {
        const answer = discovery.answer(ctx);
        if (answer !== undefined) return answer;
        scopeChallenge.set(ctx, shared ?? challenge(discovery.metadataUrl(ctx)));
        const token = credential.read(ctx);
        if (token === undefined) return withoutToken(ctx, policy);
        // Also if mode `permissive` accepts an invalid token: it may be valid for another service.
        ctx.observer?.hide(token);
        credential.remove(ctx, token);
        let claims: Claims | Promise<Claims>;
        try {
          claims = validator.validate(token);
        } catch (error) {
          return invalidToken(ctx, policy, error);
        }
        if (!(claims instanceof Promise)) return acceptToken(ctx, policy, token, claims);
        return claims.then(
          (valid) => acceptToken(ctx, policy, token, valid),
          (error: unknown) => invalidToken(ctx, policy, error),
        );
      },
      response: discovery.share,
      reloads: watchedDocument(config.jwks, context.folder, reread),
      served: () => void reread(),
      close,
    };
  },
});

/** Creates the validator of one policy and its HTTP client. */
function createValidator(
  config: McpAuthenticationConfig,
  folder: string,
  log: Log,
  meter: CallMeter,
): {
  validator: TokenValidator;
  client: DocumentClient;
  close: () => Promise<void>;
  reread: ReloadedFile['changed'];
} {
  const client = new DocumentClient(meter);
  const rules = {
    issuer: config.issuer,
    audiences: config.audiences,
    required: config.jwtValidationOptions.requiredClaims,
    accessTokenType: providerOf(config.provider).accessTokenType,
  };
  const keys = new KeySet(keysOf(config, folder, client), log);
  return {
    validator: new TokenValidator(keys, rules),
    client,
    close: () => client.close(),
    reread: () => keys.reread(),
  };
}

function keysOf(
  { issuer, jwks, provider }: McpAuthenticationConfig,
  folder: string,
  client: DocumentClient,
): KeySource {
  if (jwks !== undefined) return keySource(jwks, folder, client);
  const url = providerOf(provider).keySetUrl?.(issuer);
  return url === undefined ? issuerKeys(issuer, client) : keySource({ url }, folder, client);
}

/** Authorization server that clients are directed to: the gateway only for providers whose paths it knows. */
function authorizationServerOf({
  authorizationServer = 'gateway',
  provider,
}: McpAuthenticationConfig): 'gateway' | 'issuer' {
  return providerOf(provider).isFronted ? authorizationServer : 'issuer';
}

/** Reports problems that would otherwise only be noticed by the first client. */
function reportProblems(config: McpAuthenticationConfig, context: CompileContext): void {
  const { jwks, resourceMetadata, authorizationServer, provider, clientId, clientSecret } = config;
  if (config.allowedRedirectURIs.length > 0 && clientId === undefined)
    context.at('allowedRedirectURIs').report({
      code: 'AGW0104',
      message: '`allowedRedirectURIs` has no effect: without `clientId`, the provider answers registrations',
      help: 'remove it, or set `clientId`',
    });
  if (clientSecret !== undefined && providerOf(provider).rejectsResource !== true)
    context.at('clientSecret').report({
      code: 'AGW0104',
      message:
        '`clientSecret` has no effect: only with `provider: entra` does the gateway forward token requests',
      help: 'remove it',
    });
  if (providerOf(provider).needsClientId === true && clientId === undefined)
    context.at('provider').report({
      code: 'AGW0303',
      message: 'clients cannot register at this provider, and `clientId` is missing',
      help: 'register one client at the provider, and set its id as `clientId`',
    });
  if (authorizationServer === 'gateway' && authorizationServerOf(config) !== authorizationServer)
    context.at('authorizationServer').report({
      code: 'AGW0303',
      message: 'without `provider`, clients are directed to the issuer, not to the gateway',
      help: 'remove it, or set `provider` if the issuer is one of the supported kinds',
    });
  if (jwks !== undefined) reportKeySetProblems(jwks, context.at('jwks'));
  if (resourceMetadata.resource === undefined)
    context.report({
      code: 'AGW0305',
      message:
        '`resourceMetadata.resource` is missing: clients get the host of their request, without a path',
      help: 'set it to the URL that clients connect to, such as `http://localhost:3000/mcp`; strict clients compare the two',
      atKey: true,
    });
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Challenge for a failed rule on scopes (RFC 6750 §3.1). Contains only the known scopes that the rule names. */
function insufficientScope(metadataUrl: string, known: readonly string[], ruleSource: string): string {
  const required = known.filter(
    (scope) => ruleSource.includes(`"${scope}"`) || ruleSource.includes(`'${scope}'`),
  );
  const scope = required.length === 0 ? '' : `, scope="${required.join(' ')}"`;
  return `Bearer error="insufficient_scope"${scope}, resource_metadata="${metadataUrl}"`;
}

export const jwtVariable = defineVariable(
  'jwt',
  { type: 'map', doc: 'Claims of the validated token by name, such as `jwt.sub`.' },
  (ctx) =>
    // Claims are plain JSON, whose integers must become CEL ints.
    toCel(jwtClaims.get(ctx) ?? null),
);

/** Upstream shows MCP authentication as token validation with a member `mcp`. */
function dumped(settings: z.output<typeof schema>): Readonly<Record<string, unknown>> {
  const { mode, issuer, audiences, provider, resourceMetadata, jwtValidationOptions, clientId } = settings;
  return {
    mode,
    providers: [{ issuer, keys: [] }],
    location: settings.authorizationLocation ?? { header: { name: 'authorization', prefix: 'Bearer ' } },
    mcp: {
      issuer,
      audiences,
      provider: provider ?? null,
      resourceMetadata,
      jwtValidator: jwtValidationOptions,
      mode,
      authorizationServer: authorizationServerOf(settings),
      clientId: clientId ?? null,
    },
  };
}
