import type { Declaration } from '../expressions/cel/declarations.ts';
import { toCel } from '../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../expressions/scopes.ts';
import { defined, defineVariable, type Members } from '../expressions/variable.ts';
import { omitsOriginal } from '../kernel/shared-slots.ts';
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

const LLM = {
  type: 'map',
  doc: 'The LLM call.',
  members: {
    streaming: { type: 'bool', doc: 'Whether the client requested a stream.' },
    requestModel: { type: 'string', doc: 'Model requested by the client.' },
    responseModel: { type: 'string', doc: 'Model named in the response.' },
    provider: { type: 'string', doc: 'Name of the provider.' },
    inputTokens: { type: 'int', doc: 'Input tokens.' },
    outputTokens: { type: 'int', doc: 'Output tokens.' },
    totalTokens: { type: 'int', doc: 'Sum of input and output tokens.' },
    cachedInputTokens: { type: 'int', doc: "Input tokens read from the provider's cache." },
    cacheCreationInputTokens: { type: 'int', doc: "Input tokens written to the provider's cache." },
    reasoningTokens: { type: 'int', doc: 'Reasoning tokens.' },
    usageEstimated: {
      type: 'string',
      doc: 'Why the token counts are estimated; absent if they are reported.',
    },
    inputAudioTokens: { type: 'int', doc: 'Audio input tokens.' },
    outputAudioTokens: { type: 'int', doc: 'Audio output tokens.' },
    timeToFirstToken: { type: 'double', doc: 'Seconds from the request to the first token.' },
    timePerOutputToken: { type: 'double', doc: 'Seconds per token after the first.' },
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
} as const satisfies Declaration;

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
  const { usage, firstTokenAfter, lastTokenAfter, cost } = call;
  const completion = call.streamed?.completion ?? call.completion;
  const perToken =
    firstTokenAfter === undefined || lastTokenAfter === undefined || !usage?.output
      ? undefined
      : (lastTokenAfter - firstTokenAfter) / usage.output / 1000;
  return defined<Omit<Members<typeof LLM>, 'params'>>({
    streaming: call.streaming,
    requestModel: call.requestModel,
    responseModel: call.responseModel,
    provider: call.provider,
    inputTokens: usage?.input,
    outputTokens: usage?.output,
    totalTokens: usage === undefined ? undefined : usage.input + usage.output,
    cachedInputTokens: usage?.cachedInput,
    cacheCreationInputTokens: usage?.cacheWrite,
    reasoningTokens: usage?.reasoning,
    usageEstimated: call.estimated,
    inputAudioTokens: usage?.inputAudio,
    outputAudioTokens: usage?.outputAudio,
    timeToFirstToken: firstTokenAfter === undefined ? undefined : firstTokenAfter / 1000,
    timePerOutputToken: perToken,
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
