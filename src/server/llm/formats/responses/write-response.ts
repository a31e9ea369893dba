import type {
  AnswerPart,
  ChatRequest,
  ChatResponse,
  ChatUsage,
  ReasoningPart,
  StopReason,
} from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';
import { defined } from '../../chat/defined.ts';
import { packReasoning } from '../../chat/reasoning-state.ts';
import { parseArguments } from '../../chat/tool-arguments.ts';
import { joinTexts } from '../../chat/turns.ts';
import { writeFormat, writeTool, writeToolChoice } from './write-request.ts';

/** Writes a complete response. Requests of this format have one answer. */
export function writeResponse({ answers, usage, ...head }: ChatResponse, request: ChatRequest): Json {
  const { parts, stop } = answers[0] ?? { parts: [], stop: 'stop' };
  return {
    ...responseObject(head, request),
    ...responseEnd(stop, parts),
    output: writeOutput(parts, stop, head.id),
    usage: usage === undefined ? null : writeUsage(usage),
  };
}

/** The response object without its end; `status` is that of one in progress. Repeats what the client asked for. */
export function responseObject(
  { id, model, created, serviceTier }: Omit<ChatResponse, 'answers' | 'usage'>,
  request: ChatRequest,
): Json {
  const { output, verbosity, reasoning, tools, toolChoice } = request;
  return {
    id,
    object: 'response',
    created_at: created ?? Math.floor(Date.now() / 1000),
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request.system.length === 0 ? null : joinTexts(request.system),
    max_output_tokens: request.maxTokens ?? null,
    metadata: request.metadata ?? {},
    model,
    output: [],
    parallel_tool_calls: request.parallelToolCalls ?? true,
    previous_response_id: null,
    reasoning: { effort: reasoning?.effort ?? null, summary: reasoning?.summary ?? null },
    service_tier: serviceTier ?? null,
    store: false,
    temperature: request.temperature ?? null,
    text: defined({ format: output === undefined ? { type: 'text' } : writeFormat(output), verbosity }),
    tool_choice: toolChoice === undefined ? 'auto' : writeToolChoice(toolChoice, tools),
    tools: tools.map(writeTool),
    top_p: request.topP ?? null,
    truncation: 'disabled',
    usage: null,
  };
}

/** The members that change when the answer ends. */
function responseEnd(stop: StopReason, parts: readonly Pick<AnswerPart, 'type'>[]): Json {
  const reason = incompleteReason(stop, parts);
  return {
    status: reason === undefined ? 'completed' : 'incomplete',
    incomplete_details: reason === undefined ? null : { reason },
  };
}

/** A paused answer is incomplete; there is no better reason for it. */
const INCOMPLETE: Readonly<Partial<Record<StopReason, string>>> = {
  length: 'max_output_tokens',
  pause: 'max_output_tokens',
  filter: 'content_filter',
};

/** A refusal without a text would look like an empty answer. */
function incompleteReason(stop: StopReason, parts: readonly Pick<AnswerPart, 'type'>[]): string | undefined {
  const isSilent = stop === 'refusal' && !parts.some(({ type }) => type === 'refusal');
  return isSilent ? INCOMPLETE.filter : INCOMPLETE[stop];
}

/** The items of `output`: texts and refusals that follow each other are one message. */
export function writeOutput(parts: readonly AnswerPart[], stop: StopReason, responseId: string): Json[] {
  const items: Json[] = [];
  let content: Json[] | undefined;
  for (const part of parts) {
    if (part.type === 'text' || part.type === 'refusal') {
      if (content === undefined) {
        content = [];
        items.push({
          id: itemId('message', responseId, items.length),
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content,
        });
      }
      content.push(writeContent(part));
    } else {
      content = undefined;
      items.push(writeItem(part, itemId(part.type, responseId, items.length)));
    }
  }
  const last = items.at(-1);
  const isCut = INCOMPLETE[stop] !== undefined && last?.['status'] !== undefined;
  return isCut ? [...items.slice(0, -1), { ...last, status: 'incomplete' }] : items;
}

function writeContent({ type, text }: Extract<AnswerPart, { type: 'text' | 'refusal' }>): Json {
  return type === 'text'
    ? { type: 'output_text', text, annotations: [], logprobs: [] }
    : { type, refusal: text };
}

/** A tool call or reasoning as an item of `output`. */
function writeItem(part: Extract<AnswerPart, { type: 'toolCall' | 'reasoning' }>, id: string): Json {
  switch (part.type) {
    case 'toolCall':
      return writeCall(part, id);
    case 'reasoning':
      return writeReasoning(part, id);
  }
}

function writeCall(part: Extract<AnswerPart, { type: 'toolCall' }>, id: string): Json {
  const { name = part.name, namespace, isSearch } = part.client ?? {};
  const head = { id, status: 'completed', call_id: part.id };
  // The only call whose arguments are not text.
  if (isSearch === true)
    return {
      ...head,
      type: 'tool_search_call',
      execution: 'client',
      arguments: parseArguments(part.arguments),
    };
  const named = { ...head, name, ...(namespace === undefined ? {} : { namespace }) };
  return part.isCustom === true
    ? { ...named, type: 'custom_tool_call', input: part.arguments }
    : { ...named, type: 'function_call', arguments: part.arguments };
}

/**
 * An item of reasoning. The text is a summary for the client, which shows summaries and sends them back; of open models
 * that have this format, it is the content.
 */
function writeReasoning(part: ReasoningPart, id: string): Json {
  const { text, origin, encrypted } = part;
  const isContent = isReasoningContent(part);
  return {
    id,
    type: 'reasoning',
    summary: isContent || text === '' ? [] : [{ type: 'summary_text', text }],
    ...(isContent && text !== '' ? { content: [{ type: 'reasoning_text', text }] } : {}),
    encrypted_content: (origin === 'responses' ? encrypted : packReasoning(part)) ?? null,
  };
}

/** Whether the text of reasoning is its content, not a summary. */
export function isReasoningContent({ isSummary, origin }: ReasoningPart): boolean {
  return origin === 'responses' && isSummary !== true;
}

/** Ids of items are made from that of the response and their position, so that they are unique in a conversation. */
export function itemId(type: 'message' | AnswerPart['type'], responseId: string, index: number): string {
  const prefix = type === 'message' ? 'msg' : type === 'reasoning' ? 'rs' : 'fc';
  return `${prefix}_${responseId.replace(/^\w+?[_-]/, '')}_${index}`;
}

function writeUsage({
  input,
  output,
  cachedInput,
  cacheWrite,
  reasoning,
  inputAudio,
  outputAudio,
}: ChatUsage): Json {
  return {
    input_tokens: input,
    input_tokens_details: defined({
      cached_tokens: cachedInput ?? 0,
      cache_write_tokens: cacheWrite,
      audio_tokens: inputAudio,
    }),
    output_tokens: output,
    output_tokens_details: defined({ reasoning_tokens: reasoning ?? 0, audio_tokens: outputAudio }),
    total_tokens: input + output,
  };
}
