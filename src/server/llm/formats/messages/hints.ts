import type { Hints } from '../../chat/member-reader.ts';

/** Members of a request that change no answer. */
export const REQUEST_HINTS: Hints = {
  cache_control: 'caches the prompt',
  diagnostics: 'explains why a cached prompt was not found',
};

/** Of a content block. */
export const BLOCK_HINTS: Hints = {
  citations: 'sources of an earlier text that is kept',
};

/** Of a tool. */
export const TOOL_HINTS: Hints = {
  eager_input_streaming: 'how the arguments are divided into events',
};

/**
 * Edits of `context_management` that remove old tool results and reasoning from the prompt to save tokens. A provider
 * without them reads the whole conversation.
 */
export const CONTEXT_EDIT_HINTS = ['clear_tool_uses_20250919', 'clear_thinking_20251015'] as const;
