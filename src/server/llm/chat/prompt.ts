import { LIMITS } from '../../../core/limits.ts';
import { membersOf } from '../json-members.ts';
import { callsIn, functionCallsIn, type ToolCall, textOf } from './conversation.ts';

/** A message of the prompt, for expressions (`llm.prompt`). */
export interface PromptMessage {
  readonly role: string;
  readonly content: string;
  /** What the model has called in an earlier turn. */
  readonly toolCalls?: readonly ToolCall[];
}

/**
 * The messages of a request in any supported API. `get` reads a field, `fields` are those with prompts. Contents and arguments of tools are cut to
 * `LIMITS.loggedPayload` characters together.
 */
export function promptOf(
  get: (field: string) => unknown,
  fields: readonly { readonly name: string; readonly isSystem?: boolean; readonly isPrompt?: boolean }[],
): PromptMessage[] {
  const first = (of: 'isSystem' | 'isPrompt'): unknown => {
    for (const { name, [of]: is } of fields) {
      const value = is === true ? get(name) : undefined;
      if (value !== undefined && value !== null) return value;
    }
    return undefined;
  };
  const system = first('isSystem');
  const content = first('isPrompt');
  const items: unknown[] = Array.isArray(content) ? content : content === undefined ? [] : [content];
  const before = system === undefined ? [] : [{ role: 'system', content: textOf(system) }];
  return bounded([...before, ...items.map(messageOf)]);
}

function messageOf(item: unknown): PromptMessage {
  const message = membersOf(item) ?? {};
  const { role } = message;
  const toolCalls = toolCallsOf(item);
  return {
    role: typeof role === 'string' ? role : roleOf(message, toolCalls),
    content: textOf(item) + toolResultOf(message),
    ...(toolCalls.length > 0 && { toolCalls }),
  };
}

/** Of an item of `/v1/responses`, which has no role if it is a call or the output of a tool. */
function roleOf(message: Readonly<Record<string, unknown>>, toolCalls: readonly ToolCall[]): string {
  if (toolCalls.length > 0) return 'assistant';
  return message['output'] === undefined ? 'user' : 'tool';
}

/** Calls are members of a message, items of its content, parts, or items beside messages. */
function toolCallsOf(item: unknown): ToolCall[] {
  const { tool_calls, function_call, content, parts } = membersOf(item) ?? {};
  return [
    ...callsIn(tool_calls),
    ...callsIn([function_call]),
    ...callsIn(content),
    ...(Array.isArray(parts) ? functionCallsIn(parts) : []),
    ...callsIn([item]),
  ];
}

/** The result of a tool outside of `content`: an item of `/v1/responses`, a part of `generateContent`. */
function toolResultOf({ output, parts }: Readonly<Record<string, unknown>>): string {
  if (output !== undefined) return typeof output === 'string' ? output : textOf(output);
  if (!Array.isArray(parts)) return '';
  return parts
    .flatMap((part) => membersOf(membersOf(part)?.['functionResponse'])?.['response'] ?? [])
    .map((response) => JSON.stringify(response))
    .join('');
}

function bounded(messages: readonly PromptMessage[]): PromptMessage[] {
  let left: number = LIMITS.loggedPayload;
  const cut = (text: string): string => {
    const kept = text.slice(0, left);
    left -= kept.length;
    return kept;
  };
  return messages.map(({ role, content, toolCalls }) => ({
    role,
    content: cut(content),
    ...(toolCalls !== undefined && { toolCalls: toolCalls.map((call) => boundedCall(call, cut)) }),
  }));
}

function boundedCall(call: ToolCall, cut: (text: string) => string): ToolCall {
  const text = JSON.stringify(call.arguments) ?? '';
  const kept = cut(text);
  return kept.length === text.length ? call : { ...call, arguments: kept };
}
