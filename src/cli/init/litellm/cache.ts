import { membersOf, textIn } from '../../../core/foreign.ts';
import { numeric, seconds } from '../values.ts';
import type { Lost } from './lost.ts';

type Entry = Readonly<Record<string, unknown>>;

const PARAMS = 'litellm_settings.cache_params.';

/** `cache` of every model, which LiteLLM has for all of them; undefined if no answers are given again. */
export function cacheOf(litellm: Entry, lost: Lost): Entry | undefined {
  if (litellm['cache'] !== true) return undefined;
  const params = membersOf(litellm['cache_params']);
  const type = textIn(params['type']);
  const isBySense = type.includes('semantic');
  if (isBySense) lost.add(`${PARAMS}type`, 'answers are given again to equal requests, not to similar ones');
  if (params['mode'] === 'default_off')
    lost.add(`${PARAMS}mode`, 'clients cannot ask for the cache: set `cache` of a model for all of them');
  if (isBySense || params['mode'] === 'default_off') return undefined;
  if (type.startsWith('redis') || type.startsWith('valkey'))
    lost.add(`${PARAMS}type`, 'answers are kept in memory, and in Redis with `config.shared`');
  else if (!['', 'local'].includes(type))
    lost.add(`${PARAMS}type`, `answers are kept in memory, not in ${type}`);
  const ttl = numeric(params['ttl'] ?? params['default_in_memory_ttl'] ?? params['default_in_redis_ttl']);
  // LiteLLM gives answers again to everybody.
  return { scope: 'shared', ...(ttl !== undefined && ttl > 0 && { ttl: seconds(ttl) }) };
}
