import { z } from 'zod';
import { LIMITS } from '../../core/limits.ts';
import { isHttpUrl } from '../credentials/issuer-metadata.ts';
import { credentialLocation, locationSchema } from '../credentials/location.ts';
import { standingWork } from '../kernel/admission.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { ReloadedFile } from '../kernel/files/reloaded-file.ts';
import { definePolicy } from '../kernel/policy.ts';
import { DocumentClient } from '../transport/upstream/document-client.ts';
import { issuerKeys } from './jwt/issuer.ts';
import { type Claims, precheckToken, TokenError } from './jwt/jwt-precheck.ts';
import { KeySet } from './jwt/key-set.ts';
import { jwksSchema, keySource, reportKeySetProblems, watchedDocument } from './jwt/key-source.ts';
import { acceptToken, invalidToken, type TokenPolicy, withoutToken } from './jwt/outcome.ts';
import { TokenValidator } from './jwt/token-validator.ts';

const providerFields = {
  issuer: z.string().min(1).describe('Issuer of the tokens: must equal their `iss` claim.'),
  audiences: z
    .array(z.string().min(1))
    .nullish()
    .describe(
      'Accepted audiences: `aud` of a token must contain one of them. Without any, `aud` is not checked.',
    ),
  jwks: jwksSchema
    .optional()
    .describe('Signing keys: inline JSON, `url` or `file`. Default: `jwks_uri` of the metadata of `issuer`.'),
  jwtValidationOptions: z
    .strictObject({
      requiredClaims: z
        .array(z.enum(['exp', 'nbf', 'aud', 'iss', 'sub']))
        .default(['exp'])
        .describe('Claims that a token must have, besides `iss`.'),
    })
    .prefault({})
    .describe('Validation of tokens.'),
};

const providerSchema = z.strictObject(providerFields).superRefine(checkKeysAreKnown);
type ProviderConfig = z.output<typeof providerSchema>;

/** An issuer may be any text; only one that is a URL has metadata. */
function checkKeysAreKnown(
  { issuer, jwks }: { readonly issuer: string; readonly jwks?: unknown },
  context: z.RefinementCtx,
): void {
  if (jwks !== undefined || isHttpUrl(issuer)) return;
  context.addIssue({
    code: 'custom',
    message:
      'expected `jwks`: the issuer is not an http or https URL, at which metadata could say where its keys are',
    params: { code: 'AGW0105' },
  });
}

const schema = z.lazy(() =>
  z
    .strictObject({
      mode: z
        .enum(['strict', 'optional', 'permissive'])
        .default('optional')
        .describe(
          '`strict`: a valid token is required. `optional`: no token or a valid one. `permissive`: requests are never rejected; claims are set if the token is valid.',
        ),
      location: locationSchema
        .optional()
        .describe('Location of the token in the request; `Authorization: Bearer` by default.'),
      providers: z
        .array(providerSchema)
        .min(1)
        .optional()
        .describe('Several accepted issuers, instead of `issuer` and the keys beside it.'),
      issuer: providerFields.issuer.optional(),
      audiences: providerFields.audiences,
      jwks: providerFields.jwks,
      jwtValidationOptions: providerFields.jwtValidationOptions,
    })
    .superRefine(({ providers, issuer, jwks, audiences }, context) => {
      const single = { issuer, jwks, audiences: audiences ?? undefined };
      for (const [key, value] of Object.entries(single))
        if (providers !== undefined && value !== undefined)
          context.addIssue({
            code: 'custom',
            path: [key],
            message: `\`${key}\` belongs to one issuer, and \`providers\` has its own`,
            params: { code: 'AGW0105' },
          });
      if (issuer !== undefined) checkKeysAreKnown({ issuer, jwks }, context);
      else if (providers === undefined)
        context.addIssue({
          code: 'custom',
          message: 'expected `issuer`, or `providers`',
          params: { code: 'AGW0105' },
        });
    })
    .describe('Validates tokens (JWT) of identity providers, and sets `jwt`.'),
);

