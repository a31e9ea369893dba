import type { CacheMark, ChatRequest } from '../../chat/chat.ts';
import type { Json } from '../../chat/chat-format.ts';

/** Where a mark is: after a result of a tool or another block of a message, in the instructions, among the tools. */
export type Place = 'system' | 'block' | 'result' | 'tool';

/** The mark up to which Bedrock caches the prompt, as the model accepts it. */
export type CachePoints = (place: Place, cache: CacheMark | undefined) => Json[];

/**
 * Bedrock user guide, "Prompt caching". A model refuses a request with a mark that it does not accept: Nova those of tools
 * (NousResearch/hermes-agent#97281) and, in some versions, of their results (earendil-works/pi#2053), other vendors' models all
 * (BerriAI/litellm#39210). Names of application inference profiles do not say which model they have.
 */
export function cachePointsOf({ model }: Pick<ChatRequest, 'model'>): CachePoints {
  if (isNova(model)) return (place, cache) => (TEXTS.has(place) ? point(cache && {}) : []);
  const name = model.slice(model.lastIndexOf('/') + 1);
  const isKnown = name.includes('.') && !isClaude(model);
  return isKnown ? () => [] : (_, cache) => point(cache);
}

const TEXTS: ReadonlySet<Place> = new Set(['system', 'block']);

export const isClaude = (model: string): boolean => model.includes('anthropic.');
export const isNova = (model: string): boolean => model.includes('amazon.nova');

/** Five minutes are the default. */
function point(cache: CacheMark | undefined): Json[] {
  if (cache === undefined) return [];
  return [{ cachePoint: { type: 'default', ...(cache.ttl === '1h' ? { ttl: '1h' } : {}) } }];
}
