import type { Declaration } from '../expressions/cel/declarations.ts';
import { toCel } from '../expressions/cel/values.ts';
import { type DocumentedScope, NOT_CALLED, NOT_ENDED, REQUEST_ROOTS } from '../expressions/scopes.ts';
import { defined, defineVariable, type Members } from '../expressions/variable.ts';
import { type LlmCall, llmCall } from './call.ts';

/** Classes of tokens, in a cost and in its rates. */
const TOKENS = {
  input: { type: 'double', doc: 'For tokens read that have no line of their own here.' },
  output: { type: 'double', doc: 'For tokens written that have no line of their own here.' },
  cacheRead: { type: 'double', doc: "For tokens read from the provider's cache." },
  cacheWrite: { type: 'double', doc: "For tokens written to the provider's cache." },
  reasoning: { type: 'double', doc: 'For tokens of reasoning.' },
  inputAudio: { type: 'double', doc: 'For tokens of recordings read.' },
  outputAudio: { type: 'double', doc: 'For tokens of recordings made.' },
} as const;

const LLM = {
  type: 'map',
  doc: 'The call of a model.',
  members: {
    streaming: { type: 'bool', doc: 'Whether the client asked for a stream.' },
    requestModel: { type: 'string', doc: 'Model that the client asked for.' },
    responseModel: { type: 'string', doc: 'Model that the provider says has answered.' },
    provider: { type: 'string', doc: 'Name of the provider.' },
    inputTokens: { type: 'int', doc: 'Tokens that the model has read.' },
    outputTokens: { type: 'int', doc: 'Tokens that the model has written.' },
    totalTokens: { type: 'int', doc: 'The sum of both.' },
    cachedInputTokens: { type: 'int', doc: "Tokens read from the provider's cache." },
    cacheCreationInputTokens: { type: 'int', doc: "Tokens written to the provider's cache." },
    reasoningTokens: { type: 'int', doc: 'Tokens of reasoning.' },
    usageEstimated: { type: 'string', doc: 'Why the tokens are an estimate; absent when they are not.' },
    inputAudioTokens: { type: 'int', doc: 'Tokens of recordings read.' },
    outputAudioTokens: { type: 'int', doc: 'Tokens of recordings made.' },
    timeToFirstToken: { type: 'double', doc: 'Seconds until the first token.' },
    timePerOutputToken: { type: 'double', doc: 'Seconds for each token after the first.' },
    params: { type: 'map', doc: "The client's request, as it came." },
    cost: {
      type: 'map',
      doc: 'Price of the call in USD.',
      members: { total: { type: 'double', doc: 'The sum.' }, ...TOKENS },
    },
    prompt: {
      type: 'list',
      doc: 'What the model was sent, after guardrails: for each message its `role` and `content`, images left out.',
    },
    completion: {
      type: 'list',
      doc: 'What the client was given: a text for each choice, streams put together.',
    },
    toolCalls: {
      type: 'list',
      doc: 'Tools that the model asks to be called: for each its `id`, `name` and `arguments`.',
    },
    costRates: { type: 'map', doc: 'Prices in the catalog, by class of token.', members: TOKENS },
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
  return toCel(call === undefined ? null : llmMembers(call));
});

export const llmRequestVariable = defineVariable(
  'llmRequest',
  { type: 'map', doc: "The client's request to a model: its JSON, as it came." },
  (ctx) => toCel(llmCall.get(ctx)?.request ?? null),
);

function llmMembers(call: LlmCall): object {
  const { usage, firstTokenAfter, lastTokenAfter, cost } = call;
  const completion = call.streamed?.completion ?? call.completion;
  const perToken =
    firstTokenAfter === undefined || lastTokenAfter === undefined || !usage?.output
      ? undefined
      : (lastTokenAfter - firstTokenAfter) / usage.output / 1000;
  return defined<Members<typeof LLM>>({
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
    params: call.request,
    cost: cost?.parts,
    costRates: cost?.rates,
  });
}

/** LLM transformations and the headers of request webhooks. */
export const llmRequestScope: DocumentedScope = {
  name: 'llmRequest',
  roots: [...REQUEST_ROOTS, 'llmRequest'],
  unavailable: { ...NOT_ENDED, ...NOT_CALLED },
  doc: 'For each call of a model, before it is made.',
  keys: [
    'llm.models[].transformation',
    'llm.virtualModels[].routing.conditional.targets[].when',
    'guardrails.request[].webhook.headers',
  ],
};

/** Health of a model: `response` is the provider's. */
export const providerReplyScope: DocumentedScope = {
  name: 'providerReply',
  roots: [...REQUEST_ROOTS, 'llmRequest', 'response'],
  unavailable: {
    ...NOT_ENDED,
    'response.body': 'the body of the answer is on its way',
    'response.bodyPrefix': 'the body of the answer is on its way',
  },
  doc: 'When a provider has answered: `response` is its reply, without the body.',
  keys: ['llm.models[].health.unhealthyExpression'],
};

/** Headers of response webhooks. */
export const llmResponseScope: DocumentedScope = {
  name: 'llmResponse',
  roots: REQUEST_ROOTS,
  unavailable: NOT_ENDED,
  doc: 'When a model has answered, for its guardrails.',
  keys: ['guardrails.response[].webhook.headers'],
};
