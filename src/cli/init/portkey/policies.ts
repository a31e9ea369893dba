import { isRecord, membersOf } from '../../../core/foreign.ts';
import { numeric, seconds } from '../values.ts';
import type { Lost } from './lost.ts';
import { type Leaf, statusesIn } from './tree.ts';

type Entry = Readonly<Record<string, unknown>>;

/** Statuses after which Portkey repeats a call if a file names none. */
const REPEATED = [429, 500, 502, 503, 504];

const ALL_TARGETS = 'set for all targets alone: `llm.policies';

/** `retry` of `llm.policies`. `hasNext`: failed calls go to other targets first. */
export function retryOf(leaves: readonly Leaf[], hasNext: boolean, lost: Lost): Entry | undefined {
  const found = leaves.map(({ settings, place }) => ({ place, retry: retryIn(settings, place, lost) }));
  const first = found.find(({ retry }) => retry !== undefined)?.retry;
  if (first === undefined) return undefined;
  for (const { place, retry } of found)
    if (JSON.stringify(retry) !== JSON.stringify(first))
      lost.add('retry', `${ALL_TARGETS}.retry\``, { owner: place });
  if (hasNext)
    lost.add('retry', 'a call is repeated when every target has failed, not at each target before the next');
  return first;
}

function retryIn(settings: Entry, owner: string, lost: Lost): Entry | undefined {
  const retry = membersOf(settings['retry']);
  const attempts = Math.min(255, Math.trunc(numeric(retry['attempts']) ?? 0));
  lost.addRest(retry, ['attempts', 'on_status_codes'], { prefix: 'retry.', owner });
  if (attempts <= 0) return undefined;
  // Portkey waits a second before the first repetition.
  return {
    attempts,
    backoff: '1s',
    codes: statusesIn(retry['on_status_codes']) ?? REPEATED,
  };
}

/** `timeout` of `llm.policies`: the longest of the targets. */
export function timeoutOf(leaves: readonly Leaf[], lost: Lost): Entry | undefined {
  const found = leaves.map(({ settings, place }) => ({
    place,
    timeout: numeric(settings['request_timeout']),
  }));
  const longest = Math.max(0, ...found.map(({ timeout }) => timeout ?? 0));
  if (longest <= 0) return undefined;
  for (const { place, timeout } of found)
    if (timeout !== longest) lost.add('request_timeout', `${ALL_TARGETS}.timeout\``, { owner: place });
  return { backendRequestTimeout: seconds(longest / 1000) };
}

/** `cache` of the model of a target. */
export function cacheOf(settings: Entry, owner: string, lost: Lost): Entry | undefined {
  const { cache } = settings;
  const members = isRecord(cache) ? cache : { mode: cache };
  const { mode, max_age: age } = members;
  if (mode !== 'simple' && mode !== 'semantic') {
    if (cache !== undefined && cache !== null) lost.addRest(members, [], { prefix: 'cache.', owner });
    return undefined;
  }
  lost.addRest(members, ['mode', 'max_age'], { prefix: 'cache.', owner });
  if (mode === 'semantic')
    lost.add('cache.mode', 'answers are given again to equal requests, not to similar ones', { owner });
  const ttl = numeric(age);
  if (ttl === undefined || ttl <= 0)
    lost.add('cache.max_age', 'not set: answers are given again for ten minutes', { owner });
  // Portkey gives answers again to everybody.
  return { scope: 'shared', ...(ttl !== undefined && ttl > 0 && { ttl: seconds(ttl) }) };
}
