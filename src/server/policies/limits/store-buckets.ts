import { hash } from 'node:crypto';
import { elementsOf } from '../../../core/foreign.ts';
import { type SharedStore, type StoreScript, StoreUnavailable } from '../../kernel/shared-store.ts';
import type { BucketOptions, Taken } from './rate-limits.ts';

/** Buckets that nobody has used for so long start full again; only relevant to buckets that take longer to fill. */
const FORGOTTEN_AFTER = 365 * 24 * 3600 * 1000;

/**
 * Admits requests by all their buckets, or by none. A bucket is saved as its tokens and the time of its last fill, by the
 * clock of the server, until it would be full: a missing one is full. A rejected request writes nothing.
 *
 * ARGV: number of requests; then for each bucket its size, tokens per fill, interval in ms, tokens that a request takes,
 * and whether requests need a token in it. Returns how many requests are admitted, the number of the bucket that has
 * rejected the others, and for each bucket its tokens and the time since its last fill.
 */
const TAKE: StoreScript = {
  lua: `
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local requests = tonumber(ARGV[1])
local admitted, empty, buckets = requests, 0, {}
for i, key in ipairs(KEYS) do
  local at = 5 * i - 3
  local b = { size = tonumber(ARGV[at]), fill = tonumber(ARGV[at + 1]), interval = tonumber(ARGV[at + 2]),
    take = tonumber(ARGV[at + 3]), filled = now }
  b.tokens = b.size
  local tokens, filled = string.match(redis.call('GET', key) or '', '^(%S+) (%S+)$')
  if tokens then
    -- After a failover, the clock may be behind.
    b.filled = math.min(tonumber(filled), now)
    local fills = math.floor((now - b.filled) / b.interval)
    b.tokens = math.min(b.size, tonumber(tokens) + fills * b.fill)
    b.filled = b.filled + fills * b.interval
  end
  if ARGV[at + 4] == '1' then
    local room = b.tokens
    if b.take == 0 then room = b.tokens >= 1 and requests or 0 end
    if room < admitted then admitted, empty = math.max(0, math.floor(room)), i end
  end
  buckets[i] = b
end
local reply = { admitted, empty }
for i, key in ipairs(KEYS) do
  local b = buckets[i]
  local taken = b.take * admitted
  if taken ~= 0 then
    b.tokens = b.tokens - taken
    local fills = math.ceil((b.size - b.tokens) / b.fill)
    local rest = math.min(${FORGOTTEN_AFTER}, math.max(1, math.ceil(fills * b.interval - (now - b.filled))))
    redis.call('SET', key, string.format('%.0f %.3f', b.tokens, b.filled), 'PX', string.format('%.0f', rest))
  end
  reply[2 * i + 1] = b.tokens
  reply[2 * i + 2] = math.floor(now - b.filled)
end
return reply`,
};

interface Waiting {
  resolve(taken: Taken): void;
  reject(error: unknown): void;
}

/** The buckets of a `localRateLimit` policy in the shared store. All replicas of a gateway share them. */
export class StoreBuckets {
  readonly #limits: readonly BucketOptions[];
  readonly #store: SharedStore;
  /** First part of the keys of each limit. */
  readonly #prefixes: readonly string[];
  /** Requests with the same buckets that wait for the call in flight; the next one counts them together. */
  readonly #waiting = new Map<string, Waiting[]>();

  /** `identity` is that of the policy in all replicas. Limits that differ count apart, also at the same place. */
  constructor(
    limits: readonly (BucketOptions & { readonly key?: string | undefined })[],
    store: SharedStore,
    identity: string,
  ) {
    this.#limits = limits;
    this.#store = store;
    // One hash tag: a script uses all buckets of a request.
    const policy = digest(identity);
    this.#prefixes = limits.map(({ maxTokens, tokensPerFill, fillInterval, type, key }, index) =>
      store.key(
        'limit',
        `{${policy}}`,
        digest(JSON.stringify([index, maxTokens, tokensPerFill, fillInterval, type, key ?? null])),
      ),
    );
  }

  /**
   * As `RateLimits.take`. While a call for the same buckets is in flight, requests wait for it and are then counted by one
   * call together, so a waiting time is that of two calls at most. Rejects with `StoreUnavailable`.
   */
  take(keys: readonly string[], isFreeOfTokens: boolean): Promise<Taken> {
    const { promise, resolve, reject } = Promise.withResolvers<Taken>();
    const group = JSON.stringify([isFreeOfTokens, keys]);
    const waiting = this.#waiting.get(group);
    if (waiting === undefined) void this.#takeAll(group, keys, isFreeOfTokens, [{ resolve, reject }]);
    else waiting.push({ resolve, reject });
    return promise;
  }

  async #takeAll(
    group: string,
    keys: readonly string[],
    isFreeOfTokens: boolean,
    first: readonly Waiting[],
  ): Promise<void> {
    let requests = first;
    while (requests.length > 0) {
      const next: Waiting[] = [];
      this.#waiting.set(group, next);
      try {
        const reply = await this.#run(keys, requests.length, ({ type }) => ({
          take: type === 'requests' ? 1 : 0,
          isNeeded: !(isFreeOfTokens && type === 'tokens'),
        }));
        for (const [index, { resolve }] of requests.entries()) resolve(this.#taken(reply, index));
      } catch (error) {
        for (const { reject } of requests) reject(error);
      }
      requests = next;
    }
    this.#waiting.delete(group);
  }

  /** As `RateLimits.deduct`. */
  async deduct(index: number, key: string, tokens: number): Promise<void> {
    const limit = this.#limits[index];
    if (limit !== undefined)
      await this.#store.run(TAKE, [this.#key(index, key)], [1, ...sizes(limit), tokens, 0]);
  }

  async #run(
    keys: readonly string[],
    requests: number,
    use: (limit: BucketOptions) => { readonly take: number; readonly isNeeded: boolean },
  ): Promise<readonly number[]> {
    const args = this.#limits.flatMap((limit) => {
      const { take, isNeeded } = use(limit);
      return [...sizes(limit), take, Number(isNeeded)];
    });
    const names = keys.map((key, index) => this.#key(index, key));
    const reply = elementsOf(await this.#store.run(TAKE, names, [requests, ...args]));
    // Not what the script returns: a server that is not Redis, or a proxy in front of one.
    if (reply.length !== 2 + 2 * names.length || !reply.every(isFiniteNumber))
      throw new StoreUnavailable('the server has not answered with the numbers that the script returns');
    return reply;
  }

  #key(index: number, key: string): string {
    return `${this.#prefixes[index]}:${key === '' ? '' : digest(key)}`;
  }

  /** The outcome for the request at `position` among those that were counted together. */
  #taken([admitted = 0, empty = 0, ...states]: readonly number[], position: number): Taken {
    const buckets = this.#limits.map(
      ({ maxTokens: size, tokensPerFill: perFill, fillInterval: interval }, index) => ({
        size,
        perFill,
        interval,
        tokens: states[2 * index] ?? 0,
        age: states[2 * index + 1] ?? 0,
      }),
    );
    const lowest = buckets.reduce((a, b) => (b.tokens < a.tokens ? b : a));
    if (position < admitted) return { isDenied: false, lowest };
    return { isDenied: true, lowest: buckets[empty - 1] ?? lowest, empty: empty - 1 };
  }
}

const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

const sizes = ({ maxTokens, tokensPerFill, fillInterval }: BucketOptions): number[] => [
  maxTokens,
  tokensPerFill,
  fillInterval,
];

/** Keys are personal data, such as addresses: the store gets hashes. 22 characters have 132 bits. */
const digest = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);
