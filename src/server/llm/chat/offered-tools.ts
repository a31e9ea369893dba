import type { ChatRequest, Tool, ToolChoice } from './chat.ts';

export interface OfferedTools {
  readonly tools: readonly Tool[];
  readonly toolChoice?: Exclude<ToolChoice, { mode: 'allowed' }>;
}

/**
 * The tools for a format that cannot restrict a choice to some tools: only the allowed ones are offered. Without tools
 * there is no choice, which providers insist on.
 */
export function offeredTools({ tools, toolChoice }: ChatRequest): OfferedTools {
  if (tools.length === 0 || toolChoice === undefined) return { tools };
  if (toolChoice.mode !== 'allowed') return { tools, toolChoice };
  const { names, isRequired } = toolChoice;
  return {
    tools: tools.filter(({ name }) => names.includes(name)),
    toolChoice: { mode: isRequired ? 'required' : 'auto' },
  };
}

/** The functions that a conversation calls, each once. */
export function calledFunctions({ turns }: ChatRequest): Tool[] {
  const names = turns.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === 'toolCall' ? [part.name] : [])),
  );
  return [...new Set(names)].map((name) => ({ kind: 'function', name }));
}
