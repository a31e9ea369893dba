import type { ChatRequest, Tool, ToolChoice } from './chat.ts';

/**
 * The tools for a format that cannot restrict a choice to some tools: only the allowed ones are offered. Without tools
 * there is no choice, which providers insist on.
 */
export function offeredTools({ tools, toolChoice }: ChatRequest): {
  readonly tools: readonly Tool[];
  readonly toolChoice?: Exclude<ToolChoice, { mode: 'allowed' }>;
} {
  if (tools.length === 0 || toolChoice === undefined) return { tools };
  if (toolChoice.mode !== 'allowed') return { tools, toolChoice };
  const { names, isRequired } = toolChoice;
  return {
    tools: tools.filter(({ name }) => names.includes(name)),
    toolChoice: { mode: isRequired ? 'required' : 'auto' },
  };
}
