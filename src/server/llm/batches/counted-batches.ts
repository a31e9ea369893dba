import { hash } from 'node:crypto';
import { elementsOf, jsonIn } from '../../../core/foreign.ts';
import type { Limits } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
import type { RuntimeSettings } from '../../kernel/compile-context.ts';
import type { Shared } from '../../kernel/shared-state.ts';
import { type SharedStore, type StoreScript, sharedStore, withStore } from '../../kernel/shared-store.ts';
import { Slot } from '../../kernel/slot.ts';
import { COUNTS, tokenCount, type Usage } from '../usage.ts';

/** What of a batch was counted: tokens in the order of `COUNTS`, and 10^-12 USD as text. A JSON value, because workers send it. */
export interface Tally {
  readonly counts: readonly number[];
  readonly picoUsd: string;
}

type TallyOperations = {
  /** Remembers the tally if it is larger than the known one, which is returned; null if there is none. */
  advance(key: string, tally: Tally): Tally | null;
};

/**
 * Remembers what was counted of each batch, so that a batch that is retrieved again is not counted again. One process does so
 * for all workers of a gateway, and Redis for all replicas (`config.shared`).
 */
export class CountedBatches {
  readonly #own: Shared<TallyOperations>;
  readonly #settings: RuntimeSettings;

  constructor(settings: RuntimeSettings) {
    this.#settings = settings;
    const tallies = new LruMap<string, Tally>(settings.limits.countedBatches);
    this.#own = settings.sharedState.join<TallyOperations>(() => 'countedBatches', {
      advance(key, tally) {
        const known = tallies.get(key);
        if (sizeOf(tally) > (known === undefined ? 0 : sizeOf(known))) tallies.set(key, tally);
        return known ?? null;
      },
    });
  }

  /**
   * Remembers what is known of a batch now, and returns what was counted of it before. Never rejects: what nobody can tell is
   * counted again rather than lost.
   */
  advance(batch: string, tally: Tally): Tally | undefined | Promise<Tally | undefined> {
    // The same length whatever a provider names.
    const key = hash('sha256', batch, 'base64url');
    const store = sharedStore.get(this.#settings);
    const own = this.#own.call.advance(key, tally);
    if (store === undefined && !(own instanceof Promise)) return own ?? undefined;
    return this.#advance(key, tally, own, store);
  }

  async #advance(
    key: string,
    tally: Tally,
    own: Tally | null | Promise<Tally | null>,
    store: SharedStore | undefined,
  ): Promise<Tally | undefined> {
    // In a worker whose process with the tallies is gone, nobody knows.
    const known = (await Promise.resolve(own).catch(() => null)) ?? undefined;
    const shared = store && (await stored(store, key, tally, this.#settings.limits));
    if (known === undefined || shared === undefined) return known ?? shared;
    return sizeOf(shared) > sizeOf(known) ? shared : known;
  }
}

/** Of several, the one with more tokens has seen more of the batch. */
const sizeOf = ({ counts: [input = 0, output = 0] }: Tally): number => input + output;

/** KEYS: the batch. ARGV: tokens, tally, lifetime in ms. Returns what was known before. */
const ADVANCE: StoreScript = {
  lua: `
local known = redis.call('GET', KEYS[1])
local size = known and tonumber(string.match(known, '^(%d+) ')) or 0
if tonumber(ARGV[1]) > size then
  redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return known or ''`,
};

async function stored(
  store: SharedStore,
  key: string,
  tally: Tally,
  { countedBatchAge }: Pick<Limits, 'countedBatchAge'>,
): Promise<Tally | undefined> {
  const args = [sizeOf(tally), JSON.stringify([tally.picoUsd, ...tally.counts]), countedBatchAge];
  const answer = await withStore(store, 'batches', () => store.run(ADVANCE, [store.key('batch', key)], args));
  const known = String(answer);
  const [picoUsd, ...counts] = elementsOf(jsonIn(known.slice(known.indexOf(' ') + 1)));
  if (typeof picoUsd !== 'string' || !/^\d{1,40}$/.test(picoUsd)) return undefined;
  return { picoUsd, counts: counts.map((count) => tokenCount(count) ?? 0) };
}

export const tallyOf = (usage: Usage, picoUsd: bigint): Tally => ({
  counts: COUNTS.map((count) => usage[count] ?? 0),
  picoUsd: String(picoUsd),
});

/** Tokens and cost of a tally less those of an earlier one. Undefined if there are no more tokens. */
export function beyond(
  tally: Tally,
  before: Tally | undefined,
): { usage: Usage; picoUsd: bigint } | undefined {
  const rest = COUNTS.flatMap((count, index) => {
    const more = (tally.counts[index] ?? 0) - (before?.counts[index] ?? 0);
    return more > 0 ? [[count, more] as const] : [];
  });
  const { input = 0, output = 0, ...others }: Partial<Usage> = Object.fromEntries(rest);
  if (input === 0 && output === 0) return undefined;
  const picoUsd = BigInt(tally.picoUsd) - BigInt(before?.picoUsd ?? 0);
  return { usage: { input, output, ...others }, picoUsd: picoUsd < 0n ? 0n : picoUsd };
}

/** Of the process. Set on the settings before backends are compiled. */
export const countedBatches = new Slot<CountedBatches>();
