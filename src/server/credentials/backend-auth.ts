import { z } from 'zod';
import { elementsOf, membersOf } from '../../core/foreign.ts';
import { list } from '../../core/schema/mapping.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { isHeaderValue } from '../kernel/request/header-list.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { validatedToken } from '../kernel/request/shared-slots.ts';
import type { SignRequest } from '../transport/host-backend.ts';
import { readText, textOrFile } from '../transport/text-or-file.ts';
import { awsAuth, awsSchema } from './cloud/aws.ts';
import { azureAuth, azureSchema } from './cloud/azure.ts';
import { gcpAuth, gcpSchema } from './cloud/gcp.ts';
import { crossAppAccess, crossAppAccessSchema } from './cross-app-access.ts';
import { jwtSigner, jwtSignSchema } from './jwt-sign.ts';
import { type Placement, placementSchema } from './placement.ts';
import type { CallerToken, TokenExchange } from './subject-token.ts';
import { tokenExchange, tokenExchangeSchema } from './token-exchange.ts';

const location = placementSchema
  .nullish()
  .describe(
    'Place of the credential in the request. Default: `Authorization: Bearer` for a `host`, the header of the provider for models.',
  );

const METHODS = [
  'key',
  'passthrough',
  'jwtSign',
  'oauthTokenExchange',
  'crossAppAccess',
  'aws',
  'gcp',
  'azure',
] as const;

/** Settings that are expressions over the request, by path. */
export const BACKEND_AUTH_EXPRESSIONS = [
  'oauthTokenExchange.subjectToken.source.expression',
  'oauthTokenExchange.actorToken.source.expression',
  'oauthTokenExchange.additionalParams',
  'crossAppAccess.subjectToken.source.expression',
] as const;

/** The fields of `backendAuthSchema`. */
export const backendAuthFields = () => ({
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
  crossAppAccess: crossAppAccessSchema.optional(),
  aws: awsSchema.optional(),
  gcp: gcpSchema.optional(),
  azure: azureSchema.optional(),
  credentials: list(
    'Further credentials.',
    z.strictObject({
      key: textOrFile.meta({ secret: true }).describe('The credential, or `{ file: … }`.'),
      location: placementSchema.describe('Its place in the request.'),
    }),
  ),
});

/** Checks that one method is set, or only further credentials are. `own`: the methods of one kind of backend. */
export const exactlyOneMethod =
  (...own: readonly string[]) =>
  (value: Readonly<Record<string, unknown>>, context: z.core.$RefinementCtx): void => {
    const names = [...METHODS, ...own];
    const set = names.filter((name) => value[name] !== undefined).length;
    if (set === 1 || (set === 0 && elementsOf(value['credentials']).length > 0)) return;
    context.addIssue({
      code: 'custom',
      message: `expected exactly one of ${names.map((name) => `\`${name}\``).join(', ')}, or \`credentials\``,
      params: { code: 'AGW0105' },
    });
  };

/** Ways to authenticate at a backend, of which one is set; and further credentials. */
export const backendAuthSchema = z.lazy(() =>
  z
    .strictObject(backendAuthFields())
    .meta({
      elsewhere: {
        oauth:
          'users sign in at MCP servers only: write it in `policies.backendAuth` of the target, below `mcp.targets`',
      },
    })
    .superRefine(exactlyOneMethod())
    .describe('Sends a credential to the backend instead of that of the client.'),
);

export type BackendAuthConfig = z.output<typeof backendAuthSchema>;

/** One line for people, without secrets: the method, and whom its tokens are for. */
export function describeBackendAuth(config: object): string {
  const members = membersOf(config);
  const method = [...METHODS, 'oauth'].find((name) => members[name] !== undefined) ?? 'credentials';
  const { audience, audiences = audience } = membersOf(members[method]);
  const names = [audiences].flat().filter((name) => typeof name === 'string');
  return names.length === 0 ? method : `${method} for ${names.join(', ')}`;
}

/** A compiled credential for a backend: a token with its place, or a change of each request as it is sent. */
export type BackendCredential =
  | {
      readonly placement: Placement | undefined;
      /** Undefined: the request stays as it is. */
      readonly token: (ctx: RequestContext) => string | undefined | Promise<string>;
      /** The token for requests that are made for that of a client, or, if it is undefined, for none. May throw an `AppError`. */
      readonly read: (ctx: RequestContext | undefined) => CallerToken;
      /** Names of headers of the client that it is computed from; undefined if it does not depend on the request. */
      readonly readFrom?: readonly string[];
      /** The token, if it is always the same. */
      readonly key?: string;
      readonly close?: () => Promise<void>;
      /** Whether users sign in for it. */
      readonly signsIn?: boolean;
    }
  | { readonly sign: SignRequest };

