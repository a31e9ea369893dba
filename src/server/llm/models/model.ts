import { z } from 'zod';
import { isCredentialName } from '../../../core/credentials.ts';
import { AppError } from '../../../core/errors.ts';
import { mapping } from '../../../core/schema/mapping.ts';
import { BACKEND_AUTH_EXPRESSIONS, type BackendAuthConfig } from '../../credentials/backend-auth.ts';
import { readsOfBody, rejectVariants } from '../../expressions/read-members.ts';
import { compileRules, reportPlainRules, ruleList } from '../../expressions/rules.ts';
import { requestScope } from '../../expressions/scopes.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { CompileContext } from '../../kernel/compile-context.ts';
import { headerChanges, headerChangesSchema } from '../../kernel/request/header-changes.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { compileTextMatches, headerMatchesSchema } from '../../kernel/routing/match.ts';
import { matchesHeaders } from '../../kernel/routing/router.ts';
import { type BackendUpstream, backendUpstream } from '../../transport/backend-upstream.ts';
import { readText } from '../../transport/text-or-file.ts';
import { type BackendTls, backendTlsSchema, compileBackendTls } from '../../transport/tls/backend-tls.ts';
import { compileCache, type ResponseCache, responseCacheSchema } from '../cache/response-cache.ts';
import { keyEncodings } from '../credentials.ts';
import { compileGuardrails, type Guardrails, guardrailsSchema } from '../guardrails/guardrails.ts';
import { paramsSchema } from '../providers/params.ts';
import type { Connection, ConnectOptions, ProviderFormat, ProviderKind } from '../providers/provider.ts';
import type { FieldChanges } from '../request/call-body.ts';
import { compilePassthrough, type Passthrough, passthroughSchema } from '../request/endpoints.ts';
import { type PromptCaching, promptCachingSchema } from '../request/prompt-caching.ts';
import { compileHealth, EndpointStats, type Health, healthSchema } from './health.ts';
import { compileModelAuth, isOwnCredential, type ModelAuth, modelAuthSchema } from './model-auth.ts';
import { modelNameSchema } from './model-patterns.ts';
import {
  chosenFormats,
  entryOf,
  fieldsSchema,
  kindOf,
  modelProviderSchema,
  type ProviderEntry,
  reportUnknown,
  reportUnreadParams,
} from './model-provider.ts';
import { compileTransformations, transformationSchema } from './transformations.ts';

/** `authorization` of a model: as the policy of that name, for calls of one model. */
const modelAuthorizationSchema = z
  .strictObject({
    rules: ruleList('CEL expressions, as in the policy `authorization`. A call that they reject gets 403.'),
  })
  .describe('Who may call this model, also as a target of a virtual model.');

/** Throws an `AppError` for a request that the rules of a model reject (403), or whose body may mean something else (400). */
type ModelAuthorization = (ctx: RequestContext) => void;

/** Compiles the rules of a model. */
function compileModelAuthorization(
  { rules }: z.output<typeof modelAuthorizationSchema>,
  context: CompileContext,
): ModelAuthorization {
  reportPlainRules(rules, context);
  const decide = compileRules(rules, 'require', requestScope, context);
  const reads = readsOfBody(decide.rules);
  return (ctx) => {
    const decision = decide(resolverFor(ctx));
    ctx.observer?.authorization('authorization', decision);
    if (!decision.allowed) throw new AppError('authorization_failed', { detail: decision.reason });
    rejectVariants(reads, ctx);
  };
}

