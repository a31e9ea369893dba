import { durationSchema } from '../../core/duration.ts';
import { AppError, messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import type { Cutoffs, Store } from './store.ts';

/** How long things are kept after they were stored, in ms; undefined: forever. Documents of the docs folder never expire. */
export interface Lifetimes {
  /** Chat turns. */
  readonly turns?: number | undefined;
  /** Entities of agents, since their last change, and ingested documents. */
  readonly entities?: number | undefined;
}

/** The collections of the specification that can have a time-to-live, and what it is called here. */
const COLLECTIONS = new Map<string, keyof Lifetimes>([
  ['chat_history', 'turns'],
  ['entities', 'entities'],
]);

/**
 * Parses `MEMORY_TTL`, such as `chat_history=30d,entities=365d`.
 *
 * @throws AppError `memory_invalid`
 */
export function lifetimesFrom(text: string | undefined): Lifetimes {
  const lifetimes: { -readonly [Key in keyof Lifetimes]: Lifetimes[Key] } = {};
  for (const part of (text ?? '').split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const [collection = '', ...rest] = part.split('=');
    const key = COLLECTIONS.get(collection.trim());
    const duration = durationSchema.safeParse(rest.join('=').trim());
    if (key === undefined)
      throw invalid(`${JSON.stringify(collection.slice(0, 40))} is not a collection with a time-to-live`);
    if (!duration.success || duration.data < MEMORY_STORE_LIMITS.shortestLifetime)
      throw invalid(`\`${collection}\`: expected a duration of at least a second, such as 30d or 12h`);
    lifetimes[key] = duration.data;
  }
  return lifetimes;
}

function invalid(problem: string): AppError {
  return new AppError('memory_invalid', {
    message: `MEMORY_TTL: ${problem}: write it as chat_history=30d,entities=365d (relations expire with their entities)`,
  });
}

/** What was stored at or before these times has expired. */
function cutoffsOf({ turns, entities }: Lifetimes): Cutoffs {
  const before = (lifetime: number | undefined): string =>
    lifetime === undefined ? '' : new Date(Date.now() - lifetime).toISOString();
  return { turns: before(turns), entities: before(entities) };
}

/** The store without what has expired, whether or not it is deleted yet. */
export function withLifetimes(store: Store, lifetimes: Lifetimes): Store {
  if (lifetimes.turns === undefined && lifetimes.entities === undefined) return store;
  const expired = (): Cutoffs => cutoffsOf(lifetimes);
  return {
    ...store,
    sessions: (page) => store.sessions({ ...page, expired: expired() }),
    turns: (id, page) => store.turns(id, { ...page, expired: expired() }),
    searchTurns: (request) => store.searchTurns({ ...request, expired: expired() }),
    relatedTurns: (query) => store.relatedTurns({ ...query, expired: expired() }),
    entities: (ids) => store.entities(ids, expired()),
    nearest: (vector, embedder, scope) => store.nearest(vector, embedder, { ...scope, expired: expired() }),
    lexical: (terms, scope, compared) => store.lexical(terms, { ...scope, expired: expired() }, compared),
    byName: (name, limit) => store.byName(name, limit, expired()),
    similarNames: (name, limit) => store.similarNames(name, limit, expired()),
    searchEntities: (request) => store.searchEntities({ ...request, expired: expired() }),
    topology: (page) => store.topology({ ...page, expired: expired() }),
    agentGraph: (request) => store.agentGraph({ ...request, expired: expired() }),
    agentRelations: (page) => store.agentRelations({ ...page, expired: expired() }),
    changeGraph: (change) => store.changeGraph(change, expired()),
    readTexts: (ids) => store.readTexts(ids, expired()),
    putExtraction: (extraction) => store.putExtraction(extraction, expired()),
  };
}

/** Deletes what has expired, in the background. */
export interface Sweeper {
  readonly isRunning: boolean;
  start(): void;
  stop(): Promise<void>;
}

export function createSweeper(store: Store, lifetimes: Lifetimes, log: Log): Sweeper {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let isStopped = lifetimes.turns === undefined && lifetimes.entities === undefined;
  const sweep = async (): Promise<void> => {
    try {
      await store.exclusively('expiry', async () => {
        // Each batch is a transaction of its own, so that other writes are not delayed for long.
        while (!isStopped && (await store.expire(cutoffsOf(lifetimes), MEMORY_STORE_LIMITS.expiryBatch)) > 0);
      });
    } catch (error) {
      log.warn('memory::backend', 'what has expired could not be deleted; it is tried again', {
        problem: messageOf(error),
      });
    }
  };
  const next = (): void => {
    running = sweep().finally(() => {
      running = undefined;
      if (!isStopped) timer = setTimeout(next, MEMORY_STORE_LIMITS.expiryInterval).unref();
    });
  };
  return {
    get isRunning() {
      return running !== undefined;
    },
    start: () => {
      if (!isStopped) next();
    },
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
