import { randomBytes, randomUUID } from 'node:crypto';
import { AppError } from '../../../core/errors.ts';
import type { BackendState } from '../../kernel/inspection.ts';
import type { SharedStore } from '../../kernel/shared-store.ts';
import type { SlotHolder } from '../../kernel/slot.ts';
import type { Evictable } from '../child-slots.ts';
import { readRequests } from '../connection/caller-credential.ts';
import { seenTools } from '../connection/seen-tools.ts';
import { SessionEnded } from '../connection/target-failure.ts';
import { targetState } from '../connection/target-state.ts';
import { initializing } from '../eras/open-target.ts';
import type { McpProcess } from '../process.ts';
import { CallerSession } from './caller-session.ts';
import { type Caller, Callers } from './callers.ts';
import {
  checkResumable,
  EndedSessions,
  keepAtTargets,
  notFound,
  resumedSession,
  stateInId,
  stateOf,
} from './resumed-session.ts';
import { Session, type SessionOptions } from './session.ts';
import { openSession, ownerOf, type SessionState, sealSession } from './session-id.ts';
import { SharedSessions } from './shared-sessions.ts';
import { StartingSessions } from './starting-sessions.ts';

/**
 * The sessions of one MCP backend. After a reload, sessions stay in the store that created them, with its targets, until
 * they end. Clients find them through the store of the new configuration.
 */
export class SessionStore {
  readonly #sessions = new Map<string, Session>();
  /** Created but not registered or abandoned yet. They count towards `maxSessions`. */
  readonly #initializing = new Set<Session>();
  /** Those of them whose clients have left. */
  readonly starting: StartingSessions;
  /** Number of sessions that are being ended at their targets. */
  #ending = 0;
  readonly #options: SessionOptions;
  readonly #settings: McpProcess;
  readonly #sweep: NodeJS.Timeout;
  /** Those that ended here or in a previous store. */
  #ended = new EndedSessions();
  readonly #removeEvictable: () => void;
  readonly #shared: SharedSessions | undefined;
  /** Stores of earlier configurations that still have sessions. */
  readonly #previous = new Set<SessionStore>();
  /** The store that replaced this one. */
  #successor: SessionStore | undefined;
  /** No request that was routed to this store is in flight any more. */
  #isRetired = false;
  /** Whether credentials of targets are computed from requests; sessions of earlier configurations keep their targets. */
  readsRequests: boolean;

  /** `store`: what replicas of the gateway share, if they share sessions. */
  constructor(options: SessionOptions, settings: McpProcess, store?: SharedStore) {
    this.#options = options;
    this.#settings = settings;
    this.readsRequests = readRequests(options.targets);
    if (store !== undefined && settings.isKeyConfigured)
      this.#shared = new SharedSessions(store, settings.sessionKey, settings.sessionIdle, options.limits);
    this.#sweep = setInterval(() => this.#endIdle(), options.limits.sessionSweep).unref();
    this.callers = new Callers(options, {
      adopt: (session) => this.#adopt(session),
      end: (session) => this.end(session),
      waiting: (caller, requestState) => this.#waiting(caller, requestState),
    });
    this.starting = new StartingSessions(options, (session) => this.abandon(session));
    this.#removeEvictable = settings.children.addSource(() => this.#evictable());
  }

  /** The sessions in which requests of revision 2026-07-28 run. */
  readonly callers: Callers;

