import { argumentsSchema } from '../../chat/arguments-schema.ts';
import type { ChatRequest, OutputFormat, Reasoning, Tool, ToolChoice } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { effortOf } from '../../chat/effort.ts';
import { refuseMembers } from '../../chat/refusals.ts';
import { joinTexts } from '../../chat/turns.ts';
import { USER_LENGTH } from '../openai-error.ts';
import { writeInput } from './write-input.ts';

/** Writes the body of `POST /responses`. */
export function writeRequest(request: ChatRequest): Json {
  refuseMembers(request, UNKNOWN);
  const { tools, toolChoice, reasoning, user } = request;
  const { instructions, input } = writePrompt(request);
  return defined({
    model: request.model,
    instructions,
    input,
    tools: tools.length === 0 ? undefined : tools.map(writeTool),
    tool_choice:
      toolChoice === undefined || tools.length === 0 ? undefined : writeToolChoice(toolChoice, tools),
    parallel_tool_calls:
      tools.length > 0 && request.parallelToolCalls === false ? request.parallelToolCalls : undefined,
    max_output_tokens:
      request.maxTokens === undefined ? undefined : Math.max(LEAST_TOKENS, request.maxTokens),
    temperature: request.temperature,
    top_p: request.topP,
    text: writeText(request),
    reasoning: reasoning === undefined ? undefined : writeReasoning(reasoning),
    // Without storage, reasoning has to come back in encrypted form. Models that do not reason refuse to include it.
    include: wantsReasoning(reasoning) ? ['reasoning.encrypted_content'] : undefined,
    // The default is to keep conversations for 30 days; clients of other formats do not expect that.
    store: false,
    safety_identifier: (user?.length ?? 0) > USER_LENGTH ? undefined : user,
    metadata: request.metadata,
    service_tier: request.serviceTier,
    stream: request.stream ? true : undefined,
  });
}

/** Without a conversation, the instructions are its first message: an empty input is refused. */
function writePrompt({ system, turns }: ChatRequest): { instructions?: string; input: Json[] } {
  if (turns.length === 0) return { input: writeInput([{ role: 'system', parts: system }]) };
  const instructions = joinTexts(system);
  return { ...(instructions === '' ? {} : { instructions }), input: writeInput(turns) };
}

/** OpenAI refuses less. Claude Code and Claude Desktop ask for one token to see whether a model answers. */
const LEAST_TOKENS = 16;

const UNKNOWN = [
  'logprobs',
  'logitBias',
  'count',
  'seed',
  'presencePenalty',
  'frequencyPenalty',
  'stop',
  'topK',
] as const;

function wantsReasoning(reasoning: Reasoning | undefined): boolean {
  return reasoning !== undefined && effortOf(reasoning) !== 'none';
}

export function writeTool(tool: Tool): Json {
  const { name, description } = tool;
  if (tool.kind === 'custom') return defined({ type: 'custom', name, description, format: tool.format });
  return defined({
    type: 'function',
    name,
    description,
    parameters: argumentsSchema(tool.parameters),
    // Here, the default is true.
    strict: tool.strict ?? false,
  });
}

export function writeToolChoice(choice: ToolChoice, tools: readonly Tool[]): unknown {
  const named = (name: string): Json => ({
    type: tools.find((tool) => tool.name === name)?.kind ?? 'function',
    name,
  });
  switch (choice.mode) {
    case 'tool':
      return named(choice.name);
    case 'allowed':
      return {
        type: 'allowed_tools',
        mode: choice.isRequired ? 'required' : 'auto',
        tools: choice.names.map(named),
      };
    default:
      return choice.mode;
  }
}

function writeText({ output, verbosity }: ChatRequest): Json | undefined {
  if (output === undefined && verbosity === undefined) return undefined;
  return defined({ format: output === undefined ? undefined : writeFormat(output), verbosity });
}

/** A name is required; other formats have none. */
const SCHEMA_NAME = 'answer';

export function writeFormat(output: OutputFormat): Json {
  if (output.type === 'json') return { type: 'json_object' };
  const { name = SCHEMA_NAME, description, schema, strict } = output;
  return defined({ type: 'json_schema', name, description, schema, strict });
}

function writeReasoning(reasoning: Reasoning): Json | undefined {
  const written = defined({ effort: effortOf(reasoning), summary: reasoning.summary });
  return Object.keys(written).length === 0 ? undefined : written;
}
