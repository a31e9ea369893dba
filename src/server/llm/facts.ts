import type { Fact, FieldValue } from '../kernel/fact.ts';
import type { LlmCall } from './llm-call.ts';
import type { Usage } from './usage.ts';

/** A class of tokens that logs, spans, metrics and expressions show for each call. */
interface TokenFact extends Fact<LlmCall> {
  readonly count: keyof Usage;
  /** Label of the metric of tokens, if it is counted there. */
  readonly metric?: string;
  /** Name in trace events. */
  readonly traced: string;
}

/** The count alone; that of a call is undefined until the provider reports it, or it is estimated. */
function tokens(count: keyof Usage, fact: Omit<TokenFact, 'count' | 'read' | 'isOfCall'>): TokenFact {
  return { ...fact, count, isOfCall: true, read: ({ usage }) => usage?.[count] };
}

const input = tokens('input', {
  name: 'gen_ai.usage.input_tokens',
  cel: { member: 'inputTokens', type: 'int', doc: 'Input tokens.' },
  column: { name: 'input_tokens', type: 'count', shown: 'inputTokens', doc: 'Input tokens.' },
  metric: 'input',
  traced: 'input_tokens',
});

const output = tokens('output', {
  name: 'gen_ai.usage.output_tokens',
  cel: { member: 'outputTokens', type: 'int', doc: 'Output tokens.' },
  column: { name: 'output_tokens', type: 'count', shown: 'outputTokens', doc: 'Output tokens.' },
  metric: 'output',
  traced: 'output_tokens',
});

const cacheRead = tokens('cachedInput', {
  name: 'gen_ai.usage.cache_read.input_tokens',
  cel: { member: 'cachedInputTokens', type: 'int', doc: "Input tokens read from the provider's cache." },
  column: {
    name: 'cached_tokens',
    type: 'count',
    shown: 'cachedInputTokens',
    doc: "Input tokens read from the provider's cache.",
  },
  metric: 'input_cache_read',
  traced: 'cache_read_input_tokens',
});

const cacheWrite = tokens('cacheWrite', {
  name: 'gen_ai.usage.cache_creation.input_tokens',
  cel: {
    member: 'cacheCreationInputTokens',
    type: 'int',
    doc: "Input tokens written to the provider's cache.",
  },
  column: {
    name: 'cache_write_tokens',
    type: 'count',
    shown: 'cacheWriteTokens',
    doc: "Input tokens written to the provider's cache.",
  },
  metric: 'input_cache_write',
  traced: 'cache_creation_input_tokens',
});

const reasoning = tokens('reasoning', {
  name: 'gen_ai.usage.reasoning_tokens',
  attributes: ['gen_ai.usage.reasoning.output_tokens'],
  cel: { member: 'reasoningTokens', type: 'int', doc: 'Reasoning tokens.' },
  column: {
    name: 'reasoning_tokens',
    type: 'count',
    shown: 'reasoningTokens',
    doc: 'Reasoning tokens, which are among the output tokens.',
  },
  traced: 'reasoning_tokens',
});

const inputAudio = tokens('inputAudio', {
  name: 'gen_ai.usage.input_audio_tokens',
  attributes: ['gen_ai.usage.audio.input_tokens'],
  cel: { member: 'inputAudioTokens', type: 'int', doc: 'Audio input tokens.' },
  traced: 'input_audio_tokens',
});

const outputAudio = tokens('outputAudio', {
  name: 'gen_ai.usage.output_audio_tokens',
  attributes: ['gen_ai.usage.audio.output_tokens'],
  cel: { member: 'outputAudioTokens', type: 'int', doc: 'Audio output tokens.' },
  traced: 'output_audio_tokens',
});

/** All classes of tokens, in the order of trace events. */
export const tokenFacts: readonly TokenFact[] = [
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
  inputAudio,
  outputAudio,
];

/** Milliseconds for each output token after the first. */
function perOutputToken({ usage, firstTokenAfter, lastTokenAfter }: LlmCall): number | undefined {
  if (firstTokenAfter === undefined || lastTokenAfter === undefined || !usage?.output) return undefined;
  return (lastTokenAfter - firstTokenAfter) / usage.output;
}

