import { z } from 'zod';
import { mapping, nonEmpty } from '../../core/schema/mapping.ts';
import { definePolicy } from '../kernel/policy.ts';
import { Slot } from '../kernel/slot.ts';
import type { AddedMessages } from './formats/format.ts';
import { compileGuardrails, type Guardrails, guardrailsSchema } from './guardrails/guardrails.ts';
import { matchesModel, patternProblem, specificityOf } from './models/model-patterns.ts';
import { fieldsSchema } from './models/model-provider.ts';
import { compileTransformations, transformationSchema } from './models/transformations.ts';
import type { FieldChanges } from './request/call-body.ts';
import { type PromptCaching, promptCachingSchema } from './request/prompt-caching.ts';
import { type RoutedCalls, routesSchema } from './request/routed-calls.ts';

const message = z.strictObject({
  role: z
    .enum(['system', 'developer', 'user', 'assistant'])
    .describe('Role of the message. In the Anthropic API, `system` and `developer` become system prompts.'),
  content: nonEmpty.describe('Text of the message.'),
});

const schema = mapping('Changes and checks of the calls of models on this route.', {
  defaults: fieldsSchema.default({}).describe('Request fields to set if the client did not set them.'),
  overrides: fieldsSchema.default({}).describe('Request fields to always set.'),
  transformations: transformationSchema
    .default({})
    .describe('As `transformation` of a model: request fields as CEL expressions.'),
  finalTransformations: transformationSchema
    .default({})
    .describe(
      'As `finalTransformation` of a model: fields of the request as it is sent to the provider, as CEL expressions.',
    ),
  prompts: mapping('Messages that are added to every conversation.', {
    prepend: z.array(message).default([]).describe("Messages before the client's."),
    append: z.array(message).default([]).describe("Messages after the client's."),
  }).optional(),
  modelAliases: z
    .record(nonEmpty, nonEmpty)
    .default({})
    .describe(
      'Model names that are replaced, by the requested name: one name, `prefix*` or `*suffix`. The most specific one counts.',
    ),
  promptCaching: promptCachingSchema
    .optional()
    .describe('As `promptCaching` of a model, for models without one. Without effect on other providers.'),
  promptGuard: guardrailsSchema
    .optional()
    .describe('Guardrails, before those of a model. As `llm.guardrails`.'),
  routes: routesSchema.optional(),
});

/** What `policies.ai` of the route does with a call. */
export interface AiPolicy {
  readonly fields: FieldChanges;
  readonly finalFields: FieldChanges | undefined;
  readonly prompts: AddedMessages | undefined;
  readonly promptCaching: PromptCaching | undefined;
  readonly guardrails: Guardrails | undefined;
  readonly routes: RoutedCalls | undefined;
  /** The name that replaces a requested one; the same name if there is none. Undefined without aliases. */
  readonly aliasOf: ((model: string) => string) | undefined;
}

/** The policy of a backend and that of its route as one: what the backend sets replaces what the route sets. */
function merged(own: AiPolicy, ofRoute: AiPolicy): AiPolicy {
  const either = <T>(set: readonly T[], fallback: readonly T[]): readonly T[] =>
    set.length > 0 ? set : fallback;
  const { fields } = ofRoute;
  return {
    fields: {
      overrides: either(own.fields.overrides, fields.overrides),
      transformations: either(own.fields.transformations, fields.transformations),
      defaults: either(own.fields.defaults, fields.defaults),
    },
    finalFields: own.finalFields ?? ofRoute.finalFields,
    prompts: own.prompts ?? ofRoute.prompts,
    promptCaching: own.promptCaching ?? ofRoute.promptCaching,
    guardrails: own.guardrails ?? ofRoute.guardrails,
    routes: own.routes ?? ofRoute.routes,
    aliasOf: own.aliasOf ?? ofRoute.aliasOf,
  };
}

/** Set for routes with `policies.ai`. */
export const aiPolicy = new Slot<AiPolicy>();

export const ai = definePolicy({
  key: 'ai',
  places: ['route', 'backend'],
  schema,
  trace: { kind: 'ai', stage: 'ai', isBackendPolicy: true },
  checkRoute(_config, { backends }, context) {
    if (backends.some(({ api }) => api === 'llm')) return;
    context.report({
      code: 'AGW0104',
      message: '`ai` has no effect on a route without models',
      help: 'add a backend `ai` or `llm`, or remove the policy',
    });
  },
  compile(config, context) {
    for (const name of Object.keys(config.modelAliases)) {
      const problem = patternProblem(name);
      if (problem !== undefined)
        context.at('modelAliases', name).report({ code: 'AGW0104', message: problem });
    }
    const aliases = Object.entries(config.modelAliases).toSorted(
      ([a], [b]) => specificityOf(b) - specificityOf(a),
    );
    const final = compileTransformations(config.finalTransformations, context.at('finalTransformations'));
    const compiled: AiPolicy = {
      fields: {
        overrides: Object.entries(config.overrides),
        transformations: compileTransformations(config.transformations, context.at('transformations')),
        defaults: Object.entries(config.defaults),
      },
      finalFields: final.length === 0 ? undefined : { overrides: [], transformations: final, defaults: [] },
      prompts: config.prompts,
      promptCaching: config.promptCaching,
      guardrails: config.promptGuard && compileGuardrails(config.promptGuard, context.at('promptGuard')),
      routes: config.routes,
      aliasOf:
        aliases.length === 0
          ? undefined
          : (model) => aliases.find(([pattern]) => matchesModel(pattern, model))?.[1] ?? model,
    };
    return {
      request(ctx) {
        const ofRoute = aiPolicy.get(ctx);
        aiPolicy.set(ctx, ofRoute === undefined ? compiled : merged(compiled, ofRoute));
        return undefined;
      },
      close: () => compiled.guardrails?.close(),
    };
  },
});
