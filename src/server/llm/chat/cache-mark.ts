import type { CacheMark } from './chat.ts';
import type { MemberReader } from './member-reader.ts';

/**
 * The mark up to which the prompt should be cached. `cache_control` is that of the Messages API; clients of Chat
 * Completions send it too, because OpenRouter and other gateways accept it. `prompt_cache_breakpoint` is that of OpenAI.
 */
export function readCacheMark(members: MemberReader): CacheMark | undefined {
  const breakpoint = members.object('prompt_cache_breakpoint', (mark) => {
    mark.only('mode', 'explicit');
    return {};
  });
  const control = members.object('cache_control', (mark) => {
    mark.only('type', 'ephemeral');
    // Claude Code: who shares the cached prompt.
    mark.skip({ scope: 'a wish for the cache, like the mark itself' });
    const ttl = mark.choice('ttl', ['5m', '1h']);
    return ttl === undefined ? {} : { ttl };
  });
  return control ?? breakpoint;
}