export const modelSchema = z.lazy(() =>
  mapping('A model that clients may request.', {
    name: modelNameSchema.describe(
      'Model names that this entry matches: one name, `*`, `prefix*` or `*suffix`. The most specific entry is used; among equally specific ones, the first whose `matches` hold.',
    ),
    matches: z
      .array(z.strictObject({ headers: headerMatchesSchema.min(1) }))
      .min(1)
      .optional()
      .describe(
        'Conditions on the request, of which one must hold. Otherwise the next matching model is tried.',
      ),
    provider: modelProviderSchema,
    params: paramsSchema.prefault({}),
    auth: modelAuthSchema.optional(),
    authorization: modelAuthorizationSchema.optional(),
    visibility: z
      .enum(['public', 'internal'])
      .default('public')
      .describe('`internal`: not listed and not available to clients, only to virtual models.'),
    defaults: fieldsSchema
      .default({})
      .describe(
        'Request fields to set if the client did not set them. Those of chat completions are left out of calls of an API that does not have them.',
      ),
    overrides: fieldsSchema.default({}).describe('Request fields to always set.'),
    transformation: transformationSchema
      .default({})
      .describe(
        "Request fields as CEL expressions over the client's request (`llmRequest`). They take precedence over `overrides`. An expression that fails removes its field.",
      ),
    finalTransformation: transformationSchema
      .optional()
      .describe(
        "Like `transformation`, for fields of the request as it is sent: in the provider's format, after guardrails.",
      ),
    requestHeaders: headerChangesSchema.optional().describe('Changes to the headers sent to the provider.'),
    responseHeaders: headerChangesSchema.optional().describe('Changes to the headers sent to the client.'),
    guardrails: guardrailsSchema.optional(),
    promptCaching: promptCachingSchema.optional(),
    cache: responseCacheSchema.optional(),
    passthrough: passthroughSchema,
    health: healthSchema.optional(),
    backendTLS: backendTlsSchema.optional(),
  }).meta({
    elsewhere: {
      id: 'models are named by `name` alone: remove it',
      tls: 'write `backendTLS`',
      backendTunnel: 'tunnels to providers are not supported: they are connected to directly',
    },
  }),
);

/** Settings of models that are expressions of the request phase, as documented in agctl-expressions(7). */
export const modelRequestExpressions = [
  'models[].authorization.rules',
  ...BACKEND_AUTH_EXPRESSIONS.map((path) => `models[].auth.${path}`),
];

export type ModelConfig = z.output<typeof modelSchema>;

/** A compiled entry of `models`. */
export interface Model {
  readonly name: string;
  /** Its backend name in metrics and logs, if it is a separate backend. */
  readonly backend: string | undefined;
  readonly isPublic: boolean;
  /** Whether its `matches` hold for a request. */
  readonly matchesRequest: (ctx: RequestContext) => boolean;
  readonly provider: ProviderKind;
  readonly apiKey: string | undefined;
  /** Encodings of the key to redact in responses. */
  readonly keyEncodings: readonly string[];
  /** Model name for the provider, as `replacingName` completes it. Undefined: the requested name. */
  readonly model: string | undefined;
  /** Wire formats of the provider, preferred first. */
  readonly formats: readonly ProviderFormat[];
  /** Whether an estimate of the request's tokens is charged before the call. */
  readonly chargesEarly: boolean;
  readonly prepare: Connection['prepare'];
  readonly auth: ModelAuth | undefined;
  /** Rejects callers that may not use it. */
  readonly authorize: ModelAuthorization | undefined;
  /** Whether the client's credentials are removed, because the provider gets others. */
  readonly replacesCredentials: boolean;
  /** Whether the configuration gives it a credential. */
  readonly hasOwnCredential: boolean;
  /** If the provider is a service of AWS. */
  readonly aws: Connection['aws'];
  /** Whether `requestHeaders` set a credential. */
  readonly setsCredential: boolean;
  readonly upstream: BackendUpstream | undefined;
  /** Path up to `/chat/completions`, without a trailing slash. */
  readonly basePath: string;
  readonly fields: FieldChanges;
  /** Changes to the request as it is sent. */
  readonly finalFields: FieldChanges | undefined;
  readonly promptCaching: PromptCaching | undefined;
  /** Answers that are given again. */
  readonly cache: ResponseCache | undefined;
  readonly changeRequestHeaders: ((headers: HeaderList) => void) | undefined;
  readonly changeResponseHeaders: ((headers: HeaderList) => void) | undefined;
  readonly guardrails: Guardrails | undefined;
  /** Additional endpoints allowed for clients. */
  readonly passthrough: Passthrough;
  readonly stats: EndpointStats;
  readonly health: Health;
}

/** What entries of `backends[].ai` set beside the members of a model. */
export interface ModelOptions {
  /** Replaces the scheme and host of the provider's address. */
  readonly origin?: string | undefined;
  /** Replaces the path of the provider's address. */
  readonly path?: string | undefined;
  /** Path of every call, whatever its format. */
  readonly callPath?: string | undefined;
  readonly guardrail?: ConnectOptions['guardrail'];
  /** Instead of `auth` of the model. */
  readonly auth?: { readonly config: BackendAuthConfig; readonly context: CompileContext } | undefined;
  /** Instead of `backendTLS` of the model. */
  readonly tls?: { readonly config: BackendTls; readonly context: CompileContext } | undefined;
}

