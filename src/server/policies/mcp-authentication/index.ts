import { hash } from 'node:crypto';
import { z } from 'zod';
import { missingConfigFile, resolveConfigFile } from '../../../core/config-file.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { toCel } from '../../expressions/cel/values.ts';
import { defineVariable } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import type { CallMeter } from '../../kernel/observer.ts';
import { definePolicy } from '../../kernel/policy.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { jwtClaims, principal, scopeChallenge } from '../../kernel/shared-slots.ts';
import { credentialLocation, locationSchema } from '../credential-location.ts';
import { createDiscovery } from './discovery.ts';
import { DocumentClient, readDocument } from './document.ts';
import type { Claims } from './jwt-precheck.ts';
import { KeySet, type KeySource } from './key-set.ts';
import { providerOf, providerSchema } from './provider.ts';
import { insufficientScope, invalidToken, withoutToken } from './refusal.ts';
import { RegistrationLimit } from './registration.ts';
import { TokenValidator } from './token-validator.ts';

const url = z.url({ protocol: /^https?$/, error: 'expected an http or https URL' });

const schema = z
  .strictObject({
    mode: z
      .enum(['strict', 'optional', 'permissive'])
      .default('strict')
      .describe(
        '`strict`: a valid token is required. `optional`: no token or a valid one. `permissive`: requests are never rejected; claims are set if the token is valid.',
      ),
    issuer: url.describe(
      'Issuer of the tokens: must equal their `iss` claim, as in `https://idp.example.com/realms/main`.',
    ),
    audiences: z
      .array(z.string().min(1))
      .min(1)
      .describe('Accepted audiences: `aud` of a token must contain one of them.'),
    provider: providerSchema
      .optional()
      .describe('Kind of identity provider, if it does not follow RFC 8414.'),
    jwks: z
      .union([
        z.string().min(1),
        z.strictObject({ url: url.describe('URL of the key set.') }),
        z.strictObject({ file: z.string().min(1).describe('File with the key set.') }),
      ])
      .optional()
      .describe('Signing keys: inline JSON, `url` or `file`. Derived from `issuer` by default.'),
    resourceMetadata: z
      .looseObject({ resource: url.optional().describe('URL of the protected resource: `{base_url}/mcp`.') })
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
    clientId: z
      .string()
      .min(1)
      .optional()
      .describe(
        'Answer all client registrations with this client id instead of forwarding them to the provider.',
      ),
  })
  .describe(
    'Validates bearer tokens (JWT) of an identity provider, and serves the metadata that MCP clients need to sign in.',
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
    isReadBy: ({ roots }) => roots.has('jwt'),
    missingFrom: (route) => ({
      code: 'AGW0301',
      severity: 'warning',
      message: `route \`${route}\` reads \`jwt\`, but none of its policies validates a token`,
      help: 'add the policy `mcpAuthentication`; until then `jwt` is null',
    }),
  },
  compile(config, context) {
    const onBadKeys = (): void =>
      context.at('jwks').report({
        code: 'AGW0104',
        message: 'the key set is not valid JSON',
        help: 'set it to JSON text, or use `url:` or `file:`',
      });
    const meter = context.settings.callMeter('Policy', 'Oidc');
    const { validator, client, close, reread } = createValidator(config, context.folder, context.log, {
      onBadKeys,
      meter,
    });
    const at = context.path.join('.');
    const registrations = new RegistrationLimit(context.settings.limits);
    context.inspection.bounds.push(
      {
        name: 'mcpAuthentication.tokens',
        at,
        max: LIMITS.validTokens,
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
      resource: resource === undefined ? undefined : new URL(resource),
      metadata: Object.fromEntries(Object.entries(metadata).map(([key, value]) => [snakeCase(key), value])),
      listsIssuer: authorizationServerOf(config) === 'issuer',
      clientId: config.clientId,
      registrations,
      client,
      log: context.log,
    });
    const credential = credentialLocation(config.authorizationLocation, context.at('authorizationLocation'));
    const scopes = Array.isArray(metadata['scopesSupported'])
      ? (metadata['scopesSupported'] as unknown[]).filter((scope) => typeof scope === 'string')
      : [];
    const challenge = (url: string) => (source: string) => insufficientScope(url, scopes, source);
    // Shared by all requests if it does not depend on the request: a closure per request would keep the request alive.
    const shared = resource === undefined ? undefined : challenge(discovery.metadataUrl());
    return {
      paths: discovery.paths,
      hostnames: resource === undefined ? [] : [new URL(resource).hostname],
      request(ctx) {
        const answer = discovery.answer(ctx);
        if (answer !== undefined) return answer;
        scopeChallenge.set(ctx, shared ?? challenge(discovery.metadataUrl(ctx)));
        const token = credential.read(ctx);
        if (token === undefined) return withoutToken(ctx, config.mode, discovery);
        // Also if mode `permissive` accepts an invalid token: it may be valid for another service.
        ctx.observer?.hide(token);
        credential.remove(ctx);
        let claims: Claims | Promise<Claims>;
        try {
          claims = validator.validate(token);
        } catch (error) {
          return invalidToken(ctx, config.mode, discovery, error);
        }
        if (!(claims instanceof Promise)) return accept(ctx, config, token, claims);
        return claims.then(
          (valid) => accept(ctx, config, token, valid),
          (error: unknown) => invalidToken(ctx, config.mode, discovery, error),
        );
      },
      response: discovery.share,
      ...(typeof config.jwks === 'object' && 'file' in config.jwks
        ? { reloads: { file: resolveConfigFile(context.folder, config.jwks.file), changed: reread } }
        : {}),
      close,
    };
  },
});

