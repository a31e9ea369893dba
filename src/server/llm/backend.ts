import { z } from 'zod';
import { mapping } from '../../core/schema/mapping.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import { countedBatches } from './batches/counted-batches.ts';
import { type LlmRuntime, maxBodySize } from './call/llm-runtime.ts';
import { compileGuardrails, guardrailPolicy, guardrailsSchema } from './guardrails/guardrails.ts';
import { handleCall } from './handle-call.ts';
import { clientModels, dumpLlm, dumpLlmModels, modelView } from './inspect.ts';
import { llmApi, llmHeaderFields } from './llm-api.ts';
import { compileModel, modelBackend, modelSchema, sendsProviderKey } from './models/model.ts';
import { isOwnCredential } from './models/model-auth.ts';
import { bySpecificity, findByName, reportUnreachableModels } from './models/model-patterns.ts';
import {
  entryOf,
  kindOf,
  providerEntrySchema,
  reportUnknownKinds,
  shownProvider,
} from './models/model-provider.ts';
import { compileVirtualModels, virtualModelSchema } from './models/virtual-models.ts';
import { probeOf } from './probe.ts';

/** Fields of an LLM backend and of the simplified top-level `llm`. */
export const llmFields = {
  models: z.array(modelSchema).min(1).describe('Models that clients may request.'),
  virtualModels: z
    .array(virtualModelSchema)
    .default([])
    .describe('Names that resolve to one of several models. They take precedence over `models`.'),
  providers: z.array(providerEntrySchema).default([]).describe('Providers shared by several models.'),
  guardrails: guardrailsSchema
    .optional()
    .describe('Guardrails for all models. The guardrails of a model run after them.'),
};

export const llm = defineBackend({
  key: 'llm',
  api: 'llm',
  clientApi: llmApi,
  protocolFields: llmHeaderFields,
  countsTokens: true,
  schema: mapping('LLM providers behind one OpenAI-compatible endpoint.', {
    ...llmFields,
    policies: mapping('`guardrails`: as `guardrails` of the backend, after them.', {
      guardrails: guardrailsSchema.optional(),
    }).optional(),
  }),
  exposes: ({ models, providers }) =>
    models.some((model) => sendsProviderKey(model, providers))
      ? 'call models with your provider key'
      : undefined,
  connectsTo: ({ models, providers }) => ({
    kind: 'providers',
    areOfAws: models.every(({ provider }) => kindOf(provider, providers)?.key === 'bedrock'),
  }),
  describe: (config) => `llm ${clientModels(config).join(', ')}`,
  ownPolicies: ({ guardrails, policies, models }) => [
    ...guardrailPolicy(guardrails, ['guardrails']),
    ...guardrailPolicy(policies?.guardrails, ['policies', 'guardrails']),
    ...models.flatMap((model, index) =>
      guardrailPolicy(model.guardrails, ['models', index, 'guardrails'], model.name),
    ),
  ],
  modelNames: clientModels,
  providerModels: ({ models, providers }) =>
    models.flatMap(({ name, provider, params }) => {
      const model = params.model ?? entryOf(provider, providers)?.params.model ?? name;
      const { telemetryName } = kindOf(provider, providers) ?? {};
      return telemetryName === undefined || model.includes('*')
        ? []
        : [{ name, provider: telemetryName, model }];
    }),
  view: (config, { endpoints }) => ({
    models: config.models.map(({ name, provider, params }, index) =>
      modelView(
        {
          name,
          provider: shownProvider(provider),
          loggedProvider: kindOf(provider, config.providers)?.telemetryName ?? shownProvider(provider),
          address: params.baseUrl,
        },
        endpoints?.[index],
      ),
    ),
    modelNames: clientModels(config),
  }),
  dump: dumpLlm,
  dumpModels: dumpLlmModels,
  probes: ({ models, providers }) =>
    models.flatMap(({ name, provider, params, auth, requestHeaders }, index) => {
      const entry = entryOf(provider, providers);
      const owner =
        params.apiKey !== undefined || entry === undefined
          ? ['models', index]
          : ['providers', providers.indexOf(entry)];
      const key = params.apiKey ?? entry?.params.apiKey;
      return probeOf({
        name,
        kind: kindOf(provider, providers),
        url: params.baseUrl ?? entry?.params.baseUrl,
        key: typeof key === 'string' ? key : undefined,
        keyPath: [...owner, 'params', 'apiKey'],
        // A key in a file is read by the gateway only.
        hasCredential: isOwnCredential(auth) || typeof key === 'object',
        headers: requestHeaders,
        settings: { url: 'params.baseUrl', key: 'params.apiKey' },
      });
    }),
  open(config, context) {
    const isTopLevel = context.path[0] === 'llm';
    const compiled = config.models.flatMap(
      // Models of the top-level section are separate backends, also in dumps.
      (model, index) =>
        compileModel(
          model,
          config.providers,
          context.at('models', index),
          isTopLevel ? `/${modelBackend(model.name, index)}` : undefined,
        ) ?? [],
    );
    reportUnknownKinds(config.providers, context.at('providers'));
    reportDuplicateEntries(config.providers, context);
    reportUnreachableModels(config.models, config.virtualModels, context);
    const configured = config.models.map(({ name }) => name);
    const virtual = compileVirtualModels(
      config.virtualModels,
      { models: compiled, configured },
      context.at('virtualModels'),
    );
    const guardrails = [
      ...(config.guardrails === undefined
        ? []
        : [compileGuardrails(config.guardrails, context.at('guardrails'))]),
      ...(config.policies?.guardrails === undefined
        ? []
        : [compileGuardrails(config.policies.guardrails, context.at('policies', 'guardrails'))]),
    ];
    const models = bySpecificity(compiled);
    const runtime: LlmRuntime = {
      models,
      findModel: findByName(models),
      virtual,
      listed: [
        ...new Set(compiled.filter(({ isPublic }) => isPublic).map(({ name }) => name)),
        ...virtual.keys(),
      ],
      startedAt: Math.floor(Date.now() / 1000),
      maxBodySize: maxBodySize(context.settings),
      limits: context.settings.limits,
      countedBatches: countedBatches.get(context.settings),
      requestGuardrails: guardrails.flatMap(({ request }) => request),
      responseGuardrails: guardrails.flatMap(({ response }) => response),
    };
    context.inspection.addBackend(context.path, () => ({
      endpoints: compiled.map(({ stats }) => stats.info),
    }));
    return {
      handle: (ctx) => handleCall(ctx, runtime),
      close: async () => {
        for (const { failover } of virtual.values()) failover?.close();
        await Promise.all([
          ...guardrails.map((each) => each.close()),
          ...compiled.flatMap((model) => [
            model.upstream?.close(),
            model.guardrails?.close(),
            model.auth?.close(),
          ]),
        ]);
      },
    };
  },
});

function reportDuplicateEntries(
  entries: readonly { readonly name: string }[],
  context: CompileContext,
): void {
  for (const [index, { name }] of entries.entries()) {
    if (entries.findIndex((entry) => entry.name === name) === index) continue;
    context
      .at('providers', index, 'name')
      .report({ code: 'AGW0106', message: `two provider entries are named \`${name}\`` });
  }
}