/** Sign-in with tokens of any issuer whose keys are configured, or located by its metadata. */
export const jwtAuth = definePolicy({
  key: 'jwtAuth',
  places: ['gateway', 'route'],
  restrictsClients: true,
  requestExpressions: ['location.expression'],
  schema,
  trace: { kind: 'jwt', stage: 'jwt auth', listedAs: 'jwt' },
  compile({ mode, location, ...config }, context) {
    if (mode !== 'strict')
      context.report({
        code: 'AGW0304',
        atKey: true,
        message: `\`jwtAuth\` lets requests without ${mode === 'optional' ? 'a token' : 'a valid token'} through`,
        help: 'set `mode: strict` to require one',
      });
    const credential = credentialLocation(location, context.at('location'));
    const client = new DocumentClient(context.settings.callMeter('Policy', 'Jwks'));
    const providers = providersOf(config).map(([provider, at]) =>
      openProvider(provider, client, context.at(...at)),
    );
    const issuers = new Issuers(providers);
    const policy: TokenPolicy = { key: 'jwtAuth', mode, standing: standingWork.get(context.settings) };
    return {
      identifies: {
        variable: 'jwt',
        takes: 'a token',
        isRequired: mode === 'strict',
        claimsOf: (token) => issuers.validate(token),
        ignoresInvalid: mode === 'permissive',
      },
      request(ctx) {
        const token = credential.read(ctx);
        if (token === undefined) return withoutToken(ctx, policy);
        ctx.observer?.hide(token);
        const accept = (claims: Claims): undefined => {
          // Mode `permissive` forwards a token that is not valid here: the backend may be the one who accepts it.
          credential.remove(ctx, token);
          return acceptToken(ctx, policy, token, claims);
        };
        try {
          const claims = issuers.validate(token);
          if (!(claims instanceof Promise)) return accept(claims);
          return claims.then(accept, (error: unknown) => invalidToken(ctx, policy, error));
        } catch (error) {
          return invalidToken(ctx, policy, error);
        }
      },
      reloads: providers.flatMap(({ reloads }) => reloads),
      served: () => {
        for (const { keys } of providers) void keys.reread();
      },
      close: () => client.close(),
    };
  },
});

/** The providers with their paths below the policy. */
function providersOf({
  providers,
  issuer = '',
  jwks,
  audiences,
  jwtValidationOptions,
}: Omit<z.output<typeof schema>, 'mode' | 'location'>): [ProviderConfig, (string | number)[]][] {
  return (
    providers?.map((provider, index) => [provider, ['providers', index]]) ?? [
      [{ issuer, jwks, audiences, jwtValidationOptions }, []],
    ]
  );
}

interface OpenProvider {
  readonly issuer: string;
  readonly validator: TokenValidator;
  readonly keys: KeySet;
  readonly reloads: readonly ReloadedFile[];
}

function openProvider(
  { issuer, audiences, jwks, jwtValidationOptions }: ProviderConfig,
  client: DocumentClient,
  context: CompileContext,
): OpenProvider {
  if (jwks !== undefined) reportKeySetProblems(jwks, context.at('jwks'));
  const source = jwks === undefined ? issuerKeys(issuer, client) : keySource(jwks, context.folder, client);
  const keys = new KeySet(source, context.log);
  const validator = new TokenValidator(keys, {
    issuer,
    audiences: audiences ?? [],
    required: jwtValidationOptions.requiredClaims,
    accessTokenType: undefined,
  });
  const at = context.path.join('.');
  context.inspection.bounds.push(
    {
      name: 'jwtAuth.tokens',
      at,
      max: LIMITS.validTokens,
      keepsLatest: true,
      used: () => validator.remembered,
    },
    { name: 'jwtAuth.keys', at, max: LIMITS.keys, used: () => validator.keys },
  );
  return { issuer, validator, keys, reloads: watchedDocument(jwks, context.folder, () => keys.reread()) };
}

/** Validates a token with the keys of its own issuer only: a key of one provider cannot sign for another. */
class Issuers {
  readonly #only: TokenValidator | undefined;
  readonly #byIssuer: ReadonlyMap<string, readonly TokenValidator[]>;
  readonly #expected: string;

  constructor(providers: readonly OpenProvider[]) {
    this.#only = providers.length === 1 ? providers[0]?.validator : undefined;
    const byIssuer = new Map<string, TokenValidator[]>();
    for (const { issuer, validator } of providers)
      byIssuer.set(issuer, [...(byIssuer.get(issuer) ?? []), validator]);
    this.#byIssuer = byIssuer;
    this.#expected = [...byIssuer.keys()].map((issuer) => `'${issuer.replace(/["\\']/g, '?')}'`).join(' or ');
  }

  /** Throws or rejects like `TokenValidator.validate`. */
  validate(token: string): Claims | Promise<Claims> {
    if (this.#only !== undefined) return this.#only.validate(token);
    const validators = this.#byIssuer.get(String(precheckToken(token).claims['iss'])) ?? [];
    const [first, ...others] = validators;
    if (first === undefined) throw new TokenError(`the token's issuer is not ${this.#expected}`);
    return others.length === 0 ? first.validate(token) : firstValid(validators, token);
  }
}

/** For an issuer that is listed several times, with other audiences or keys. Rejects with the last error. */
async function firstValid(validators: readonly TokenValidator[], token: string): Promise<Claims> {
  let failure: unknown;
  for (const validator of validators) {
    try {
      return await validator.validate(token);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
