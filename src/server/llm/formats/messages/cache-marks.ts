import { membersOf } from '../../../../core/foreign.ts';
import type { CacheMarks } from '../format.ts';

/** The Messages API has a member of blocks and tools. */
export const cacheMarks: CacheMarks = {
  isMarked: (block) => typeof block === 'object' && block !== null && 'cache_control' in block,
  isUnmarkable,
  marked(blocks) {
    const last = blocks.findLastIndex((block) => !isUnmarkable(block));
    return blocks.map((block, index) =>
      index === last ? { ...membersOf(block), cache_control: { type: 'ephemeral' } } : block,
    );
  },
  tools: (body) => ({ list: body.get('tools'), put: (tools) => body.set('tools', tools) }),
};

/** Blocks, and tools, that cannot have a mark (Anthropic, "Prompt caching": "What cannot be cached"). */
export function isUnmarkable(block: unknown): boolean {
  const { type, text, defer_loading: isLoadedLater } = membersOf(block);
  const isThinking = type === 'thinking' || type === 'redacted_thinking';
  return isThinking || (type === 'text' && text === '') || isLoadedLater === true;
}
