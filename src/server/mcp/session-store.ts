import { createHash, randomBytes } from 'node:crypto';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { VERSION } from '../../core/version.ts';
import type { BackendState, TargetState } from '../kernel/inspection.ts';
import type { Connection } from './connection.ts';
import type { McpProcess } from './process.ts';
import { Session, type SessionOptions } from './session.ts';
import { openSession, sealSession } from './session-id.ts';
import type { Evictable } from './targets/child-slots.ts';

/**
 * The sessions of one MCP backend. After its configuration has changed, sessions stay in the store that they began in,
 * with its targets, until they end; a client finds them through the store that came in its place.
 */
export class SessionStore {
  readonly #sessions = new Map<string, Session>();
  /** Created, and about to be registered or abandoned: they count too. */
  readonly #beginning = new Set<Session>();
  readonly #options: SessionOptions;
  readonly #settings: McpProcess;
  readonly #sweep: NodeJS.Timeout;
  /** Ids that were ended here or in a store before: they still decrypt, but must not begin again. */
  #ended = new Set<string>();
  readonly #removeEvictable: () => void;
  /** Stores of earlier configurations that still have sessions. */
  readonly #before = new Set<SessionStore>();
  /** The store that has come in its place. */
  #after: SessionStore | undefined;
  /** No request that was routed here is under way any more. */
  #isRetired = false;

  constructor(options: SessionOptions, settings: McpProcess) {
    this.#options = options;
    this.#settings = settings;
    this.#sweep = setInterval(() => this.#endIdle(), LIMITS.sessionSweep).unref();
    this.#removeEvictable = settings.children.addSource(() => this.#evictable());
  }

