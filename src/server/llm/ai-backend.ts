import { z } from 'zod';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { CompiledPolicy } from '../kernel/policy.ts';
import { backendTlsSchema } from '../transport/tls/backend-tls.ts';
import { ai as aiPolicyKind } from './ai-policy.ts';
import { countedBatches } from './batches/counted-batches.ts';
import { type LlmRuntime, maxBodySize } from './call/llm-runtime.ts';
import { handleCall } from './handle-call.ts';
import { dumpEndpoint, dumpProviders, modelView } from './inspect.ts';
import { llmApi, llmHeaderFields } from './llm-api.ts';
import { Failover } from './models/failover.ts';
import { compileModel, type Model, modelSchema, providerUrl } from './models/model.ts';
import { isOwnCredential, modelAuthSchema } from './models/model-auth.ts';
import { findByName } from './models/model-patterns.ts';
import { probeOf } from './probe.ts';
import { customProvider, customProviderSchema } from './providers/custom.ts';
import { findProvider, NO_COPILOT } from './providers/index.ts';
import { paramsSchema } from './providers/params.ts';

const { model, awsRegion, vertexRegion, vertexProject, azureResourceName, azureResourceType } =
  paramsSchema.shape;
const { azureApiVersion, azureProjectName } = paramsSchema.shape;

const plain = z.strictObject({ model });
const openAI = z.strictObject({ model }).meta({
  elsewhere: {
    moderation: 'write a guardrail `openAIModeration` under `policies.ai.promptGuard` of the route',
  },
});

/** Settings of each kind of provider, by its key. */
const KINDS = {
  openAI: openAI.describe('The OpenAI API, or a compatible server with `hostOverride`.'),
  anthropic: plain.describe('The Anthropic API.'),
  gemini: plain.describe('The Gemini API.'),
  vertex: mapping('Vertex AI on Google Cloud.', {
    model,
    region: vertexRegion,
    projectId: vertexProject.unwrap().describe('Google Cloud project.'),
  }),
  bedrock: mapping('Amazon Bedrock.', {
    model,
    region: awsRegion,
    guardrailIdentifier: nonEmpty
      .optional()
      .describe('Id or ARN of a Bedrock guardrail that checks prompts and answers.'),
    guardrailVersion: nonEmpty.optional().describe('Its version. Default: `DRAFT`.'),
  }),
  azure: mapping('Azure OpenAI.', {
    model,
    resourceName: azureResourceName.unwrap().describe('Azure resource: the first part of its host name.'),
    resourceType: azureResourceType,
    apiVersion: azureApiVersion,
    projectName: azureProjectName,
  }),
  custom: customProviderSchema,
};

/** Upstream's policies of a provider that are set in another place here. */
const ELSEWHERE_POLICIES = Object.fromEntries(
  ['authorization', 'requestHeaderModifier', 'responseHeaderModifier'].map((key) => [
    key,
    `write \`${key}\` under \`policies\` of the route`,
  ]),
);

/** Guardrails would repeat the largest part of the schema at one more depth of every place of a backend. */
const ownPolicySchema = aiPolicyKind.schema
  .omit({ promptGuard: true })
  .describe('Changes of calls, as the policy `ai` of the route.')
  .meta({ elsewhere: { promptGuard: 'write it under `policies.ai` of the route' } });