function accept(
  ctx: RequestContext,
  { issuer }: McpAuthenticationConfig,
  token: string,
  claims: Claims,
): undefined {
  jwtClaims.set(ctx, claims);
  ctx.invalidateVariable('jwt');
  principal.set(ctx, `jwt:${issuer} ${subjectOf(claims, token)}`);
  ctx.observer?.policy({
    kind: 'mcpAuthentication',
    action: 'apply',
    reason: 'the token is valid',
    snapshot: { sub: claims['sub'] },
  });
  return undefined;
}

/**
 * Creates the validator of one policy and its HTTP client. `onBadKeys` is called if the inline key set is not JSON; the
 * validator then rejects all tokens.
 */
export function createValidator(
  config: McpAuthenticationConfig,
  folder: string,
  log: Log,
  { onBadKeys, meter }: { onBadKeys?: () => void; meter?: CallMeter } = {},
): { validator: TokenValidator; client: DocumentClient; close: () => Promise<void>; reread: () => void } {
  const client = new DocumentClient(meter);
  const rules = {
    issuer: config.issuer,
    audiences: config.audiences,
    required: config.jwtValidationOptions.requiredClaims,
    accessTokenType: providerOf(config.provider).accessTokenType,
  };
  const keys = new KeySet(keySource(config, folder, client, onBadKeys), log);
  return {
    validator: new TokenValidator(keys, rules),
    client,
    close: () => client.close(),
    reread: () => keys.reread(),
  };
}

function keySource(
  { issuer, jwks, provider }: McpAuthenticationConfig,
  folder: string,
  client: DocumentClient,
  onBadKeys?: () => void,
): KeySource {
  if (jwks === undefined)
    return () => client.fetch(providerOf(provider).keySetUrl(issuer), LIMITS.keySetBytes);
  if (typeof jwks === 'object' && 'url' in jwks) return () => client.fetch(jwks.url, LIMITS.keySetBytes);
  if (typeof jwks === 'object') {
    const file = resolveConfigFile(folder, jwks.file);
    return () => readDocument(file);
  }
  try {
    const value = JSON.parse(jwks) as unknown;
    return () => Promise.resolve({ value, lifetime: Number.POSITIVE_INFINITY });
  } catch {
    onBadKeys?.();
    return () => Promise.reject(new Error('the configured key set is not valid JSON'));
  }
}

/** Authorization server that clients are directed to: the gateway only for providers whose paths it knows. */
export function authorizationServerOf({
  authorizationServer = 'gateway',
  provider,
}: McpAuthenticationConfig): 'gateway' | 'issuer' {
  return providerOf(provider).isFronted ? authorizationServer : 'issuer';
}

/** Reports problems that would otherwise only be noticed by the first client. */
function reportProblems(config: McpAuthenticationConfig, context: CompileContext): void {
  const { jwks, resourceMetadata, authorizationServer } = config;
  if (authorizationServer === 'gateway' && authorizationServerOf(config) !== authorizationServer)
    context.at('authorizationServer').report({
      code: 'AGW0303',
      severity: 'warning',
      message: 'without `provider`, clients are directed to the issuer, not to the gateway',
      help: 'remove it, or set `provider` if the issuer is one of the supported kinds',
    });
  const missing =
    typeof jwks === 'object' && 'file' in jwks ? missingConfigFile(context.folder, jwks.file) : undefined;
  if (missing !== undefined)
    context.at('jwks', 'file').report({
      code: 'AGW0107',
      message: `${missing}; no token could be validated`,
      help: 'save the key set of the identity provider there, or set its URL as `jwks: { url: ... }`',
    });
  if (resourceMetadata.resource === undefined)
    context.report({
      code: 'AGW0305',
      severity: 'warning',
      message:
        '`resourceMetadata.resource` is missing: clients get the host of their request, without a path',
      help: 'set it to the URL that clients connect to, such as `http://localhost:3000/mcp`; strict clients compare the two',
      atKey: true,
    });
}

/** Subject of the token. Tokens without `sub` are distinguished by hash, since they may belong to different users. */
function subjectOf({ sub }: Claims, token: string): string {
  return typeof sub === 'string' ? `sub ${sub}` : `token ${hash('sha256', token, 'base64url')}`;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
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
