import { membersOf } from '../../../../core/foreign.ts';
import { argumentsSchema } from '../../chat/arguments-schema.ts';
import type { ChatRequest, OutputFormat, Tool, ToolChoice, Turn } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { asFunction } from '../../chat/custom-tools.ts';
import { defined } from '../../chat/defined.ts';
import { effortOf } from '../../chat/effort.ts';
import { calledFunctions, offeredTools } from '../../chat/offered-tools.ts';
import { refuseMember, refuseMembers, refusePart } from '../../chat/refusals.ts';
import { refuseNames, resultsFirst, withUserTurn } from '../../chat/turns.ts';
import { defaultMaxTokens, hasThinkingBudget } from '../messages/claude-models.ts';
import { closed } from '../messages/closed-schema.ts';
import { writeSampling } from '../messages/sampling.ts';
import { type Thinking, writeReasoning, writeStop } from '../messages/write-request.ts';
import { writableTurns } from '../messages/write-turns.ts';
import { DocumentNames, writeBlocks, writeSystem } from './blocks.ts';
import { type CachePoints, cachePointsOf, isClaude, isNova } from './cache-points.ts';

/**
 * Writes the body of `Converse` and `ConverseStream`. It leaves out wishes that Bedrock has no member for: verbosity, the
 * detail of images, and the identifier of the end user.
 */
export function writeRequest(given: ChatRequest): Json {
  const request = withUserTurn(given);
  refuseMembers(request, UNKNOWN);
  if (request.tools.length > 0 && request.parallelToolCalls === false)
    refuseMember('parallelToolCalls', 'Converse cannot be limited to one call at a time');
  const { model, maxTokens, stop, metadata, output } = request;
  const points = cachePointsOf(request);
  const claude = isClaude(model) ? writeReasoning(request, maxTokens ?? defaultMaxTokens(model)) : undefined;
  const { temperature, topP, topK } = writeSampling(request, claude?.thinking);
  const stopSequences = isClaude(model) ? writeStop(stop) : stop;
  return defined({
    messages: messagesOf(request.turns, points),
    system: unlessEmpty(writeSystem(request.system, points)),
    inferenceConfig: unlessEmpty(defined({ maxTokens, temperature, topP, stopSequences })),
    toolConfig: toolConfig(request, points),
    additionalModelRequestFields: unlessEmpty({
      ...topKFields(model, topK),
      ...reasoningFields(request, claude),
    }),
    outputConfig: output === undefined ? undefined : outputConfig(output),
    requestMetadata: metadata === undefined ? undefined : unlessEmpty(metadata),
    serviceTier: serviceTier(request.serviceTier),
  });
}

const UNKNOWN = ['logprobs', 'logitBias', 'count', 'seed', 'presencePenalty', 'frequencyPenalty'] as const;

const unlessEmpty = <T extends object>(value: T): T | undefined =>
  Object.keys(value).length === 0 ? undefined : value;

function messagesOf(turns: readonly Turn[], points: CachePoints): Json[] {
  refuseNames(turns, 'Converse');
  const names = new DocumentNames();
  return writableTurns(turns).map(({ role, parts }) => ({
    role,
    content: withText(writeBlocks(resultsFirst(parts), names, points)),
  }));
}

/** A document needs a text beside it (API reference, "ContentBlock"): its name, which the model reads anyway. */
function withText(content: Json[]): Json[] {
  const document = content.map((block) => membersOf(block['document'])['name']).find(isText);
  if (document === undefined || content.some((block) => 'text' in block)) return content;
  return [...content, { text: document }];
}

const isText = (value: unknown): value is string => typeof value === 'string';

function toolConfig(request: ChatRequest, points: CachePoints): Json | undefined {
  const { tools, toolChoice } = offeredTools(request);
  if (tools.length === 0 || toolChoice?.mode === 'none') {
    // The API refuses calls in a conversation without tools, and results of them. It has no choice for no calls (vercel/ai#7528).
    const ended = calledFunctions(request).map((tool) => toolSpec({ ...tool, description: ENDED }, points));
    return ended.length === 0 ? undefined : { tools: ended.flat() };
  }
  return defined({
    tools: tools.flatMap((tool) => toolSpec(tool, points)),
    toolChoice: toolChoice === undefined ? undefined : choiceOf(toolChoice),
  });
}

/** For tools of earlier calls that the client does not offer now. */
const ENDED = 'Not available now. Do not call it.';

function toolSpec(tool: Tool, points: CachePoints): Json[] {
  const { name, description, parameters, strict, cache } = asFunction(tool);
  const spec = defined({
    name,
    // An empty description is rejected, and one of white space by some models (anomalyco/opencode#48582).
    description: description?.trim() === '' ? undefined : description,
    inputSchema: { json: argumentsSchema(parameters) },
    strict: strict === true ? true : undefined,
  });
  return [{ toolSpec: spec }, ...points('tool', cache)];
}

function choiceOf(choice: Exclude<ToolChoice, { mode: 'allowed' | 'none' }>): Json {
  if (choice.mode === 'tool') return { tool: { name: choice.name } };
  return choice.mode === 'required' ? { any: {} } : { auto: {} };
}

// Parameters that models take each in their own way (Bedrock user guide, "Inference request parameters").

function topKFields(model: string, topK: number | undefined): Json {
  if (topK === undefined) return {};
  if (isClaude(model)) return { top_k: topK };
  if (isNova(model)) return { inferenceConfig: { topK } };
  return refuseMember('topK', 'it is known for Claude and Nova models only');
}

function reasoningFields({ model, reasoning = {} }: ChatRequest, claude: Thinking | undefined): Json {
  const level = effortOf(reasoning);
  if (level === undefined) return {};
  if (claude !== undefined) {
    // Models with thinking budgets do not think unless a request asks for it.
    if (level === 'none' && hasThinkingBudget(model)) return {};
    const { thinking, effort } = claude;
    return defined({ thinking, output_config: effort === undefined ? undefined : { effort } });
  }
  if (level === 'none') return {};
  if (isNova(model)) return { reasoningConfig: { type: 'enabled', maxReasoningEffort: LEVELS[level] } };
  if (model.includes('openai.gpt-oss')) return { reasoning_effort: LEVELS[level] };
  return refuseMember('reasoning', 'it is known for Claude, Nova and gpt-oss models only');
}

/** Models other than Claude have three levels. */
const LEVELS = {
  none: 'low',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
};

function outputConfig(output: OutputFormat): Json {
  if (output.type === 'json') return refusePart(output, 'Converse needs a JSON Schema');
  const { name, description, schema } = output;
  const jsonSchema = defined({ schema: JSON.stringify(closed(schema)), name, description });
  return { textFormat: { type: 'json_schema', structure: { jsonSchema } } };
}

function serviceTier(tier: string | undefined): Json | undefined {
  if (tier === undefined || tier === 'auto') return undefined;
  if (tier === 'default' || tier === 'flex' || tier === 'priority') return { type: tier };
  return refuseMember('serviceTier', 'Bedrock has no such tier');
}