/** Compiles all credentials of a section. What cannot be used is reported, and left out. */
export function compileBackendAuth(config: BackendAuthConfig, context: CompileContext): BackendCredential[] {
  return [methodOf(config, context), ...furtherOf(config, context)].filter((each) => each !== undefined);
}

/** The configured places of credentials in a section, with their paths. */
export function placesOf(
  config: BackendAuthConfig,
): { readonly path: readonly (string | number)[]; readonly placement: Placement }[] {
  const { key, passthrough, jwtSign, oauthTokenExchange, credentials } = config;
  const own = typeof key === 'object' && 'value' in key ? key.location : undefined;
  const named = [
    [['key', 'location'], own],
    [['passthrough', 'location'], passthrough?.location],
    [['jwtSign', 'location'], jwtSign?.location],
    [['oauthTokenExchange', 'authorizationLocation'], oauthTokenExchange?.authorizationLocation],
  ] as const;
  return [
    ...named.flatMap(([path, placement]) => (placement == null ? [] : [{ path, placement }])),
    ...credentials.map(({ location: placement }, index) => ({ path: ['credentials', index], placement })),
  ];
}

function methodOf(config: BackendAuthConfig, context: CompileContext): BackendCredential | undefined {
  const { key, passthrough, jwtSign, oauthTokenExchange, crossAppAccess: crossApp, aws, gcp, azure } = config;
  if (key !== undefined) {
    const isPlaced = typeof key === 'object' && 'value' in key;
    return isPlaced
      ? constant(key.value, key.location ?? undefined, context.at('key', 'value'))
      : constant(key, undefined, context.at('key'));
  }
  if (passthrough !== undefined)
    return {
      placement: passthrough.location ?? undefined,
      token: (ctx) => validatedToken.get(ctx),
      read: (ctx) => {
        const token = ctx && validatedToken.get(ctx);
        return { get: () => token };
      },
      readFrom: [],
    };
  if (oauthTokenExchange !== undefined) {
    const exchange = tokenExchange(oauthTokenExchange, context.at('oauthTokenExchange'));
    return exchange && exchanged(oauthTokenExchange.authorizationLocation, exchange);
  }
  if (crossApp !== undefined) {
    const exchange = crossAppAccess(crossApp, context.at('crossAppAccess'));
    return exchange && exchanged(undefined, exchange);
  }
  if (jwtSign !== undefined) {
    const token = jwtSigner(jwtSign, context.at('jwtSign'));
    return token && ofGateway(jwtSign.location ?? undefined, token);
  }
  const sign =
    (aws && awsAuth(aws, context.at('aws'))) ??
    (gcp && gcpAuth(gcp, context.at('gcp'))) ??
    (azure && azureAuth(azure, context.at('azure')));
  return sign && { sign };
}

/** A token that is the same for all requests, or signed for each. */
const ofGateway = (
  placement: Placement | undefined,
  token: () => string | Promise<string>,
): Extract<BackendCredential, { token: unknown }> => ({ placement, token, read: () => ({ get: token }) });

const exchanged = (
  placement: Placement | undefined,
  { read, headers, ...exchange }: TokenExchange & { close(): Promise<void> },
): BackendCredential => ({
  placement,
  ...exchange,
  read: (ctx) => (ctx === undefined ? { get: () => undefined } : read(ctx)),
  readFrom: headers,
});

function furtherOf(
  { credentials }: BackendAuthConfig,
  context: CompileContext,
): (BackendCredential | undefined)[] {
  return credentials.map(({ key, location: placement }, index) =>
    constant(key, placement, context.at('credentials', index, 'key')),
  );
}

/** A configured credential. Reports one that a header cannot have. */
function constant(
  source: z.output<typeof textOrFile>,
  placement: Placement | undefined,
  context: CompileContext,
): BackendCredential | undefined {
  const text = readText(source, context);
  if (text === undefined) return undefined;
  if (text !== '' && isHeaderValue(text)) return { ...ofGateway(placement, () => text), key: text };
  context.report({
    code: 'AGW0104',
    message: 'the credential is empty or contains characters that a header cannot have',
    help: 'set it to the token alone, on one line',
  });
  return undefined;
}
