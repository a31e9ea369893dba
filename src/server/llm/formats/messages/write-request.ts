import { argumentsSchema } from '../../chat/arguments-schema.ts';
import type { ChatRequest, OutputFormat, Reasoning, TextPart, Tool } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { asFunction } from '../../chat/custom-tools.ts';
import { defined } from '../../chat/defined.ts';
import { budgetOf, effortOf } from '../../chat/effort.ts';
import { calledFunctions, type OfferedTools, offeredTools } from '../../chat/offered-tools.ts';
import { refuseMember, refuseMembers, refusePart } from '../../chat/refusals.ts';
import { withUserTurn } from '../../chat/turns.ts';
import { defaultMaxTokens, hasThinkingBudget, leastThinking } from './claude-models.ts';
import { closed } from './closed-schema.ts';
import { writeSampling } from './sampling.ts';
import { hasUnsignedCalls, writeCacheMark, writeTurns } from './write-turns.ts';

/** Writes the body of `POST /messages`. Cached prompts, verbosity and metadata are wishes that it leaves out. */
export function writeRequest(given: ChatRequest): Json {
  const request = withUserTurn(given);
  refuseMembers(request, UNKNOWN);
  const { tools, toolChoice } = declaredTools(request);
  const maxTokens = request.maxTokens ?? defaultMaxTokens(request.model);
  const { thinking, effort } = writeReasoning(request, maxTokens);
  const { temperature, topP, topK } = writeSampling(request, thinking);
  const config = defined({ effort, format: request.output && writeOutput(request.output) });
  return defined({
    model: request.model,
    max_tokens: maxTokens,
    system: writeSystem(request.system),
    messages: writeTurns(request.turns),
    tools: tools.length === 0 ? undefined : tools.map(writeTool),
    tool_choice: writeToolChoice(toolChoice, tools.length > 0 && request.parallelToolCalls === false),
    temperature: writeTemperature(temperature),
    top_p: topP,
    top_k: topK,
    stop_sequences: writeStop(request.stop),
    thinking,
    output_config: Object.keys(config).length === 0 ? undefined : config,
    metadata: request.user === undefined ? undefined : { user_id: request.user },
    service_tier: writeServiceTier(request.serviceTier),
    stream: request.stream ? true : undefined,
  });
}

const UNKNOWN = ['logprobs', 'logitBias', 'count', 'seed', 'presencePenalty', 'frequencyPenalty'] as const;

function writeSystem(system: readonly TextPart[]): string | Json[] | undefined {
  // Empty blocks are refused.
  const texts = system.filter(({ text }) => text.trim() !== '');
  const [first] = texts;
  if (first === undefined) return undefined;
  if (texts.length === 1 && first.cache === undefined) return first.text;
  return texts.map(({ text, cache }) => ({ type: 'text', text, ...writeCacheMark(cache) }));
}

/**
 * A conversation with tool calls needs definitions of tools, even if the model shall not call them any more, which clients
 * of other formats say by leaving them out.
 */
function declaredTools(request: ChatRequest): OfferedTools {
  const offered = offeredTools(request);
  if (offered.tools.length > 0) return offered;
  const tools = calledFunctions(request);
  return tools.length === 0 ? offered : { tools, toolChoice: { mode: 'none' } };
}

function writeTool(tool: Tool): Json {
  const { name, description, parameters, strict, cache } = asFunction(tool);
  return {
    name,
    ...(description === undefined ? {} : { description }),
    input_schema: argumentsSchema(parameters),
    // False is the default, and null is not allowed.
    ...(strict === true ? { strict } : {}),
    ...writeCacheMark(cache),
  };
}

function writeToolChoice(choice: OfferedTools['toolChoice'], isSerial: boolean): Json | undefined {
  const serial = isSerial ? { disable_parallel_tool_use: true } : {};
  switch (choice?.mode) {
    case undefined:
      return isSerial ? { type: 'auto', ...serial } : undefined;
    case 'none':
      return { type: 'none' };
    case 'tool':
      return { type: 'tool', name: choice.name, ...serial };
    case 'auto':
    case 'required':
      return { type: choice.mode === 'required' ? 'any' : 'auto', ...serial };
  }
}

function writeTemperature(temperature: number | undefined): number | undefined {
  if (temperature !== undefined && temperature > 1)
    refuseMember('temperature', 'the Messages API has values from 0 to 1');
  return temperature;
}

export function writeStop(stop: readonly string[] | undefined): readonly string[] | undefined {
  if (stop?.some((text) => text.trim() === '') === true)
    refuseMember('stop', 'the Messages API does not stop at white space');
  return stop;
}

/** OpenAI's other tiers have other prices. */
function writeServiceTier(tier: string | undefined): 'auto' | 'standard_only' | undefined {
  if (tier === undefined || tier === 'auto') return tier;
  return tier === 'default' ? 'standard_only' : refuseMember('serviceTier', `${tier} is a tier of OpenAI`);
}

function writeOutput(output: OutputFormat): Json {
  if (output.type === 'json') return refusePart(output, 'the Messages API needs a JSON Schema');
  return { type: 'json_schema', schema: closed(output.schema) };
}

export interface Thinking {
  readonly thinking?: Json;
  readonly effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max';
}

export function writeReasoning(request: ChatRequest, maxTokens: number): Thinking {
  const { reasoning, model } = request;
  if (reasoning === undefined) return {};
  if (reasoning.effort === 'none' || reasoning.budgetTokens === 0) return writeNone(model);
  if (hasThinkingBudget(model)) return isPossible(request) ? writeBudget(reasoning, maxTokens) : {};
  const effort = effortOf(reasoning);
  return defined({
    thinking: isForced(request) ? undefined : { type: 'adaptive', ...writeDisplay(reasoning) },
    effort: effort === 'none' || effort === 'minimal' ? 'low' : effort,
  });
}

function writeNone(model: string): Thinking {
  const type = leastThinking(model);
  return type === undefined ? { effort: 'low' } : { thinking: { type } };
}

/** The smallest `budget_tokens`. */
const MIN_BUDGET = 1024;

/**
 * The budget is part of `max_tokens`. That of an effort leaves half of it to the answer; there is none if that is too
 * little.
 */
function writeBudget(reasoning: Reasoning, maxTokens: number): Thinking {
  const space = reasoning.budgetTokens === undefined ? Math.floor(maxTokens / 2) : maxTokens - 1;
  const budget = Math.min(budgetOf(reasoning) ?? MIN_BUDGET, space);
  if (budget < MIN_BUDGET) return {};
  return { thinking: { type: 'enabled', budget_tokens: budget } };
}

function writeDisplay({ summary }: Reasoning): Json {
  return summary === undefined ? {} : { display: 'summarized' };
}

/**
 * With a budget, the API refuses tool calls of the last turn without their signed reasoning. Clients of Chat Completions
 * never send it, so that the model goes on without reasoning.
 */
function isPossible(request: ChatRequest): boolean {
  return !isForced(request) && !hasUnsignedCalls(request.turns);
}

/** The API does not reason before a tool call that it has to make. */
function isForced({ toolChoice }: ChatRequest): boolean {
  switch (toolChoice?.mode) {
    case 'required':
    case 'tool':
      return true;
    case 'allowed':
      return toolChoice.isRequired;
    default:
      return false;
  }
}