/** All facts of an LLM call, in the order of the access log. */
export const llmFacts: readonly Fact<LlmCall>[] = [
  // The provider's own name for its error.
  { name: 'error.type', isOfCall: true, read: ({ providerError }) => providerError?.name },
  {
    read: ({ streaming }) => streaming,
    cel: { member: 'streaming', type: 'bool', doc: 'Whether the client requested a stream.' },
    column: {
      name: 'streamed',
      type: 'flag',
      shown: 'streamed',
      doc: 'Whether the client requested a stream.',
    },
    attributes: ['gen_ai.request.stream'],
    attribute: ({ streaming }) => streaming || undefined,
    isOfCall: true,
  },
  {
    name: 'gen_ai.operation.name',
    attributes: ['gen_ai.operation.name'],
    attribute: operationName,
    isOfCall: true,
    read: ({ operation }) => operation,
  },
  {
    name: 'gen_ai.provider.name',
    cel: { member: 'provider', type: 'string', doc: 'Name of the provider.' },
    column: {
      name: 'provider',
      type: 'text',
      shown: 'provider',
      doc: 'Name of the provider.',
      filter: 'provider',
    },
    read: ({ provider }) => provider,
  },
  {
    name: 'gen_ai.request.model',
    cel: { member: 'requestModel', type: 'string', doc: 'Model requested by the client.' },
    column: {
      name: 'model',
      type: 'text',
      shown: 'model',
      doc: 'Model requested by the client.',
      filter: 'model',
    },
    read: ({ requestModel }) => requestModel,
  },
  {
    name: 'gen_ai.response.model',
    cel: { member: 'responseModel', type: 'string', doc: 'Model named in the response.' },
    column: {
      name: 'used_model',
      type: 'text',
      shown: 'usedModel',
      doc: 'Model that answered.',
      read: ({ responseModel, providerModel }) => responseModel ?? providerModel,
    },
    isOfCall: true,
    read: ({ responseModel }) => responseModel,
  },
  input,
  cacheWrite,
  cacheRead,
  output,
  reasoning,
  {
    read: ({ usage }) => usage && usage.input + usage.output,
    cel: { member: 'totalTokens', type: 'int', doc: 'Sum of input and output tokens.' },
  },
  {
    name: 'gw.ai.usage.estimated',
    isText: true,
    cel: {
      member: 'usageEstimated',
      type: 'string',
      doc: 'Why the token counts are estimated; absent if they are reported.',
    },
    column: {
      name: 'estimated',
      type: 'text',
      shown: 'usageEstimated',
      doc: 'Why the token counts are estimated; absent if they are reported.',
    },
    read: ({ estimated }) => estimated,
  },
  {
    name: 'gw.ai.time_to_first_token',
    attributes: ['gen_ai.response.time_to_first_chunk'],
    cel: {
      member: 'timeToFirstToken',
      type: 'double',
      doc: 'Seconds from the request to the first token.',
      read: ({ firstTokenAfter }) => firstTokenAfter && firstTokenAfter / 1000,
    },
    column: {
      name: 'first_token',
      type: 'duration',
      shown: 'firstTokenMs',
      doc: 'Milliseconds from the request to the first token.',
      read: ({ firstTokenAfter }) => firstTokenAfter,
    },
    read: ({ streaming, firstTokenAfter }) => (streaming ? seconds(firstTokenAfter) : undefined),
  },
  {
    name: 'gw.ai.time_per_output_token',
    cel: {
      member: 'timePerOutputToken',
      type: 'double',
      doc: 'Seconds per token after the first.',
      read: (call) => {
        const time = perOutputToken(call);
        return time && time / 1000;
      },
    },
    read: (call) => (call.streaming ? seconds(perOutputToken(call)) : undefined),
  },
  {
    name: 'gw.ai.cache_hit',
    cel: {
      member: 'cacheHit',
      type: 'bool',
      doc: 'True if the answer was given before (`cache` of the model); absent otherwise.',
    },
    column: {
      name: 'cache_hit',
      type: 'flag',
      shown: 'cacheHit',
      doc: 'Whether the answer was given before (`cache` of the model).',
    },
    read: ({ isCacheHit }) => isCacheHit,
  },
  { name: 'gw.ai.guardrail.unseen', read: ({ unseenMedia }) => unseenMedia },
  {
    name: 'gw.ai.stream.held',
    attribute: ({ heldFor }) => heldFor,
    read: ({ heldFor }) => (heldFor === undefined ? undefined : `${heldFor}ms`),
  },
  {
    name: 'gw.ai.usage.cost.total',
    attribute: ({ cost }) => (cost?.total === undefined ? undefined : Number(cost.total)),
    column: { name: 'cost', type: 'usd', shown: 'costUsd', doc: 'Cost in USD.' },
    read: ({ cost }) => cost?.total,
  },
  {
    name: 'gw.ai.usage.cost.problem',
    isText: true,
    // Only if a catalog is configured but has no price: without a catalog there is nothing to explain.
    read: ({ cost }) => (cost?.status === 'Missing' || cost?.status === 'Unpriced' ? cost.reason : undefined),
  },
  inputAudio,
  outputAudio,
  { name: 'gen_ai.request.temperature', read: requested('temperature', 'number') },
  { name: 'gen_ai.embeddings.dimension.count', read: requested('dimensions', 'number') },
  {
    name: 'gen_ai.request.encoding_formats',
    attributes: ['gen_ai.request.encoding_formats'],
    attribute: ({ request: { encoding_format: format } }) =>
      typeof format === 'string' ? [format] : undefined,
    isOfCall: true,
    read: requested('encoding_format', 'string'),
  },
  { name: 'gen_ai.request.top_p', read: requested('top_p', 'number') },
  { name: 'gen_ai.request.max_tokens', read: requested('max_tokens', 'number') },
  { name: 'gen_ai.request.frequency_penalty', read: requested('frequency_penalty', 'number') },
  { name: 'gen_ai.request.presence_penalty', read: requested('presence_penalty', 'number') },
  { name: 'gen_ai.request.seed', read: requested('seed', 'number') },
];

/** A member of the client's request, if it has this type. */
function requested(member: string, type: 'string' | 'number') {
  return ({ request }: LlmCall): FieldValue => {
    const value = request[member];
    return (typeof value === 'number' || typeof value === 'string') && typeof value === type
      ? value
      : undefined;
  };
}

/** The Responses API counts as `chat` (OpenTelemetry's conventions for OpenAI). */
export function operationName({ operation }: LlmCall): string {
  return operation === 'responses' ? 'chat' : operation;
}

const seconds = (milliseconds: number | undefined): number | undefined =>
  milliseconds === undefined ? undefined : Math.round(milliseconds * 1000) / 1_000_000;
