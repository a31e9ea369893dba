import { argumentsSchema } from '../../chat/arguments-schema.ts';
import type { ChatRequest, OutputFormat, Reasoning, Tool, ToolChoice } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { asFunction } from '../../chat/custom-tools.ts';
import { defined } from '../../chat/defined.ts';
import { effortOf } from '../../chat/effort.ts';
import { offeredTools } from '../../chat/offered-tools.ts';
import { refuseMembers } from '../../chat/refusals.ts';
import { joinTexts } from '../../chat/turns.ts';
import { USER_LENGTH } from '../openai-error.ts';
import { withAcceptedCallIds } from './mistral-call-ids.ts';
import { writeTurns } from './write-turns.ts';

/**
 * Writes the body of `POST /chat/completions`. It is meant for any server with this API, so it contains only what most
 * of them know: system messages instead of developer messages, functions instead of custom tools, no cache keys.
 */
export function writeRequest(request: ChatRequest): Json {
  refuseMembers(request, ['logprobs']);
  const { tools, toolChoice } = offeredTools(request);
  const system = joinTexts(request.system);
  const turns = withAcceptedCallIds(request.turns, request.model);
  return defined({
    model: request.model,
    messages: [...(system === '' ? [] : [{ role: 'system', content: system }]), ...writeTurns(turns)],
    tools: tools.length === 0 ? undefined : tools.map(writeTool),
    tool_choice: toolChoice === undefined ? undefined : writeToolChoice(toolChoice),
    parallel_tool_calls:
      tools.length > 0 && request.parallelToolCalls === false ? request.parallelToolCalls : undefined,
    [maxTokensName(request.model)]: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    top_k: request.topK,
    stop: request.stop,
    presence_penalty: request.presencePenalty,
    frequency_penalty: request.frequencyPenalty,
    seed: request.seed,
    n: request.count,
    logit_bias: request.logitBias,
    response_format: request.output === undefined ? undefined : writeOutput(request.output),
    // The default; only OpenAI's models know the member.
    verbosity: request.verbosity === 'medium' ? undefined : request.verbosity,
    reasoning_effort: request.reasoning === undefined ? undefined : writeEffort(request.reasoning),
    user: (request.user?.length ?? 0) > USER_LENGTH ? undefined : request.user,
    service_tier: request.serviceTier,
    stream: request.stream ? true : undefined,
    stream_options: request.stream ? { include_usage: true } : undefined,
  });
}

/**
 * OpenAI's reasoning models refuse `max_tokens`, most other servers ignore `max_completion_tokens`.
 * https://platform.openai.com/docs/api-reference/chat/create
 */
export function maxTokensName(model: string): 'max_tokens' | 'max_completion_tokens' {
  return OPENAI_REASONING_MODEL.test(model) ? 'max_completion_tokens' : 'max_tokens';
}

/** Such as `o3`, `gpt-5.1` or `openai/gpt-5-mini`, but not `gpt-oss-120b`. */
const OPENAI_REASONING_MODEL = /^(?:openai\/)?(?:o\d|gpt-(?:[5-9]|\d\d))/;

function writeTool(tool: Tool): Json {
  const { name, description, parameters, strict } = asFunction(tool);
  const written = { name, description, parameters: argumentsSchema(parameters), strict };
  return { type: 'function', function: defined(written) };
}

function writeToolChoice(choice: Exclude<ToolChoice, { mode: 'allowed' }>): unknown {
  return choice.mode === 'tool' ? { type: 'function', function: { name: choice.name } } : choice.mode;
}

/** A name is required; other formats have none. */
const SCHEMA_NAME = 'answer';

function writeOutput(output: OutputFormat): Json {
  if (output.type === 'json') return { type: 'json_object' };
  const { name = SCHEMA_NAME, description, schema, strict } = output;
  return { type: 'json_schema', json_schema: defined({ name, description, schema, strict }) };
}

/** Most servers know three efforts, and OpenAI `none`. */
function writeEffort(reasoning: Reasoning): 'none' | 'low' | 'medium' | 'high' | undefined {
  const effort = effortOf(reasoning);
  if (effort === 'minimal') return 'low';
  return effort === 'xhigh' || effort === 'max' ? 'high' : effort;
}
