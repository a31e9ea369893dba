import { elementsOf, jsonIn, stringIn } from '../../../core/foreign.ts';
import { LruMap } from '../../../core/lru-map.ts';
import { type SharedStore, type StoreScript, withStore } from '../../kernel/shared-store.ts';

/** The answer of a provider in the client's format: JSON, or the events of a stream. */
export interface CachedAnswer {
  readonly contentType: string;
  readonly body: string;
  /** The model that it names. */
  readonly model: string | undefined;
  /** When it was complete, in ms since 1970. */
  readonly at: number;
}

/** Where the answers of one model are kept. Neither function rejects. */
export interface AnswerStore {
  find(key: string): CachedAnswer | undefined | Promise<CachedAnswer | undefined>;
  keep(key: string, answer: CachedAnswer): void | Promise<void>;
}

/** Answers in this process, of which those used least recently make room for others. `ttl` in ms. */
export class OwnAnswers implements AnswerStore {
  readonly #ttl: number;
  readonly #answers: LruMap<string, CachedAnswer>;

  constructor(ttl: number, maxBytes: number) {
    this.#ttl = ttl;
    this.#answers = new LruMap(Number.POSITIVE_INFINITY, maxBytes);
  }

  find(key: string): CachedAnswer | undefined {
    const answer = this.#answers.get(key);
    if (answer === undefined || Date.now() - answer.at < this.#ttl) return answer;
    this.#answers.delete(key);
    return undefined;
  }

  keep(key: string, answer: CachedAnswer): void {
    this.#answers.set(key, answer, 2 * answer.body.length + OVERHEAD);
  }
}

/** Bytes of an entry besides its text: the key, two objects, a place in the map. */
const OVERHEAD = 400;

const READ: StoreScript = { lua: "return redis.call('GET', KEYS[1])" };
const SAVE: StoreScript = { lua: "return redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[1])" };

/** Answers in Redis or Valkey, for all replicas. Without the server, every call goes to the provider. */
export class SharedAnswers implements AnswerStore {
  readonly #store: SharedStore;
  readonly #ttl: number;

  constructor(store: SharedStore, ttl: number) {
    this.#store = store;
    this.#ttl = ttl;
  }

  async find(key: string): Promise<CachedAnswer | undefined> {
    const [at, contentType, body, model] = elementsOf(jsonIn(String(await this.#run(READ, key))));
    return typeof at === 'number' && typeof contentType === 'string' && typeof body === 'string'
      ? { at, contentType, body, model: stringIn(model) }
      : undefined;
  }

  async keep(key: string, { at, contentType, body, model }: CachedAnswer): Promise<void> {
    const text = JSON.stringify([at, contentType, body, model]);
    await this.#run(SAVE, key, Math.max(1, Math.round(this.#ttl)), text);
  }

  #run(script: StoreScript, key: string, ...args: readonly (string | number)[]): Promise<unknown> {
    const store = this.#store;
    return withStore(store, 'answers', () => store.run(script, [store.key('answer', key)], args));
  }
}