/** The path of a server whose provider kind has no address. */
const DEFAULT_PATH = '/v1';
/** Makes that path a URL; only the path of the URL is used. */
const NO_ORIGIN = 'http://localhost';

/** Address of a provider; undefined if there is none. */
export function providerUrl(
  baseUrl: string | undefined,
  { origin, path }: Pick<ModelOptions, 'origin' | 'path'>,
): URL | undefined {
  if (baseUrl === undefined && origin === undefined) return undefined;
  const own = new URL(baseUrl ?? DEFAULT_PATH, origin ?? NO_ORIGIN);
  return new URL(path ?? own.pathname, origin ?? own.origin);
}

export function compileModel(
  config: ModelConfig,
  entries: readonly ProviderEntry[],
  context: CompileContext,
  backend?: string,
  { origin, path, callPath, guardrail, auth: givenAuth, tls: givenTls }: ModelOptions = {},
): Model | undefined {
  // Compiled before the provider, so that their errors are reported even if the provider is unknown.
  const transformations = compileTransformations(config.transformation, context.at('transformation'));
  const final = compileTransformations(config.finalTransformation ?? {}, context.at('finalTransformation'));
  const health = compileHealth(config.health, context.at('health'));
  const conditions = compileConditions(config, context.at('matches'));
  const kind = kindOf(config.provider, entries);
  if (kind === undefined) {
    reportUnknown(config.provider, entries, context.at('provider'));
    return undefined;
  }
  reportUnreadParams(kind, config.params, context.at('params'));
  const entry = entryOf(config.provider, entries);
  const params = { ...entry?.params, ...config.params };
  const { promptCaching } = config;
  const authConfig = withRegion(givenAuth?.config ?? config.auth, params.awsRegion);
  if (promptCaching !== undefined && kind.hasPromptCaching !== true)
    context.at('promptCaching').report({
      code: 'AGW0105',
      severity: 'warning',
      message: `\`promptCaching\` has no effect for the provider \`${kind.key}\``,
      help: 'remove it: clients mark what is cached themselves, or the provider caches by itself',
      atKey: true,
    });
  const connection =
    kind.connect === undefined
      ? {}
      : kind.connect(params, context.at('params'), { guardrail, hasAuth: authConfig !== undefined });
  if (connection === undefined) return undefined;
  const baseUrl = params.baseUrl ?? connection.baseUrl ?? kind.baseUrl;
  const url = providerUrl(baseUrl, { origin, path });
  if (kind.answer === undefined && url === undefined) {
    context.report({ code: 'AGW0103', message: `provider \`${kind.key}\` needs \`params.baseUrl\`` });
    return undefined;
  }
  const apiKey = params.apiKey && readText(params.apiKey, context.at('params', 'apiKey'));
  reportUnusableKey(apiKey, authConfig, context);
  const auth = authConfig && compileModelAuth(authConfig, kind, givenAuth?.context ?? context.at('auth'));
  const formats = chosenFormats(connection.formats ?? kind.formats, params, context.at('params'));
  const ownTls = config.backendTLS && { config: config.backendTLS, context: context.at('backendTLS') };
  return {
    name: config.name,
    backend,
    isPublic: config.visibility === 'public',
    matchesRequest: conditions,
    provider: kind,
    apiKey,
    keyEncodings: [...(apiKey === undefined ? [] : [apiKey]), ...(auth?.keys ?? [])].flatMap(keyEncodings),
    model: params.model ?? kind.model,
    formats: callPath === undefined ? formats : formats.map((each) => ({ ...each, path: callPath })),
    chargesEarly: params.tokenize === true,
    prepare: connection.prepare,
    auth,
    authorize:
      config.authorization && compileModelAuthorization(config.authorization, context.at('authorization')),
    replacesCredentials:
      params.apiKey !== undefined || connection.hasCredentials === true || auth?.replacesCredentials === true,
    hasOwnCredential: params.apiKey !== undefined || auth !== undefined,
    aws: connection.aws,
    setsCredential: setsCredential(config),
    upstream:
      kind.answer !== undefined || url === undefined
        ? undefined
        : openProvider(url, givenTls ?? ownTls, context),
    basePath: url?.pathname.replace(/(?<!\/)\/+$/, '') ?? '',
    fields: {
      overrides: Object.entries({ ...entry?.overrides, ...config.overrides }),
      transformations,
      defaults: Object.entries({ ...entry?.defaults, ...config.defaults }),
    },
    finalFields: final.length === 0 ? undefined : { overrides: [], transformations: final, defaults: [] },
    promptCaching,
    cache: compileCache(config.cache, [config, entry, backend, url?.href], context),
    changeRequestHeaders:
      config.requestHeaders === undefined ? undefined : headerChanges(config.requestHeaders),
    changeResponseHeaders:
      config.responseHeaders === undefined ? undefined : headerChanges(config.responseHeaders),
    guardrails:
      config.guardrails === undefined
        ? undefined
        : compileGuardrails(config.guardrails, context.at('guardrails')),
    passthrough: compilePassthrough(config.passthrough),
    stats: new EndpointStats(),
    health,
  };
}

