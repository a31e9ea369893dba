import { createHash } from 'node:crypto';
import type { RequestObserver } from '../../kernel/observer.ts';
import { callerKeys } from '../connection/caller-credential.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import type { Target } from '../connection/target.ts';
import type { Envelope } from '../protocol/envelope.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { CallerSession, descriptionOf } from './caller-session.ts';
import type { SessionOptions } from './session.ts';

/** Where the sessions of callers live: they count as sessions, and end when they were idle for too long. */
interface Home {
  /** Adds a session. Throws `overloaded` (503) when there are too many. */
  adopt(session: CallerSession): void;
  end(session: CallerSession): Promise<void>;
  /** The session in which a call waits for input, also if an earlier configuration created it. */
  waiting(caller: Caller, requestState: string): CallerSession | undefined;
}

/** The caller of a request. */
export interface Caller {
  /** Hash of the authenticated caller; undefined without authentication. */
  readonly owner: string | undefined;
  readonly envelope: Envelope;
  /** End-to-end headers of the request. */
  readonly headers: ClientHeaders;
  readonly observer: RequestObserver | undefined;
}

/**
 * The sessions at the targets in which requests of revision 2026-07-28 run. One session serves all requests of one caller, and at
 * a server with sessions only those that describe the same client: such a server must not see one caller's credentials, or one
 * client's capabilities, in the session of another. Sessions are found by the caller, not by an id.
 */
export class Callers {
  readonly #options: SessionOptions;
  readonly #home: Home;
  readonly #sessions = new Map<string, Set<CallerSession>>();

  constructor(options: SessionOptions, home: Home) {
    this.#options = options;
    this.#home = home;
  }

  /**
   * Returns a connected session, which the request uses until `release`. Rejects with the reason if no target is available.
   * A `requestState` continues a call that waits for input, in its session.
   */
  async acquire(caller: Caller, request: Pick<RpcMessage, 'method' | 'params'>): Promise<CallerSession> {
    const { method } = request;
    const { requestState } = request.params;
    const key = keyOf(caller, this.#options.targets);
    const waiting = typeof requestState === 'string' ? this.#home.waiting(caller, requestState) : undefined;
    const session = waiting ?? this.#usable(key, caller, method) ?? this.#create(key, caller);
    session.use(method);
    try {
      await session.connect(caller.headers, caller.observer);
    } catch (error) {
      session.release(method);
      if (!session.closed) await this.#home.end(session);
      throw error;
    }
    if (waiting !== undefined || session.accepts(method, 1)) return session;
    // Only known once it is connected.
    session.release(method);
    return this.acquire(caller, request);
  }

  /** No new requests come: ends each session after its last request. Calls that wait for input can still be continued. */
  retire(): void {
    for (const session of this.#all()) {
      session.onUnused = () => {
        if (session.inFlight === 0) void this.#home.end(session);
      };
      session.onUnused();
    }
  }

  /** Ends the session that was unused for longest, which its caller can do without. Returns whether there was one. */
  evictUnused(): boolean {
    let longest: CallerSession | undefined;
    for (const session of this.#all())
      if (session.inFlight === 0 && session.lastUsed < (longest?.lastUsed ?? Number.POSITIVE_INFINITY))
        longest = session;
    if (longest !== undefined) void this.#home.end(longest);
    return longest !== undefined;
  }

  /** The session of the caller in which a call waits for input. */
  waiting(caller: Caller, requestState: string): CallerSession | undefined {
    return this.#open(keyOf(caller, this.#options.targets)).find((session) =>
      session.awaitsInput(requestState),
    );
  }

  #all(): CallerSession[] {
    return [...this.#sessions.values()].flatMap((set) => [...set]).filter(({ closed }) => !closed);
  }

  #usable(key: string, { envelope }: Caller, method: string): CallerSession | undefined {
    const description = descriptionOf(envelope);
    return this.#open(key).find(
      (session) => (session.isNative || session.description === description) && session.accepts(method),
    );
  }

  #open(key: string): CallerSession[] {
    return [...(this.#sessions.get(key) ?? [])];
  }

  #create(key: string, { owner, envelope }: Caller): CallerSession {
    const session = new CallerSession(this.#options, owner, envelope);
    session.onClosed = () => this.#remove(key, session);
    this.#home.adopt(session);
    const known = this.#sessions.get(key) ?? new Set();
    // The rest of a result may be read in another session than that of the call.
    const [other] = known;
    session.keptResults = other?.keptResults?.shared() ?? session.keptResults;
    known.add(session);
    this.#sessions.set(key, known);
    return session;
  }

  #remove(key: string, session: CallerSession): void {
    const known = this.#sessions.get(key);
    known?.delete(session);
    if (known?.size === 0) this.#sessions.delete(key);
  }
}

/** Headers that may carry credentials, for which a target may keep a session of its own. */
const CREDENTIAL = /auth|token|key|secret|session|cookie|user/i;
/** Headers of that kind that differ between requests of one caller, or say nothing about it. */
const NO_CREDENTIAL = /^(?:mcp-|idempotency-key$|user-agent$)/i;

function keyOf({ owner, headers: { list, request } }: Caller, targets: readonly Target[]): string {
  const credentials: string[] = [];
  for (let index = 0; index + 1 < list.length; index += 2) {
    const [name = '', value = ''] = [list[index], list[index + 1]];
    if (CREDENTIAL.test(name) && !NO_CREDENTIAL.test(name)) credentials.push(name, value);
  }
  return createHash('sha256')
    .update(JSON.stringify([owner ?? null, credentials, callerKeys(targets, request)]), 'utf16le')
    .digest('base64');
}
