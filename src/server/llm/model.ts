import { z } from 'zod';
import { isCredentialName } from '../../core/credentials.ts';
import { nearest } from '../../core/suggest.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { headerChanges, headerChangesSchema } from '../kernel/header-changes.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import { compileTextMatches, headerMatchesSchema } from '../kernel/match.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { matchesHeaders } from '../kernel/router.ts';
import { createUpstream, type Upstream } from '../transport/upstream.ts';
import type { FieldChanges } from './call-body.ts';
import { keyEncodings } from './credentials.ts';
import { type Passthrough, passthroughSchema } from './endpoints.ts';
import { compileGuardrails, type Guardrails, guardrailsSchema } from './guardrails/guardrails.ts';
import { compileHealth, EndpointStats, type Health, healthSchema } from './health.ts';
import { patternProblem } from './model-patterns.ts';
import { findProvider, providerNames } from './providers/index.ts';
import type { ProviderKind } from './providers/provider.ts';
import { llmRequestScope } from './variables.ts';

/** The specification: "Up to 64 transformations per policy". */
const MAX_TRANSFORMATIONS = 64;

/**
 * Credentials in `baseUrl` are rejected, because they would not be sent: requests use its host and path, and `apiKey`.
 */
const hasUserinfo = (url: string): boolean => /^[a-z]+:\/\/[^/?#]*@/i.test(url);

const paramsSchema = z
  .strictObject({
    apiKey: z
      .string()
      .min(1)
      .optional()
      .meta({ secret: true })
      .describe("API key for the provider. Default: the client's Authorization header is forwarded."),
    model: z
      .string()
      .min(1)
      .optional()
      .describe('Model name sent to the provider instead of the requested name.'),
    baseUrl: z
      .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
      .refine((url) => !hasUserinfo(url), {
        error: 'expected a URL without credentials: remove `user:password@`, and set `apiKey`',
      })
      .refine((url) => !/[?#]/.test(url), { error: 'expected a URL without a query or a fragment' })
      .optional()
      .describe(
        'URL up to `/chat/completions`, such as `http://127.0.0.1:8000/v1`. Default: that of the provider.',
      ),
  })
  .describe('Connection to the provider.');

const fieldsSchema = z.record(z.string().min(1), z.json());

export const modelSchema = z
  .strictObject({
    name: z
      .string()
      .min(1)
      .superRefine((name, context) => {
        const problem = patternProblem(name);
        if (problem !== undefined)
          context.addIssue({ code: 'custom', message: problem, params: { code: 'AGW0104' } });
      })
      .describe(
        'Model names that this entry matches: one name, `*`, `prefix*` or `*suffix`. The most specific entry is used; among equally specific ones, the first whose `matches` hold.',
      ),
    matches: z
      .array(z.strictObject({ headers: headerMatchesSchema.min(1) }))
      .min(1)
      .optional()
      .describe(
        'Conditions on the request, of which one must hold. Otherwise the next matching model is tried.',
      ),
    provider: z
      .union([
        z.string().min(1),
        z.strictObject({ reference: z.string().min(1).describe('Name of an entry of `llm.providers`.') }),
      ])
      .describe(
        'Kind of provider, such as `oaiCompat` or `echo`, or a reference to an entry of `llm.providers`.',
      ),
    params: paramsSchema.prefault({}),
    visibility: z
      .enum(['public', 'internal'])
      .default('public')
      .describe('`internal`: not listed and not available to clients, only to virtual models.'),
    defaults: fieldsSchema.default({}).describe('Request fields to set if the client did not set them.'),
    overrides: fieldsSchema.default({}).describe('Request fields to always set.'),
    transformation: z
      .record(z.string().min(1), z.string().min(1))
      .refine((value) => Object.keys(value).length <= MAX_TRANSFORMATIONS, {
        error: `expected at most ${MAX_TRANSFORMATIONS} transformations`,
      })
      .default({})
      .describe(
        "Request fields as CEL expressions over the client's request (`llmRequest`). They take precedence over `overrides`. An expression that fails removes its field.",
      ),
    requestHeaders: headerChangesSchema.optional().describe('Changes to the headers sent to the provider.'),
    responseHeaders: headerChangesSchema.optional().describe('Changes to the headers sent to the client.'),
    guardrails: guardrailsSchema.optional(),
    passthrough: passthroughSchema,
    health: healthSchema.optional(),
  })
  .describe('A model that clients may request.');

export const providerEntrySchema = z
  .strictObject({
    name: z.string().min(1).describe('Name for references from models.'),
    provider: z.string().min(1).describe('Kind of provider.'),
    params: paramsSchema.prefault({}),
    defaults: fieldsSchema.default({}).describe('Same as in a model; values of the model take precedence.'),
    overrides: fieldsSchema.default({}).describe('Same as in a model; values of the model take precedence.'),
  })
  .describe('A provider shared by several models.');

type ModelConfig = z.output<typeof modelSchema>;
export type ProviderEntry = z.output<typeof providerEntrySchema>;

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
  /** Model name for the provider. Undefined: the requested name. */
  readonly model: string | undefined;
  readonly upstream: Upstream | undefined;
  /** Path up to `/chat/completions`, without a trailing slash. */
  readonly basePath: string;
  readonly fields: FieldChanges;
  readonly changeRequestHeaders: ((headers: HeaderList) => void) | undefined;
  readonly changeResponseHeaders: ((headers: HeaderList) => void) | undefined;
  readonly guardrails: Guardrails | undefined;
  /** Additional endpoints allowed for clients. */
  readonly passthrough: Passthrough;
  readonly stats: EndpointStats;
  readonly health: Health;
}

export function compileModel(
  config: ModelConfig,
  entries: readonly ProviderEntry[],
  context: CompileContext,
  backend?: string,
): Model | undefined {
  // Compiled before the provider, so that their errors are reported even if the provider is unknown.
  const transformations = compileTransformations(config, context.at('transformation'));
  const health = compileHealth(config.health, context.at('health'));
  const conditions = compileConditions(config, context.at('matches'));
  const entry = referencedEntry(config, entries, context);
  const kindName = typeof config.provider === 'string' ? config.provider : entry?.provider;
  const kind = kindName === undefined ? undefined : findProvider(kindName);
  if (kind === undefined) {
    // An unknown provider of a shared entry is reported once, at the entry.
    if (typeof config.provider === 'string') reportUnknownProvider(config.provider, context.at('provider'));
    return undefined;
  }
  const params = { ...entry?.params, ...config.params };
  const baseUrl = params.baseUrl ?? kind.baseUrl;
  const url = baseUrl === undefined ? undefined : new URL(baseUrl);
  if (kind.answer === undefined && url === undefined) {
    context.report({ code: 'AGW0103', message: `provider \`${kind.key}\` needs \`params.baseUrl\`` });
    return undefined;
  }
  if (params.apiKey !== undefined && !/^[\x21-\x7e]+$/.test(params.apiKey)) {
    context
      .at('params', 'apiKey')
      .report({ code: 'AGW0104', message: 'the key has characters that are not valid in a header' });
  }
  return {
    name: config.name,
    backend,
    isPublic: config.visibility === 'public',
    matchesRequest: conditions,
    provider: kind,
    apiKey: params.apiKey,
    keyEncodings: params.apiKey === undefined ? [] : keyEncodings(params.apiKey),
    model: params.model,
    upstream:
      kind.answer !== undefined || url === undefined
        ? undefined
        : createUpstream(
            { origin: url.origin },
            { meter: context.settings.callMeter('Primary', 'Llm'), log: context.log },
          ),
    basePath: url?.pathname.replace(/\/+$/, '') ?? '',
    fields: {
      overrides: Object.entries({ ...entry?.overrides, ...config.overrides }),
      transformations,
      defaults: Object.entries({ ...entry?.defaults, ...config.defaults }),
    },
    changeRequestHeaders:
      config.requestHeaders === undefined ? undefined : headerChanges(config.requestHeaders),
    changeResponseHeaders:
      config.responseHeaders === undefined ? undefined : headerChanges(config.responseHeaders),
    guardrails:
      config.guardrails === undefined
        ? undefined
        : compileGuardrails(config.guardrails, context.at('guardrails')),
    passthrough: config.passthrough,
    stats: new EndpointStats(),
    health,
  };
}

function compileConditions({ matches }: ModelConfig, context: CompileContext): Model['matchesRequest'] {
  if (matches === undefined) return () => true;
  const compiled = matches.map(({ headers }, index) =>
    compileTextMatches(headers, context.at(index, 'headers')),
  );
  return (ctx) => compiled.some((headers) => matchesHeaders(headers, ctx));
}

/** Reports entries of `llm.providers` with an unknown provider, whether or not a model uses them. */
export function reportUnknownKinds(entries: readonly ProviderEntry[], context: CompileContext): void {
  for (const [index, { provider }] of entries.entries())
    if (findProvider(provider) === undefined) reportUnknownProvider(provider, context.at(index, 'provider'));
}

function reportUnknownProvider(name: string, context: CompileContext): void {
  const near = nearest(name, providerNames);
  context.report({
    code: 'AGW0104',
    message: `unknown provider \`${name}\``,
    ...(near === undefined ? {} : { help: `a provider with a similar name exists: \`${near}\`` }),
    notes: [`providers: ${providerNames.join(', ')}`],
  });
}

function compileTransformations(
  { transformation }: ModelConfig,
  context: CompileContext,
): Model['fields']['transformations'] {
  return Object.entries(transformation).map(([field, source]) => [
    field,
    context.at(field).cel(source, llmRequestScope),
  ]);
}

function referencedEntry(
  { provider }: ModelConfig,
  entries: readonly ProviderEntry[],
  context: CompileContext,
): ProviderEntry | undefined {
  if (typeof provider === 'string') return undefined;
  const entry = entries.find(({ name }) => name === provider.reference);
  if (entry === undefined) {
    const known = entries.map(({ name }) => `\`${name}\``).join(', ') || 'none';
    context.at('provider', 'reference').report({
      code: 'AGW0107',
      message: `unknown provider entry \`${provider.reference}\``,
      help: `entries of llm.providers: ${known}`,
    });
  }
  return entry;
}

/** Whether a model's provider gets a key from the configuration. */
export function sendsProviderKey(
  { provider, params, requestHeaders }: ModelConfig,
  entries: readonly ProviderEntry[],
): boolean {
  const entry =
    typeof provider === 'string' ? undefined : entries.find(({ name }) => name === provider.reference);
  const headers = Object.keys({ ...requestHeaders?.add, ...requestHeaders?.set });
  return params.apiKey !== undefined || entry?.params.apiKey !== undefined || headers.some(isCredentialName);
}

/** The backend name of a model of the top-level `llm`. */
export const modelBackend = (name: string, index: number): string => `llm:model:${name}:${index}`;