const entrySchema = z.lazy(() =>
  z.strictObject({
    name: nonEmpty.describe('Name of the provider in traces. Unique in the backend.'),
    provider: z
      .strictObject(
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one schema for each kind
        Object.fromEntries(Object.entries(KINDS).map(([key, schema]) => [key, schema.optional()])) as {
          [Key in keyof typeof KINDS]: z.ZodOptional<(typeof KINDS)[Key]>;
        },
      )
      .superRefine((kinds, context) => {
        if (Object.values(kinds).filter((kind) => kind !== undefined).length === 1) return;
        const keys = Object.keys(KINDS).map((key) => `\`${key}\``);
        context.addIssue({
          code: 'custom',
          message: `expected exactly one of ${keys.join(', ')}`,
          params: { code: 'AGW0105' },
        });
      })
      .describe('Kind of provider, with its settings.')
      .meta({ elsewhere: { copilot: NO_COPILOT } }),
    hostOverride: z
      .string()
      .regex(/^[^\s/@]+:\d+$/, { error: 'expected `host:port`' })
      .optional()
      .describe('Server that is called instead of that of the provider: `host:port`. Port 443: over TLS.'),
    pathPrefix: z
      .string()
      .regex(/^\/[^\s?#]*$/, { error: 'expected a path such as `/v1`, without a query' })
      .optional()
      .describe('Path up to `/chat/completions`. Default: that of the provider.'),
    pathOverride: z
      .string()
      .regex(/^\/[^\s?#]*$/, { error: 'expected a path such as `/api/chat`, without a query' })
      .optional()
      .describe('Path of every call, instead of that of its format below `pathPrefix`.'),
    tokenize: paramsSchema.shape.tokenize,
    policies: mapping('Policies of calls to this provider.', {
      backendAuth: modelAuthSchema.optional(),
      backendTLS: backendTlsSchema.optional(),
      ai: ownPolicySchema.optional(),
    })
      .meta({ elsewhere: ELSEWHERE_POLICIES })
      .optional(),
  }),
);

const providerSchema = entrySchema.superRefine(({ pathPrefix, pathOverride }, context) => {
  if (pathPrefix === undefined || pathOverride === undefined) return;
  context.addIssue({
    code: 'custom',
    path: ['pathOverride'],
    message: '`pathPrefix` and `pathOverride` are mutually exclusive',
    params: { code: 'AGW0105', at: 'key', help: 'keep one of the two' },
  });
});

type ProviderConfig = z.output<typeof providerSchema>;

const schema = z.lazy(() =>
  z
    .union([
      providerSchema,
      z.strictObject({
        groups: z
          .array(
            z.strictObject({
              providers: z
                .array(providerSchema)
                .min(1)
                .describe('Providers of the same priority: healthy and fast ones are preferred.'),
            }),
          )
          .min(1)
          .describe('Groups by descending priority. A call that fails is sent to the next provider.'),
      }),
    ])
    .describe('Models of one provider, or of several in groups of priority. Every model name is accepted.'),
);

/** Models of a route, in upstream's form: any model name, one provider or groups of them. */
export const ai = defineBackend({
  key: 'ai',
  api: 'llm',
  clientApi: llmApi,
  protocolFields: llmHeaderFields,
  countsTokens: true,
  schema,
  exposes: (config) =>
    providersOf(config).some(({ entry }) => isKeyed(entry))
      ? 'call models with your provider key'
      : undefined,
  connectsTo: (config) => ({
    kind: 'providers',
    areOfAws: providersOf(config).every(({ entry }) => entry.provider.bedrock !== undefined),
  }),
  describe: (config) => {
    const shown = providersOf(config).map(({ entry }) => {
      const fixed = modelOf(entry);
      return fixed === undefined ? entry.name : `${entry.name} (${fixed})`;
    });
    return `ai ${shown.join(', ')}`;
  },
  modelNames,
  view: (config, { endpoints }) => ({
    models: providersOf(config).map(({ entry }, index) =>
      modelView(
        {
          name: entry.name,
          provider: keyOf(entry),
          loggedProvider: findProvider(keyOf(entry))?.telemetryName ?? keyOf(entry),
          address: originOf(entry),
        },
        endpoints?.[index],
      ),
    ),
    modelNames: modelNames(config),
  }),
  dump: (config, place) => {
    const all = providersOf(config).map(({ entry, priority }, index) => {
      const { name, hostOverride, pathOverride, pathPrefix, tokenize, policies = {} } = entry;
      const shown = {
        ...{ name, pathOverride, pathPrefix, tokenize },
        provider: keyOf(entry),
        model: modelOf(entry),
        host: hostOverride,
        policies: place.policies(policies),
      };
      return { priority, endpoint: dumpEndpoint(shown, place.endpoint(index)) };
    });
    const priorities = [...new Set(all.map(({ priority }) => priority))];
    const groups = priorities.map((each) =>
      all.flatMap(({ priority, endpoint }) => (priority === each ? [endpoint] : [])),
    );
    return [dumpProviders(place.name, groups)];
  },
  probes: (config) =>
    providersOf(config).flatMap(({ entry, path }) => {
      const { custom } = entry.provider;
      const kind = custom === undefined ? findProvider(keyOf(entry)) : customProvider(custom);
      const place = { origin: originOf(entry), path: entry.pathPrefix };
      const { key } = entry.policies?.backendAuth ?? {};
      return probeOf({
        name: entry.name,
        kind,
        url: place.origin && providerUrl(kind?.baseUrl, place)?.href,
        key: typeof key === 'string' ? key : undefined,
        keyPath: [...path, 'policies', 'backendAuth', 'key'],
        hasCredential: isKeyed(entry),
        settings: { url: 'hostOverride', key: 'policies.backendAuth.key' },
      });
    }),
  open(config, context) {
    const models = new Map<string, Model>();
    const targets: { model: string; priority: number }[] = [];
    for (const { entry, priority, path } of providersOf(config)) {
      const at = context.at(...path);
      const compiled = compileProvider(entry, at);
      if (compiled === undefined) continue;
      if (models.has(entry.name))
        at.at('name').report({ code: 'AGW0106', message: `two providers are named \`${entry.name}\`` });
      models.set(entry.name, compiled);
      targets.push({ model: entry.name, priority });
    }
    const failover = new Failover(targets, (name) => models.get(name), 'ai', context);
    const all = [...models.values()];
    const runtime: LlmRuntime = {
      models: all,
      findModel: findByName(all),
      virtual: new Map(),
      listed: [...new Set(all.flatMap((each) => each.model ?? []))],
      startedAt: Math.floor(Date.now() / 1000),
      maxBodySize: maxBodySize(context.settings),
      limits: context.settings.limits,
      countedBatches: countedBatches.get(context.settings),
      requestGuardrails: [],
      responseGuardrails: [],
      ...(targets.length > 1 && { balanced: { failover, models } }),
      // Only if every provider that the call may reach replaces the name.
      fixedModel: all.every((each) => each.model !== undefined) ? all[0]?.model : undefined,
    };
    context.inspection.addBackend(context.path, () => ({ endpoints: all.map(({ stats }) => stats.info) }));
    const policy = compileOwnPolicy(config, context);
    return {
      handle: async (ctx) => {
        await policy?.request?.(ctx);
        return handleCall(ctx, runtime);
      },
      close: async () => {
        failover.close();
        await policy?.close?.();
        await Promise.all(all.flatMap((each) => [each.upstream?.close(), each.auth?.close()]));
      },
    };
  },
});

/** The policy `ai` of the only provider: as that of the backend. */
function compileOwnPolicy(
  config: z.output<typeof schema>,
  context: CompileContext,
): CompiledPolicy | undefined {
  if (!('groups' in config)) {
    const ai = config.policies?.ai;
    return ai && aiPolicyKind.compile({ ...ai, promptGuard: undefined }, context.at('policies', 'ai'));
  }
  // A call is changed before one of several providers is chosen.
  for (const { entry, path } of providersOf(config))
    if (entry.policies?.ai !== undefined)
      context.at(...path, 'policies', 'ai').report({
        code: 'AGW0104',
        message: 'the policy `ai` of one of several providers has no effect',
        help: 'write `ai` under `policies` of the route',
        atKey: true,
      });
  return undefined;
}

interface PlacedProvider {
  readonly entry: ProviderConfig;
  readonly priority: number;
  readonly path: readonly (string | number)[];
}

function providersOf(config: z.output<typeof schema>): PlacedProvider[] {
  if (!('groups' in config)) return [{ entry: config, priority: 0, path: [] }];
  return config.groups.flatMap(({ providers }, priority) =>
    providers.map((entry, index) => ({ entry, priority, path: ['groups', priority, 'providers', index] })),
  );
}

/** As the entry of `models` that has the same settings. */
function compileProvider(entry: ProviderConfig, context: CompileContext): Model | undefined {
  const { openAI, anthropic, gemini, vertex, bedrock, azure, custom } = entry.provider;
  const { backendAuth: auth, backendTLS: tls } = entry.policies ?? {};
  const settings = { ...openAI, ...anthropic, ...gemini, ...vertex, ...bedrock, ...azure };
  const params = {
    model: settings.model,
    awsRegion: bedrock?.region,
    vertexRegion: vertex?.region,
    vertexProject: vertex?.projectId,
    azureResourceName: azure?.resourceName,
    azureResourceType: azure?.resourceType,
    azureApiVersion: azure?.apiVersion,
    azureProjectName: azure?.projectName,
    tokenize: entry.tokenize,
  };
  const config = { name: '*', provider: custom === undefined ? keyOf(entry) : { custom }, params };
  const { guardrailIdentifier: identifier, guardrailVersion: version = 'DRAFT' } = bedrock ?? {};
  return compileModel(modelSchema.parse(config), [], context, undefined, {
    origin: originOf(entry),
    path: entry.pathPrefix,
    callPath: entry.pathOverride,
    auth: auth && { config: auth, context: context.at('policies', 'backendAuth') },
    tls: tls && { config: tls, context: context.at('policies', 'backendTLS') },
    guardrail: identifier === undefined ? undefined : { identifier, version },
  });
}

/** The key of the kind of provider. */
function keyOf({ provider }: ProviderConfig): string {
  return Object.entries(provider).find(([, settings]) => settings !== undefined)?.[0] ?? '';
}

/** The model that all calls to the provider name; undefined if they name that of the client. */
function modelOf({ provider }: ProviderConfig): string | undefined {
  return Object.values(provider).find((settings) => settings !== undefined)?.model;
}

/** Every name is accepted. */
function modelNames(config: z.output<typeof schema>): string[] {
  return [...new Set(providersOf(config).flatMap(({ entry }) => modelOf(entry) ?? [])), '*'];
}

function originOf({ hostOverride }: ProviderConfig): string | undefined {
  if (hostOverride === undefined) return undefined;
  return `${hostOverride.endsWith(':443') ? 'https' : 'http'}://${hostOverride}`;
}

/** Whether the provider gets a key of the configuration or the credentials of the machine. */
function isKeyed(entry: ProviderConfig): boolean {
  const { hasAmbientCredentials = false } = findProvider(keyOf(entry)) ?? {};
  return isOwnCredential(entry.policies?.backendAuth) || hasAmbientCredentials;
}