  /** Number of sessions, including those of earlier configurations: `maxSessions` applies to all of them. */
  get total(): number {
    let count = this.#sessions.size + this.#initializing.size;
    for (const store of this.#previous) count += store.total;
    return count;
  }

  /** Replaces `previous`: its sessions are found through this store from now on. */
  takeOver(previous: SessionStore): void {
    for (const store of [...previous.#previous, previous]) {
      this.#previous.add(store);
      store.#successor = this;
      for (const { credentials } of store.#options.targets) credentials?.follow(this.#options.targets);
      this.readsRequests ||= store.readsRequests;
    }
    previous.callers.retire();
    previous.#previous.clear();
    this.#ended = previous.#ended;
  }

  /** The configuration of this store has taken effect. */
  served(): void {
    for (const target of this.#options.targets) target.standBy?.(true);
  }

  /** No more sessions are created here: the store is closed when its last session ends. */
  retired(): void {
    this.#isRetired = true;
    for (const target of this.#options.targets) target.standBy?.(false);
    this.starting.close();
    this.#closeIfUnused();
  }

  #closeIfUnused(): void {
    if (!this.#isRetired || this.#sessions.size + this.#initializing.size + this.#ending > 0) return;
    const successor = this.#successor;
    if (successor === undefined) return;
    successor.#previous.delete(this);
    // A reference to this store, such as that of the metrics, must not keep all later stores alive.
    this.#successor = undefined;
    void this.close();
  }

  /** Number of remembered ids of ended sessions. */
  get ended(): number {
    return this.#ended.size;
  }

  /** The highest value among all sessions of a figure that has a limit per session; 0 without sessions. */
  fullest(figure: (session: Session) => number): number {
    let highest = 0;
    for (const session of this.#sessions.values()) highest = Math.max(highest, figure(session));
    for (const store of this.#previous) highest = Math.max(highest, store.fullest(figure));
    return highest;
  }

  /** The state of each target over all sessions of this store. */
  state(): BackendState {
    const sessions = [...this.#sessions.values(), ...this.#initializing];
    return {
      sessions: sessions.length,
      targets: this.#options.targets.map((target, index) => ({
        ...targetState(
          target.name,
          sessions.map(({ connections }) => connections[index]),
        ),
        ...(seenTools(target) && { toolNames: seenTools(target) }),
        ...(target.pins === undefined ? {} : { pins: target.pins.state() }),
      })),
    };
  }

  /**
   * Creates a session that is not connected and has no id; `register` assigns the id. Throws `overloaded` (503) when there
   * are `maxSessions` sessions.
   */
  create(principal: string | undefined, initializeParams: string): Session {
    const session = new Session(
      this.#options,
      ownerOf(principal),
      initializing(initializeParams, this.#options.log),
    );
    session.initializeParams = initializeParams;
    this.#admit(session);
    return session;
  }

  /** Adds a session that is never registered. Throws `overloaded` (503) when there are `maxSessions` sessions. */
  admit<T extends Session>(create: (options: SessionOptions) => T): T {
    const session = create(this.#options);
    this.#admit(session);
    return session;
  }

  /** Whether clients get no sessions (`statefulMode`). */
  get isStateless(): boolean {
    return this.#options.isStateless;
  }

  /** Throws `overloaded` (503) when there are `maxSessions` sessions. */
  #admit(session: Session): void {
    // The next request of that caller opens another session.
    if (this.total >= this.#settings.maxSessions && !this.starting.discardOldest())
      this.callers.evictUnused();
    if (this.total >= this.#settings.maxSessions) {
      throw new AppError('overloaded', {
        message: `the gateway already has ${this.#settings.maxSessions} MCP sessions (config.mcp.maxSessions)`,
        headers: ['retry-after', '5'],
      });
    }
    this.#initializing.add(session);
  }

  /** Adds a session that requests find by their caller. Its id is not given to clients. */
  #adopt(session: CallerSession): void {
    this.#admit(session);
    this.#initializing.delete(session);
    session.id = randomUUID();
    this.#sessions.set(session.id, session);
  }

  #waiting(caller: Caller, requestState: string): CallerSession | undefined {
    for (const { callers } of [this, ...this.#previous]) {
      const session = callers.waiting(caller, requestState);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /**
   * Assigns the id: from now on clients find the session. `version` is the negotiated protocol revision. Another process can
   * resume the session if `isResumable`.
   */
  async register(session: Session, version: string, isResumable = this.#isResumable): Promise<void> {
    session.version = version;
    session.isResumable = isResumable;
    const state = stateOf(session, randomBytes(16).toString('base64url'));
    if (isResumable) session.record = await this.#shared?.save(state);
    session.id = sealSession(this.#settings.sessionKey, stateInId(session, state), this.#settings.worker);
    this.#initializing.delete(session);
    this.#sessions.set(session.id, session);
    this.#logEvent('session started', session);
  }

  /** Ends a session once the caller of this request, to whom it belongs, is no longer let in. */
  whileAdmitted(ctx: SlotHolder, session: Session): void {
    session.whileAdmitted(ctx, (why) => {
      this.#logEvent('session of a caller who is no longer let in', session, { why });
      void this.end(session, new SessionEnded(why));
    });
  }

  /** Closes a session that was created but not registered. */
  async abandon(session: Session): Promise<void> {
    this.#initializing.delete(session);
    await session.close();
    this.#closeIfUnused();
  }

  /**
   * The session of an id, including one that another process created. Throws `mcp_session_not_found` (404) for any other
   * id, whatever the reason: clients then initialize a new session, and learn nothing about sessions of others.
   */
  find(id: string, principal: string | undefined): Session | Promise<Session> {
    const session = this.#find(id);
    if (session !== undefined) {
      const known = this.#use(session, principal);
      return known.record === undefined ? known : this.#unlessEnded(known);
    }
    return this.#resume(id).then((resumed) => this.#use(resumed, principal));
  }

  #use(session: Session, principal: string | undefined): Session {
    if (session instanceof CallerSession) throw notFound('it is internal');
    if (session.owner !== ownerOf(principal)) throw notFound('it belongs to another caller');
    session.lastUsed = performance.now();
    return session;
  }

  /** Another replica may have ended the session. */
  async #unlessEnded(session: Session): Promise<Session> {
    const { record } = session;
    if (record === undefined || !(await this.#shared?.isEnded(record, () => stateOf(session, record.id))))
      return session;
    // The other replica does not know sessions that were begun here since, for requests until now.
    await this.#leave(session, openSession(this.#settings.sessionKey, session.id)?.s);
    throw notFound('another replica has ended it');
  }

  /** Closes a session here, which goes on or has been ended elsewhere. `ended`: its sessions at targets that have ended. */
  async #leave(session: Session, ended?: SessionState['s']): Promise<void> {
    for (const store of this.#previous)
      if (store.#sessions.has(session.id)) return store.#leave(session, ended);
    this.#sessions.delete(session.id);
    keepAtTargets(session, ended);
    await session.close();
    this.#closeIfUnused();
  }

  #find(id: string): Session | undefined {
    const own = this.#sessions.get(id);
    if (own !== undefined) return own;
    for (const store of this.#previous) {
      const session = store.#sessions.get(id);
      if (session !== undefined) return session;
    }
    return undefined;
  }

  /** Ends a session and closes its connections. Its id is never accepted again. `why` fails calls in flight. */
  async end(session: Session, why?: SessionEnded): Promise<void> {
    for (const store of this.#previous) if (store.#sessions.has(session.id)) return store.end(session, why);
    this.#sessions.delete(session.id);
    if (this.#isResumable && session.id !== '' && !(session instanceof CallerSession))
      this.#ended.add(session.id);
    this.#logEvent('session ended', session);
    this.#ending += 1;
    if (session.record !== undefined) await this.#shared?.end(session.record);
    await session.close(why);
    this.#ending -= 1;
    this.#closeIfUnused();
  }

  /** Ends the GET streams of all sessions. They stay open without a request and would delay a shutdown. */
  drain(): void {
    for (const session of this.#sessions.values()) session.endStream();
    for (const store of this.#previous) store.drain();
  }

  /** Closes all sessions, then the targets. Servers keep the sessions that another process can continue. */
  async close(): Promise<void> {
    clearInterval(this.#sweep);
    this.#removeEvictable();
    this.starting.close();
    const sessions = [...this.#sessions.values(), ...this.#initializing];
    this.#sessions.clear();
    this.#initializing.clear();
    const previous = [...this.#previous];
    this.#previous.clear();
    for (const session of sessions)
      if (this.#settings.isKeyConfigured && session.isResumable) keepAtTargets(session);
    await Promise.all([
      ...sessions.map((session) => session.close()),
      ...previous.map((store) => store.close()),
    ]);
    await Promise.all(this.#options.targets.map((target) => target.close()));
  }

  /** `more`: of an event that operators want to know about. */
  #logEvent(event: string, { shortId }: Session, more?: Readonly<Record<string, string | number>>): void {
    const { log, backend } = this.#options;
    const fields = { 'mcp.session.id': shortId, backend, sessions: this.#sessions.size };
    if (more === undefined) log.debug('mcp::session', event, fields);
    else log.info('mcp::session', event, { ...fields, ...more });
  }

  get #isResumable(): boolean {
    return this.#options.targets.every((target) => target.resumable);
  }

  #endIdle(): void {
    const oldest = performance.now() - this.#settings.sessionIdle;
    for (const session of this.#sessions.values()) {
      session.stopIdleChildren();
      const isIdle = (): boolean =>
        session.lastUsed < oldest && session.inFlight === 0 && !session.hasOpenStream;
      if (isIdle()) void this.#endUnlessUsedElsewhere(session, isIdle);
      // Its record expires without requests.
      else if (session.record !== undefined && session.hasOpenStream)
        void this.#unlessEnded(session).catch(() => undefined);
    }
  }

  async #endUnlessUsedElsewhere(session: Session, isIdle: () => boolean): Promise<void> {
    const { record } = session;
    const isUsed = record !== undefined && (await this.#shared?.isUsedElsewhere(record)) === true;
    if (!isIdle() || !this.#sessions.has(session.id)) return;
    this.#logEvent('session was idle for too long', session);
    await (isUsed ? this.#leave(session) : this.end(session));
  }

  /** The session whose child processes are stopped first when `maxChildren` is reached. */
  #evictable(): Evictable | undefined {
    const left = this.starting.oldestWithProcess;
    if (left !== undefined)
      return { idleFrom: Number.NEGATIVE_INFINITY, evict: () => this.starting.discard(left) };
    let first: Session | undefined;
    let idleFrom = Number.POSITIVE_INFINITY;
    for (const session of this.#sessions.values()) {
      const from = session.evictableFrom;
      if (from === undefined || from >= idleFrom) continue;
      first = session;
      idleFrom = from;
    }
    const session = first;
    return session && { idleFrom, evict: () => this.#evict(session) };
  }

  async #evict(session: Session): Promise<void> {
    this.#logEvent('idle session was evicted for a new one (config.mcp.maxChildren)', session, {
      'idle.ms': Math.round(performance.now() - session.lastUsed),
    });
    await this.end(session);
  }

  async #resume(id: string): Promise<Session> {
    if (this.#ended.has(id)) throw notFound('it has ended');
    const state = openSession(this.#settings.sessionKey, id);
    if (state === undefined) throw notFound('the id was not created with the current config.session.key');
    checkResumable(state, this.#options);
    const found = this.#shared === undefined ? state : await this.#shared.find(state);
    if (found === 'ended' || found === undefined) throw notFound('it has ended, or expired');
    const session = await resumedSession(id, found, this.#options);
    session.record = await this.#shared?.save(stateOf(session, state.r));
    // Another request may have resumed or ended it meanwhile.
    const existing = this.#find(id);
    if (existing !== undefined) return existing;
    if (this.#ended.has(id)) throw notFound('it has ended');
    this.#sessions.set(id, session);
    this.#logEvent('session of another process resumed', session);
    return session;
  }
}
