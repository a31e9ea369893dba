import { z } from 'zod';
import { nearest } from '../../core/suggest.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { headerChanges, headerChangesSchema } from '../kernel/header-changes.ts';
import type { HeaderList } from '../kernel/header-list.ts';
import { compileTextMatches } from '../kernel/match.ts';
import { headerMatchesSchema } from '../kernel/match-schema.ts';
import type { RequestContext } from '../kernel/request-context.ts';
import { matchesHeaders } from '../kernel/router.ts';
import { createUpstream, type Upstream } from '../transport/upstream.ts';
import { EndpointStats } from './endpoint-stats.ts';
import { compileGuardrails, type Guardrails, guardrailsSchema } from './guardrails/guardrails.ts';
import { compileHealth, type Health, healthSchema } from './health.ts';
import { keyForms } from './key-echo.ts';
import { patternProblem } from './models.ts';
import { type Passthrough, passthroughSchema } from './passthrough.ts';
import { findProvider, providerNames } from './providers/index.ts';
import type { ProviderKind } from './providers/provider.ts';
import type { FieldChanges } from './transform.ts';
import { llmRequestScope } from './variables.ts';

/** The specification: "Up to 64 transformations per policy". */
const MAX_TRANSFORMATIONS = 64;

/** Credentials in a URL would never be sent: what goes to the provider is made of host, path and `apiKey`. */
const hasUserinfo = (url: string): boolean => /^[a-z]+:\/\/[^/?#]*@/i.test(url);

const paramsSchema = z
  .strictObject({
    apiKey: z
      .string()
      .min(1)
      .optional()
      .meta({ secret: true })
      .describe("Key that the provider gets. Without one, the client's own Authorization header goes on."),
    model: z
      .string()
      .min(1)
      .optional()
      .describe('Model that the provider is asked for, in place of the name in the request.'),
    baseUrl: z
      .url({ protocol: /^https?$/, error: 'expected an http or https URL' })
      .refine((url) => !hasUserinfo(url), {
        error: 'expected a URL without credentials: remove `user:password@`, and set `apiKey`',
      })
      .refine((url) => !/[?#]/.test(url), { error: 'expected a URL without a query or a fragment' })
      .optional()
      .describe(
        "URL before `/chat/completions`, as in `http://127.0.0.1:8000/v1`; the provider's own by default.",
      ),
  })
  .describe('How the provider is reached.');

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
        'Model names that this entry answers: one name, `*`, `prefix*` or `*suffix`. The most specific entry wins; of several that are as specific, the first whose `matches` hold.',
      ),
    matches: z
      .array(z.strictObject({ headers: headerMatchesSchema.min(1) }))
      .min(1)
      .optional()
      .describe(
        'Conditions on the request; one entry of the list must hold. Otherwise the next model that answers the name is tried.',
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
      .describe('`internal`: left out of the list of models and not to be asked for.'),
    defaults: fieldsSchema.default({}).describe('Request fields to set when the client left them out.'),
    overrides: fieldsSchema.default({}).describe('Request fields to set always.'),
    transformation: z
      .record(z.string().min(1), z.string().min(1))
      .refine((value) => Object.keys(value).length <= MAX_TRANSFORMATIONS, {
        error: `expected at most ${MAX_TRANSFORMATIONS} transformations`,
      })
      .default({})
      .describe(
        "Request fields as CEL expressions over the client's request (`llmRequest`). They beat `overrides`; one that fails removes its field.",
      ),
    requestHeaders: headerChangesSchema
      .optional()
      .describe('Changes of the headers that the provider receives.'),
    responseHeaders: headerChangesSchema
      .optional()
      .describe('Changes of the headers that the client receives.'),
    guardrails: guardrailsSchema.optional(),
    passthrough: passthroughSchema,
    health: healthSchema.optional(),
  })
  .describe('A model that clients may ask for.');

export const providerEntrySchema = z
  .strictObject({
    name: z.string().min(1).describe('Name that models refer to.'),
    provider: z.string().min(1).describe('Kind of provider.'),
    params: paramsSchema.prefault({}),
    defaults: fieldsSchema.default({}).describe('As in a model; the model wins.'),
    overrides: fieldsSchema.default({}).describe('As in a model; the model wins.'),
  })
  .describe('A provider that several models share.');

type ModelConfig = z.output<typeof modelSchema>;
export type ProviderEntry = z.output<typeof providerEntrySchema>;

/** A model entry, compiled. */
export interface Model {
  readonly name: string;
  /** Its label in metrics, where it is a backend of its own. */
  readonly backend: string | undefined;
  readonly isPublic: boolean;
  /** Whether its conditions hold for a request. */
  readonly takes: (ctx: RequestContext) => boolean;
  readonly provider: ProviderKind;
  readonly apiKey: string | undefined;
  /** Spellings in which the provider may repeat it. */
  readonly keyForms: readonly string[];
  /** Model name for the provider, when it is another than the client's. */
  readonly model: string | undefined;
  readonly upstream: Upstream | undefined;
  /** Path before `/chat/completions`, without a slash at its end. */
  readonly basePath: string;
  readonly fields: FieldChanges;
  readonly changeRequestHeaders: ((headers: HeaderList) => void) | undefined;
  readonly changeResponseHeaders: ((headers: HeaderList) => void) | undefined;
  readonly guardrails: Guardrails | undefined;
  /** Calls that are open besides those of every model. */
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
  // Before the provider, which may be unknown: a mistake in them is to be seen then too.
  const transformations = compileTransformations(config, context.at('transformation'));
  const health = compileHealth(config.health, context.at('health'));
  const conditions = compileConditions(config, context.at('matches'));
  const entry = referencedEntry(config, entries, context);
  const kindName = typeof config.provider === 'string' ? config.provider : entry?.provider;
  const kind = kindName === undefined ? undefined : findProvider(kindName);
  if (kind === undefined) {
    // That of an entry is reported there, once.
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
      .report({ code: 'AGW0104', message: 'the key has characters that cannot stand in a header' });
  }
  return {
    name: config.name,
    backend,
    isPublic: config.visibility === 'public',
    takes: conditions,
    provider: kind,
    apiKey: params.apiKey,
    keyForms: params.apiKey === undefined ? [] : keyForms(params.apiKey),
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

function compileConditions({ matches }: ModelConfig, context: CompileContext): Model['takes'] {
  if (matches === undefined) return () => true;
  const compiled = matches.map(({ headers }, index) =>
    compileTextMatches(headers, context.at(index, 'headers')),
  );
  return (ctx) => compiled.some((headers) => matchesHeaders(headers, ctx));
}

/** Reports entries of `llm.providers` of a kind that does not exist, whether or not a model uses them. */
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

/** A model of the top-level `llm` as a backend of its own. */
export const modelBackend = (name: string, index: number): string => `llm:model:${name}:${index}`;
