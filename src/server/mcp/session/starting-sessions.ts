import { createHash } from 'node:crypto';
import { FieldNames, withoutFields } from '../../kernel/request/header-list.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { principal } from '../../kernel/request/shared-slots.ts';
import { callerKeys } from '../connection/caller-credential.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import type { Session, SessionOptions } from './session.ts';

interface Kept {
  readonly session: Session;
  readonly key: string;
  readonly timer: NodeJS.Timeout;
}

/**
 * Sessions whose clients left before their `initialize` was answered. A client that waits for a second never connects to servers
 * that `npx` starts in three, unless its next attempt finds the processes of the last one. A session is given to the next
 * request that is equal in everything that its servers may have seen, or closed after `LIMITS.keptStartTime`. At most
 * `LIMITS.keptStarts` are kept; a further one replaces the oldest.
 */
export class StartingSessions {
  readonly #options: Pick<SessionOptions, 'limits' | 'targets'>;
  readonly #discard: (session: Session) => Promise<void>;
  /** Oldest first. */
  readonly #kept = new Set<Kept>();
  #isClosed = false;

  /** `discard` closes a session. */
  constructor(
    options: Pick<SessionOptions, 'limits' | 'targets'>,
    discard: (session: Session) => Promise<void>,
  ) {
    this.#options = options;
    this.#discard = discard;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** The session that was kept first and has a process; undefined if there is none. */
  get oldestWithProcess(): Session | undefined {
    for (const { session } of this.#kept)
      if (session.connections.some(({ hasProcess }) => hasProcess)) return session;
    return undefined;
  }

  /** Keeps a session whose client has left, under the `keyOf` its request. */
  keep(session: Session, key: string): void {
    if (this.#isClosed) {
      void this.#discard(session);
      return;
    }
    if (this.#kept.size >= this.#options.limits.keptStarts) this.discardOldest();
    const timer = setTimeout(() => void this.discard(session), this.#options.limits.keptStartTime).unref();
    this.#kept.add({ session, key, timer });
  }

  /** Gives away the session under that key that was kept first; undefined if there is none. */
  take(key: string): Session | undefined {
    for (const kept of this.#kept) {
      if (kept.key !== key) continue;
      const session = this.#remove(kept);
      session.createdAt = performance.now();
      return session;
    }
    return undefined;
  }

  /** Closes a session, if it is kept. */
  async discard(session: Session): Promise<void> {
    for (const kept of this.#kept) if (kept.session === session) await this.#discard(this.#remove(kept));
  }

  /** Closes the session that was kept first. Returns whether there was one. */
  discardOldest(): boolean {
    const [oldest] = this.#kept;
    if (oldest !== undefined) void this.#discard(this.#remove(oldest));
    return oldest !== undefined;
  }

  /** Closes all sessions, and those that are to be kept from now on. */
  close(): void {
    this.#isClosed = true;
    while (this.discardOldest());
  }

  /**
   * Equal for requests that may continue each other's `initialize`: of one caller, or without authentication from one address,
   * with the same parameters and headers. `headers` are those that targets receive, with all credentials, or what these are
   * computed from.
   */
  keyOf(ctx: RequestContext, params: string, { list, request }: ClientHeaders): string {
    const owner = principal.get(ctx);
    const client = owner === undefined ? ['address', ctx.client.address] : ['owner', owner];
    const keys = callerKeys(this.#options.targets, request);
    return createHash('sha256')
      .update(JSON.stringify([client, params, withoutFields(list, OF_REQUEST), keys]), 'utf16le')
      .digest('base64');
  }

  #remove(kept: Kept): Session {
    clearTimeout(kept.timer);
    this.#kept.delete(kept);
    return kept.session;
  }
}

/** Headers that differ between attempts of one client and say nothing about it: ids of requests and traces. */
const OF_REQUEST = new FieldNames([
  'traceparent',
  'tracestate',
  'baggage',
  'sentry-trace',
  'request-id',
  'x-request-id',
  'x-correlation-id',
  'x-amzn-trace-id',
  'x-cloud-trace-context',
  'x-request-start',
  'cf-ray',
  'date',
]);
