import { isRecord, membersOf, parseJson } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { followEventStream, type StreamState } from '../../shared/event-stream.ts';
import { createStore } from '../../shared/store.ts';

/** A finished request, with the fields of its access-log line. */
export interface Entry {
  /** Unique on this page: ids of the gateway start again when it restarts. */
  readonly key: string;
  readonly id: number;
  /** RFC 3339. */
  readonly time: string;
  /** ms since 1970. */
  readonly at: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Requests {
  /** Newest first. */
  readonly entries: readonly Entry[];
  readonly stream: StreamState;
  /** How often the connection to the gateway was restored. */
  readonly reopened: number;
}

/** Minimum interval between two updates of the display, in ms. */
const UPDATE_INTERVAL = 150;

const store = createStore<Requests>({ entries: [], stream: { kind: 'connecting' }, reopened: 0 });
let waiting: Entry[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let shownAt = -UPDATE_INTERVAL;
let newest = 0;
let newestAt = 0;
let restarts = 0;

/**
 * Follows the requests of the gateway from now on. Called once per application, so that pages need not wait for them.
 */
function followRequests(signal: AbortSignal): void {
  void followEventStream(
    () => '/api/requests',
    {
      event: take,
      state: (stream) => change({ stream, reopened: store.get().reopened + (isBack(stream) ? 1 : 0) }),
    },
    signal,
  );
}

const isBack = (next: StreamState): boolean => next.kind === 'open' && store.get().stream.kind === 'lost';

export const useRequests = store.use;

const change = (next: Partial<Requests>): void => store.set({ ...store.get(), ...next });

function take(data: string): void {
  const read = readEntry(data);
  if (read === undefined) return;
  const { id, at } = read;
  if (id <= newest) {
    // Every connection begins with the requests that the gateway has kept; those known already are not newer than the
    // newest one.
    if (at <= newestAt) return;
    restarts += 1;
  }
  newest = id;
  newestAt = Math.max(at, newestAt);
  waiting.push({ ...read, key: `${restarts}-${id}` });
  // The first ones are displayed immediately, because the user is waiting for them.
  if (timer === undefined)
    timer = setTimeout(flush, Math.max(0, shownAt + UPDATE_INTERVAL - performance.now()));
}

function flush(): void {
  timer = undefined;
  shownAt = performance.now();
  const added = waiting.reverse();
  waiting = [];
  change({ entries: [...added, ...store.get().entries].slice(0, LIMITS.pageRequests) });
}

function readEntry(data: string): Omit<Entry, 'key'> | undefined {
  const { id, time, fields } = membersOf(parseJson(data));
  if (typeof id !== 'number' || typeof time !== 'string' || !isRecord(fields)) return undefined;
  return { id, time, at: Date.parse(time), fields };
}

/**
 * A hidden page closes its stream after this time in ms: browsers open at most six connections to a server, over all
 * tabs. The requests in between arrive when the stream reopens, as far as the gateway has kept them.
 */
const HIDDEN_FOR = 30_000;

/** Follows the requests of the gateway while the application is open and visible. */
export function followRequestsWhileSeen(): void {
  let stream: AbortController | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const stop = (): void => {
    stream?.abort();
    stream = undefined;
  };
  const look = (): void => {
    clearTimeout(timer);
    if (document.visibilityState === 'hidden') {
      timer = setTimeout(stop, HIDDEN_FOR);
    } else if (stream === undefined) {
      stream = new AbortController();
      followRequests(stream.signal);
    }
  };
  look();
  document.addEventListener('visibilitychange', look);
}
