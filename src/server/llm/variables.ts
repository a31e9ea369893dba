import type { Declaration } from '../expressions/cel/declarations.ts';
import { toCel } from '../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../expressions/scopes.ts';
import { defined, defineVariable, memberDeclarations, memberValues } from '../expressions/variable.ts';
import { omitsOriginal } from '../kernel/request/shared-slots.ts';
import { llmFacts } from './facts.ts';
import { type LlmCall, llmCall } from './llm-call.ts';

/** Token classes of costs and rates. */
const TOKENS = {
  input: { type: 'double', doc: 'Input tokens that belong to no other class.' },
  output: { type: 'double', doc: 'Output tokens that belong to no other class.' },
  cacheRead: { type: 'double', doc: "Input tokens read from the provider's cache." },
  cacheWrite: { type: 'double', doc: "Input tokens written to the provider's cache." },
  cacheWrite1h: {
    type: 'double',
    doc: "Input tokens written to the provider's cache for an hour, if they have a rate of their own.",
  },
  reasoning: { type: 'double', doc: 'Reasoning tokens.' },
  inputAudio: { type: 'double', doc: 'Audio input tokens.' },
  outputAudio: { type: 'double', doc: 'Audio output tokens.' },
} as const;

const LLM: Declaration = {
  type: 'map',
  doc: 'The LLM call.',
  members: {
    ...memberDeclarations(llmFacts),
    params: {
      type: 'map',
      doc: "The client's unchanged request. In the log, absent if guardrails have changed or rejected it.",
    },
    cost: {
      type: 'map',
      doc: 'Cost of the call in USD.',
      members: { total: { type: 'double', doc: 'Sum of all classes.' }, ...TOKENS },
    },
    prompt: {
      type: 'list',
      doc: 'The prompt after guardrails: `role`, `content` and `toolCalls` of each message, without images. `toolCalls`, as below, only if an earlier turn of the model has some.',
    },
    completion: {
      type: 'list',
      doc: 'The output sent to the client: one text per choice; streams are assembled.',
    },
    toolCalls: {
      type: 'list',
      doc: 'Tool calls requested by the model: `id`, `name` and `arguments` of each.',
    },
    costRates: { type: 'map', doc: 'Catalog prices in USD per million tokens.', members: TOKENS },
  },
  elsewhere: [
    'providerInputTokens',
    'inputImageTokens',
    'inputTextTokens',
    'outputImageTokens',
    'outputTextTokens',
    'providerTotalTokens',
    'serviceTier',
    'countTokens',
  ],
};

export const llmVariable = defineVariable('llm', LLM, (ctx) => {
  const call = llmCall.get(ctx);
  if (call === undefined) return null;
  return toCel({ ...llmMembers(call), ...(!omitsOriginal(ctx) && { params: call.request }) });
});

export const llmRequestVariable = defineVariable(
  'llmRequest',
  { type: 'map', doc: "The client's LLM request: its unchanged JSON body." },
  (ctx) => toCel(llmCall.get(ctx)?.request ?? null),
);

function llmMembers(call: LlmCall): object {
  const { cost } = call;
  const completion = call.streamed?.completion ?? call.completion;
  return defined({
    ...memberValues(llmFacts, call),
    prompt: call.prompt,
    completion: completion?.texts,
    toolCalls: completion?.toolCalls,
    cost: cost?.parts,
    costRates: cost?.rates,
  });
}

/** Expressions of LLM transformations, conditional routing and request webhooks. */
export const llmRequestScope: DocumentedScope = {
  name: 'llmRequest',
  roots: [...REQUEST_ROOTS, 'llmRequest'],
  unavailable: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'Before each LLM call.',
  keys: [
    'llm.models[].transformation',
    'llm.virtualModels[].routing.conditional.targets[].when',
    'guardrails.request[].webhook.headers',
    'policies.ai.transformations',
    'policies.ai.finalTransformations',
    'policies.ai.promptGuard.request[].webhook.headers',
  ],
};

/** Expressions of model health. `response` is the provider's. */
export const providerReplyScope: DocumentedScope = {
  name: 'providerReply',
  roots: [...REQUEST_ROOTS, 'llmRequest', 'response'],
  unavailable: {
    ...NOT_ENDED,
    'response.body': 'the response body has not been received',
    'response.bodyPrefix': 'the response body has not been received',
  },
  doc: 'After the response head of a provider: `response` is its response without the body.',
  keys: ['llm.models[].health.unhealthyExpression'],
};

/** Expressions of response webhooks. */
export const llmResponseScope: DocumentedScope = {
  name: 'llmResponse',
  roots: REQUEST_ROOTS,
  unavailable: NOT_ENDED,
  doc: 'After the response of a model, for its guardrails.',
  keys: ['guardrails.response[].webhook.headers', 'policies.ai.promptGuard.response[].webhook.headers'],
};