  /** Sessions, those of earlier configurations included: the cap is for all of them. */
  get total(): number {
    let count = this.#sessions.size + this.#beginning.size;
    for (const store of this.#before) count += store.total;
    return count;
  }

  /** From now on this store is asked for the sessions of another one. */
  takeOver(previous: SessionStore): void {
    for (const store of [...previous.#before, previous]) {
      this.#before.add(store);
      store.#after = this;
    }
    previous.#before.clear();
    this.#ended = previous.#ended;
  }

  /** No request begins a session here any more: the store is closed with its last session. */
  retired(): void {
    this.#isRetired = true;
    this.#closeIfUnused();
  }

  #closeIfUnused(): void {
    if (!this.#isRetired || this.#sessions.size + this.#beginning.size > 0) return;
    const after = this.#after;
    if (after === undefined) return;
    after.#before.delete(this);
    // Whoever still holds this one, such as the first metrics, must not hold all that came after it.
    this.#after = undefined;
    void this.close();
  }

  /** Ids of ended sessions that are remembered. */
  get ended(): number {
    return this.#ended.size;
  }

  /** Of a figure with a cap a session: that of the session that is nearest to the cap. */
  fullest(figure: (session: Session) => number): number {
    let most = 0;
    for (const session of this.#sessions.values()) most = Math.max(most, figure(session));
    for (const store of this.#before) most = Math.max(most, store.fullest(figure));
    return most;
  }

  /** What all sessions together know of each target. */
  state(): BackendState {
    const sessions = [...this.#sessions.values(), ...this.#beginning];
    return {
      sessions: sessions.length,
      targets: this.#options.targets.map((target, index) =>
        targetState(
          target.name,
          sessions.map(({ connections }) => connections[index]),
        ),
      ),
    };
  }

  /** A session that is not connected and has no id yet; `register` gives it one. Throws `overloaded` at the cap. */
  create(principal: string | undefined, initializeParams: string): Session {
    if (this.total >= this.#settings.maxSessions) {
      throw new AppError('overloaded', {
        message: `the gateway already has ${this.#settings.maxSessions} MCP sessions (config.mcp.maxSessions)`,
        headers: ['retry-after', '5'],
      });
    }
    const session = new Session(this.#options, ownerOf(principal), initializeParams);
    this.#beginning.add(session);
    return session;
  }

  register(session: Session, version: string): void {
    session.version = version;
    session.id = sealSession(this.#settings.sessionKey, {
      r: randomBytes(16).toString('base64url'),
      b: this.#options.backend,
      ...(session.owner === undefined ? {} : { p: session.owner }),
      ...(this.#isResumable
        ? {
            v: version,
            s: session.connections.map(
              ({ target, peer }) => [target.name, peer?.channel?.sessionId ?? null] as const,
            ),
          }
        : {}),
    });
    this.#beginning.delete(session);
    this.#sessions.set(session.id, session);
    this.#tell('session begun', session);
  }

  /** Gives up a session that was created but not registered. */
  async abandon(session: Session): Promise<void> {
    this.#beginning.delete(session);
    await session.close();
    this.#closeIfUnused();
  }

  /**
   * The session of an id, also one that another process began. Throws `mcp_session_not_found` for every other
   * id, whatever is wrong with it: the client then begins a new session, and learns nothing about others'.
   */
  async find(id: string, principal: string | undefined): Promise<Session> {
    const session = this.#known(id) ?? (await this.#resume(id));
    if (session.owner !== ownerOf(principal)) throw notFound('it belongs to another caller');
    session.lastUsed = performance.now();
    return session;
  }

  #known(id: string): Session | undefined {
    const own = this.#sessions.get(id);
    if (own !== undefined) return own;
    for (const store of this.#before) {
      const session = store.#sessions.get(id);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  async end(session: Session): Promise<void> {
    for (const store of this.#before) if (store.#sessions.has(session.id)) return store.end(session);
    this.#sessions.delete(session.id);
    if (this.#isResumable && session.id !== '') this.#rememberEnded(session.id);
    this.#tell('session ended', session);
    await session.close();
    this.#closeIfUnused();
  }

  /** Ends the streams that only wait for what may come: they would hold up a shutdown. */
  drain(): void {
    for (const session of this.#sessions.values()) session.endStream();
    for (const store of this.#before) store.drain();
  }

  /** Ends all sessions, then the targets. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    this.#removeEvictable();
    const sessions = [...this.#sessions.values(), ...this.#beginning];
    this.#sessions.clear();
    this.#beginning.clear();
    const before = [...this.#before];
    this.#before.clear();
    await Promise.all([
      ...sessions.map((session) => session.close()),
      ...before.map((store) => store.close()),
    ]);
    await Promise.all(this.#options.targets.map((target) => target.close()));
  }

  #tell(what: string, { shortId }: Session): void {
    const { log, backend } = this.#options;
    log.debug('mcp::session', what, { 'mcp.session.id': shortId, backend, sessions: this.#sessions.size });
  }

  #rememberEnded(id: string): void {
    if (this.#ended.size >= LIMITS.endedSessions)
      this.#ended.delete(this.#ended.values().next().value as string);
    this.#ended.add(id);
  }

  get #isResumable(): boolean {
    return this.#options.targets.every((target) => target.resumable);
  }

  #endIdle(): void {
    const oldest = performance.now() - this.#settings.sessionIdle;
    for (const session of this.#sessions.values()) {
      if (session.lastUsed < oldest && session.inFlight === 0 && !session.hasOpenStream) {
        this.#tell('session was idle for too long', session);
        void this.end(session);
      }
    }
  }

  /** The session whose child processes may go first when there are too many. */
  #evictable(): Evictable | undefined {
    let first: Session | undefined;
    let idleFrom = Number.POSITIVE_INFINITY;
    for (const session of this.#sessions.values()) {
      const from =
        session.lastUsed + (session.hasOpenStream ? LIMITS.evictionListening : LIMITS.evictionIdle);
      if (from >= idleFrom || session.inFlight > 0 || !session.connections.some((each) => each.hasProcess))
        continue;
      first = session;
      idleFrom = from;
    }
    const session = first;
    return session && { idleFrom, evict: () => this.#evict(session) };
  }

  async #evict(session: Session): Promise<void> {
    this.#options.log.info(
      'mcp::session',
      'idle session was evicted for a new one (config.mcp.maxChildren)',
      {
        'mcp.session.id': session.shortId,
        backend: this.#options.backend,
        'idle.ms': Math.round(performance.now() - session.lastUsed),
      },
    );
    await this.end(session);
  }

  async #resume(id: string): Promise<Session> {
    if (this.#ended.has(id)) throw notFound('it has ended');
    const state = openSession(this.#settings.sessionKey, id);
    if (state === undefined) throw notFound('the id was not made here, or with another config.session.key');
    const { targets, backend } = this.#options;
    if (state.b !== backend) throw notFound('it is of another backend');
    if (state.s === undefined || state.v === undefined)
      throw notFound('it has ended, or was in a process that has: a stdio target cannot be continued');
    const sameTargets =
      state.s.length === targets.length && targets.every(({ name }, index) => state.s?.[index]?.[0] === name);
    if (!sameTargets) throw notFound('its backend has other targets now');
    const version = state.v;
    const session = new Session(
      this.#options,
      state.p,
      JSON.stringify(initializeParamsOfUnknownClient(version)),
    );
    session.id = id;
    session.version = version;
    await Promise.all(
      session.connections.map(async (connection, index) => {
        const upstreamSession = state.s?.[index]?.[1];
        if (typeof upstreamSession === 'string') await connection.resume(upstreamSession, version);
      }),
    );
    // Another request may have resumed it meanwhile, or ended it.
    const existing = this.#known(id);
    if (existing !== undefined) return existing;
    if (this.#ended.has(id)) throw notFound('it has ended');
    this.#sessions.set(id, session);
    this.#tell('session of another process continued', session);
    return session;
  }
}

/** The log is told why; the client is not. */
const notFound = (why: string): AppError => new AppError('mcp_session_not_found', { detail: why });

/** A target works when it does for one session; its problem is told when it works for none. */
function targetState(name: string, connections: readonly (Connection | undefined)[]): TargetState {
  const open = connections.filter((connection) => connection?.peer !== undefined);
  const website = open.find((connection) => connection?.website !== undefined)?.website;
  if (open.length > 0)
    return { name, state: 'ready', connections: open.length, ...(website !== undefined && { website }) };
  const problem = connections.find((connection) => connection?.problem !== undefined)?.problem;
  if (problem !== undefined) return { name, state: 'failing', connections: 0, problem };
  return { name, state: connections.length > 0 ? 'connecting' : 'idle', connections: 0 };
}

/**
 * Who a session belongs to, as a hash: ids leave the process. Of UTF-16, since JSON can hold half a character (`\ud83d`),
 * and in UTF-8 all of those are U+FFFD: people whose subjects differ in nothing else would share sessions.
 */
function ownerOf(principal: string | undefined): string | undefined {
  return principal === undefined
    ? undefined
    : createHash('sha256').update(principal, 'utf16le').digest('base64url').slice(0, 22);
}

/** A resumed session has lost what its client said of itself; a target that must begin again is told this. */
function initializeParamsOfUnknownClient(protocolVersion: string): object {
  return { protocolVersion, capabilities: {}, clientInfo: { name: 'agctl', version: VERSION } };
}