function openProvider({ origin }: URL, tls: ModelOptions['tls'], context: CompileContext): BackendUpstream {
  return backendUpstream(
    { origin },
    {
      meter: context.settings.callMeter('Primary', 'Llm'),
      log: context.log,
      ...(tls !== undefined && { tls: compileBackendTls(tls.config, tls.context) }),
    },
  );
}

/** `aws` of a model signs for the region of the provider, unless it names another. */
function withRegion(
  auth: BackendAuthConfig | undefined,
  region: string | undefined,
): BackendAuthConfig | undefined {
  if (auth?.aws === undefined || auth.aws.region !== undefined || region === undefined) return auth;
  return { ...auth, aws: { ...auth.aws, region } };
}

function reportUnusableKey(
  apiKey: string | undefined,
  auth: BackendAuthConfig | undefined,
  context: CompileContext,
): void {
  if (apiKey === undefined) return;
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    context
      .at('params', 'apiKey')
      .report({ code: 'AGW0104', message: 'the key has characters that are not valid in a header' });
  if (auth !== undefined)
    context.at('auth').report({
      code: 'AGW0105',
      message: '`auth` and `params.apiKey` are mutually exclusive',
      help: 'keep one of the two',
      atKey: true,
    });
}

function compileConditions({ matches }: ModelConfig, context: CompileContext): Model['matchesRequest'] {
  if (matches === undefined) return () => true;
  const compiled = matches.map(({ headers }, index) =>
    compileTextMatches(headers, context.at(index, 'headers')),
  );
  return (ctx) => compiled.some((headers) => matchesHeaders(headers, ctx));
}

/** The name of the entry for a requested model; undefined if the entry is for every name and the name is not its model. */
export function configuredName(
  { name, model }: Pick<Model, 'name' | 'model'>,
  requested: string,
): string | undefined {
  if (name !== '*') return name;
  return requested === model ? model : undefined;
}

/** Whether a model's provider gets a key from the configuration. */
export function sendsProviderKey(model: ModelConfig, entries: readonly ProviderEntry[]): boolean {
  const { provider, params } = model;
  const entry = entryOf(provider, entries);
  const isKeyed =
    params.apiKey !== undefined || entry?.params.apiKey !== undefined || isOwnCredential(model.auth);
  const isAmbient = kindOf(provider, entries)?.hasAmbientCredentials === true;
  return isKeyed || isAmbient || setsCredential(model);
}

const setsCredential = ({ requestHeaders }: ModelConfig): boolean =>
  Object.keys({ ...requestHeaders?.add, ...requestHeaders?.set }).some(isCredentialName);

/**
 * The name that replaces that of the client at the provider; undefined if there is none. `requested`: a name that the entry
 * matches. A `*` in `params.model` stands for the same text as that in `name`.
 */
export function replacingName(
  { name, model }: Pick<Model, 'name' | 'model'>,
  requested: string,
): string | undefined {
  if (model?.includes('*') !== true) return model;
  const [before, after] = name.split('*');
  if (before === undefined || after === undefined) return model;
  return model.replace('*', () => requested.slice(before.length, requested.length - after.length));
}

/** The backend name of a model of the top-level `llm`. */
export const modelBackend = (name: string, index: number): string => `llm:model:${name}:${index}`;
