import { z } from 'zod';
import { jwtSigner, jwtSignSchema } from '../credentials/jwt-sign.ts';
import { type Placement, placementSchema, placeOf } from '../credentials/placement.ts';
import { tokenExchange, tokenExchangeSchema } from '../credentials/token-exchange.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { isHeaderValue } from '../kernel/header-list.ts';
import { definePolicy } from '../kernel/policy.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { validatedToken } from '../kernel/shared-slots.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';

const location = placementSchema
  .nullish()
  .describe(
    'Place of the credential in the request. Default: `Authorization: Bearer` for a `host`, the header of the provider for models.',
  );

const METHODS = ['key', 'passthrough', 'jwtSign', 'oauthTokenExchange'] as const;

const schema = z
  .strictObject({
    key: z
      .union([textOrFile, z.strictObject({ value: textOrFile.describe('The key.'), location })])
      .optional()
      .meta({ secret: true })
      .describe('A key, or `{ file: … }`; as `{ value: …, location: … }` also with its place.'),
    passthrough: z
      .strictObject({ location })
      .optional()
      .describe('The token of the client that `jwtAuth` or `mcpAuthentication` has validated and removed.'),
    jwtSign: jwtSignSchema
      .extend({ location })
      .optional()
      .describe('A token (JWT) that is signed for each request.'),
    oauthTokenExchange: tokenExchangeSchema.optional(),
    credentials: z
      .array(
        z.strictObject({
          key: textOrFile.meta({ secret: true }).describe('The credential, or `{ file: … }`.'),
          location: placementSchema.describe('Its place in the request.'),
        }),
      )
      .default([])
      .describe('Further credentials.'),
  })
  .superRefine((value, context) => {
    const methods = METHODS.filter((name) => value[name] !== undefined).length;
    if (methods === 1 || (methods === 0 && value.credentials.length > 0)) return;
    context.addIssue({
      code: 'custom',
      message: `expected exactly one of ${METHODS.map((name) => `\`${name}\``).join(', ')}, or \`credentials\``,
      params: { code: 'AGW0105' },
    });
  })
  .describe('Sends a credential to the backend instead of that of the client.')
  .meta({
    elsewhere: {
      aws: 'not built for services: models of Bedrock get the credentials of AWS without a setting',
      gcp: 'not built for services: models of Vertex AI get the credentials of Google without a setting',
      azure: 'not built for services: models of Azure get the credentials of Azure without a setting',
      crossAppAccess:
        'not built: send the token of the client (`passthrough`), or one of the gateway (`jwtSign`)',
    },
  });

type Config = z.output<typeof schema>;

/** Adds a credential to a request for a backend. */
interface Authenticate {
  apply(ctx: RequestContext): Promise<void> | void;
  close?(): Promise<void>;
}

/** Sends a credential to the backend instead of that of the client. */
export const backendAuth = definePolicy({
  key: 'backendAuth',
  places: ['route', 'backend'],
  isForBackendCall: true,
  schema,
  requestExpressions: [
    'oauthTokenExchange.subjectToken.source.expression',
    'oauthTokenExchange.actorToken.source.expression',
    'oauthTokenExchange.additionalParams',
  ],
  trace: { kind: 'backend_auth', stage: 'backend auth', isBackendPolicy: true },
  checkRoute(config, { backends }, context) {
    if (backends.some((backend) => 'mcp' in backend))
      context.report({
        code: 'AGW0104',
        message: '`backendAuth` of a route has no effect on MCP servers',
        help: 'set `policies.backendAuth` of each of the `targets` that needs it',
      });
    if (!backends.some((backend) => 'ai' in backend || 'llm' in backend)) return;
    for (const path of placesOf(config))
      context.at(...path).report({
        code: 'AGW0104',
        message: 'the credential of a model is always in the header that its provider expects',
        help: 'remove it',
      });
  },
  compile(config, context) {
    const steps = [methodOf(config, context), ...furtherOf(config, context)].filter(
      (step) => step !== undefined,
    );
    return {
      request(ctx) {
        const waits = steps.map((step) => step.apply(ctx)).filter((result) => result instanceof Promise);
        return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
      },
      async close() {
        for (const step of steps) await step.close?.();
      },
    };
  },
});

/** Paths of configured places. */
function placesOf({
  key,
  passthrough,
  jwtSign,
  oauthTokenExchange,
  credentials,
}: Config): (string | number)[][] {
  const isPlaced = (value: unknown): boolean =>
    (value as { location?: Placement } | undefined)?.location != null;
  return [
    ...Object.entries({ key, passthrough, jwtSign })
      .filter(([, value]) => typeof value === 'object' && isPlaced(value))
      .map(([name]) => [name, 'location']),
    ...(oauthTokenExchange?.authorizationLocation === undefined
      ? []
      : [['oauthTokenExchange', 'authorizationLocation']]),
    ...credentials.map((_, index) => ['credentials', index]),
  ];
}

function methodOf(
  { key, passthrough, jwtSign, oauthTokenExchange }: Config,
  context: CompileContext,
): Authenticate | undefined {
  if (key !== undefined) {
    const isPlaced = typeof key === 'object' && 'value' in key;
    return isPlaced
      ? constant(key.value, key.location ?? undefined, context.at('key', 'value'))
      : constant(key, undefined, context.at('key'));
  }
  if (passthrough !== undefined) {
    const place = placeOf(passthrough.location ?? undefined, context);
    return {
      apply(ctx) {
        const token = validatedToken.get(ctx);
        if (token !== undefined) place(ctx, token);
      },
    };
  }
  if (oauthTokenExchange !== undefined) {
    const exchange = tokenExchange(oauthTokenExchange, context.at('oauthTokenExchange'));
    const place = placeOf(oauthTokenExchange.authorizationLocation, context);
    return (
      exchange && {
        apply: async (ctx) => place(ctx, hidden(ctx, await exchange.token(ctx))),
        close: () => exchange.close(),
      }
    );
  }
  if (jwtSign === undefined) return undefined;
  const sign = jwtSigner(jwtSign, context.at('jwtSign'));
  const place = placeOf(jwtSign.location ?? undefined, context);
  return sign && { apply: async (ctx) => place(ctx, hidden(ctx, await sign())) };
}

function furtherOf({ credentials }: Config, context: CompileContext): (Authenticate | undefined)[] {
  return credentials.map(({ key, location: placement }, index) =>
    constant(key, placement, context.at('credentials', index, 'key')),
  );
}

/** A configured credential. Reports one that a header cannot have. */
function constant(
  source: z.output<typeof textOrFile>,
  placement: Placement | undefined,
  context: CompileContext,
): Authenticate | undefined {
  const text = readText(source, context);
  const place = placeOf(placement, context);
  if (text === undefined) return undefined;
  if (text !== '' && isHeaderValue(text)) return { apply: (ctx) => place(ctx, hidden(ctx, text)) };
  context.report({
    code: 'AGW0104',
    message: 'the credential is empty or contains characters that a header cannot have',
    help: 'set it to the token alone, on one line',
  });
  return undefined;
}

function hidden(ctx: RequestContext, credential: string): string {
  ctx.observer?.hide(credential, true);
  return credential;
}
