import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { InitializeResult } from '../protocol/initialize-result.ts';
import { parseMessage, type RpcMessage } from '../protocol/message.ts';
import { MODERN_REVISION, notificationMessage, resultMessage } from '../protocol/protocol.ts';
import type { ClientHeaders } from './client-headers.ts';
import { JsonRpcConnection, PROGRESS } from './json-rpc-connection.ts';
import { ReplayedRequests } from './replayed-requests.ts';
import type { Target } from './target.ts';
import {
  detailOf,
  SessionEnded,
  signInOf,
  startingMessage,
  TargetFailure,
  timeoutFailure,
  timeoutMessage,
  UpstreamStatusError,
  untilNextAttempt,
  withTimeout,
} from './target-failure.ts';
import { TimedOutLists } from './timed-out-lists.ts';

const INITIALIZED = 'notifications/initialized';

/** What a server has answered to `initialize`, or to `server/discover`. */
export interface Opened {
  /** Whether the server itself speaks the revision, and no view of it. */
  readonly isNative?: boolean;
  readonly result: InitializeResult;
  /** The whole response. */
  readonly message: RpcMessage;
}

/**
 * Opens a channel to a target, binds it to `rpc` and agrees on a protocol revision. `check` throws if the session has ended
 * meanwhile. Rejects with the reason if the target cannot be started, or does not answer in time.
 */
export type OpenTarget = (
  target: Target,
  rpc: JsonRpcConnection,
  headers: ClientHeaders,
  check: () => void,
) => Promise<Opened>;

/** A server that has answered. */
export interface Ready extends Opened {
  readonly rpc: JsonRpcConnection;
}

/**
 * One target within one session. Connects on demand, and reconnects after the connection was lost, at most once per
 * back-off interval (`LIMITS.retryDelayMin`, doubled up to `LIMITS.retryDelayMax`). Concurrent callers share one attempt.
 */
export class Connection {
  readonly target: Target;
  readonly #log: Log;
  readonly #onUnrelated: (connection: Connection, message: RpcMessage, rpc: JsonRpcConnection) => void;
  /** Opens the channel and agrees on a protocol revision. */
  open: OpenTarget;
  #ready: Promise<Ready> | undefined;
  #rpc: JsonRpcConnection | undefined;
  #connecting: JsonRpcConnection | undefined;
  #failedAt = 0;
  /** The last failure. */
  #failure: unknown;
  #backOff: number;
  #closed: SessionEnded | undefined;
  #joinsLate = false;
  /** The client's `initialize` parameters are known, so that a new session can be initialized in its name. */
  #canInitialize = true;
  /** The sign-in of the user that is waited for. */
  #awaited: string | undefined;
  #reinitializedAt = Number.NEGATIVE_INFINITY;
  /** The gateway itself has sent `notifications/initialized` to the server. */
  #isConfirmed = false;
  /** Why lists are returned without this target: it failed or is slow to connect. Undefined while it is connected. */
  #unavailable: (() => string) | undefined;
  /** When the last attempt to connect began, on the clock of `performance.now()`. */
  #startedAt = 0;
  /** Headers of the client's GET request, for opening the server's stream. Undefined until a client opens one. */
  #listenHeaders: ClientHeaders | undefined;
  readonly timedOutLists: TimedOutLists;
  /** Requests that are sent again to a restarted server. */
  readonly replayed: ReplayedRequests;
  /** The process was stopped because it was idle, and has not been started again. */
  isAsleep = false;
  /** Why the target is not available, for the log and the admin server; undefined while it is available. */
  problem: string | undefined;
  /** Protocol revision negotiated with the server; undefined before the first connection. */
  version: string | undefined;
  capabilities: Readonly<Record<string, unknown>> | undefined;
  isNative: boolean | undefined;
  /** `websiteUrl` of the server, if it is an http(s) URL. */
  website: string | undefined;
  /** Number of tools in the latest complete list of the server that was read here; undefined before. */
  listedTools: number | undefined;

  constructor(
    target: Target,
    log: Log,
    open: OpenTarget,
    onUnrelated: (connection: Connection, message: RpcMessage, rpc: JsonRpcConnection) => void,
  ) {
    this.target = target;
    this.timedOutLists = new TimedOutLists(target);
    this.replayed = new ReplayedRequests(target.limits);
    this.#backOff = target.limits.retryDelayMin;
    this.#log = log;
    this.open = open;
    this.#onUnrelated = onUnrelated;
  }

  /** The JSON-RPC connection to the initialized server; undefined while not connected. */
  get rpc(): JsonRpcConnection | undefined {
    return this.#rpc;
  }

  /** Whether a child process runs for this session alone. */
  get hasProcess(): boolean {
    return (this.#rpc ?? this.#connecting)?.channel?.hasProcess === true;
  }

  /**
   * Connects and initializes, unless that is done or in progress. Rejects with the reason; during the back-off after a
   * failure, it rejects with the last failure, and when the next attempt is, without another one. `isFirst`: part of the client's own `initialize`.
   */
  ready(headers: ClientHeaders, isFirst = false): Promise<Ready> {
    if (this.#closed !== undefined) return Promise.reject(this.#closed);
    if (this.#ready !== undefined) return this.#ready;
    const since = performance.now() - this.#failedAt;
    // Only a look at the database tells whether the user has signed in meanwhile.
    if (this.problem !== undefined && since < this.#backOff && signInOf(this.#failure) === undefined)
      return Promise.reject(untilNextAttempt(this.#failure, this.problem, this.#backOff - since));
    this.#ready = this.#connect(headers, isFirst);
    return this.#ready;
  }

  /**
   * Like `ready`, for requests of a waiting client: rejects after `LIMITS.targetResponseWait` while the target continues to start.
   * With `isList`, rejects at once if the last attempt to connect failed or was slow.
   */
  readySoon(headers: ClientHeaders, isList = false): Promise<Ready> {
    const ready = this.ready(headers);
    if (
      !isList ||
      this.#unavailable === undefined ||
      this.#rpc !== undefined ||
      signInOf(this.#failure) !== undefined
    )
      return withTimeout(ready, this.target.limits, undefined, this.target);
    ready.catch(() => undefined);
    return Promise.reject(new Error(this.#unavailable()));
  }

  /** The session starts without this target. Once connected, the gateway sends `notifications/initialized` itself. */
  markLate(): void {
    this.#joinsLate = true;
    this.#noteSlow();
    const waited = timeoutMessage(this.target.limits.slowTargetStartWait);
    this.#log.warn('mcp', 'target is slow to start; the session starts without it', {
      target: this.target.name,
      problem: detailOf(this.timeoutFailure(waited, true)),
    });
  }

  /**
   * The failure of a server that did not answer `initialize` before its timeout, with its diagnosis for the log.
   * `isStarting`: the gateway continues to wait for it.
   */
  timeoutFailure(message: string, isStarting = false): Error {
    return timeoutFailure(this.target, message, this.#connecting?.channel?.diagnosis?.(isStarting));
  }

  /** Forwards a notification of the client if the target is connected. `initialized` is sent once per connection. */
  notify({ method, text }: RpcMessage, headers: ClientHeaders): void {
    if (method === INITIALIZED && this.#isConfirmed) return;
    this.#rpc?.send(text, headers);
  }

  /** Opens the stream for messages that the server sends outside a response, now and after every reconnect. */
  listen(headers: ClientHeaders): void {
    this.#listenHeaders = headers;
    this.#rpc?.channel?.listen(headers);
  }

  /**
   * Resumes a session that another process created, without sending `initialize`. `canInitialize`: the client's
   * `initialize` parameters are known.
   */
  async resume(sessionId: string, version: string, canInitialize: boolean): Promise<void> {
    const rpc = this.#createRpc();
    const channel = await this.target.open(rpc.events, sessionId);
    rpc.bind(channel);
    channel.agreed(version);
    this.#canInitialize = canInitialize;
    this.#rpc = rpc;
    this.version = version;
    const result = { protocolVersion: version, capabilities: {} };
    const message = parseMessage(resultMessage('0', JSON.stringify(result)));
    this.#ready = Promise.resolve({ rpc, result, message });
  }

  /**
   * Initializes a new session after the server lost the old one while no call was in flight, so that messages outside
   * responses keep arriving, with the credential of the client's GET. Retries with back-off while a client listens; stops if the
   * server refuses with a status below 500, or if the credential is refused.
   */
  async #reinitialize(rpc: JsonRpcConnection): Promise<void> {
    if (this.#rpc !== rpc || !this.#canInitialize) return;
    this.dropSession(rpc);
    // Otherwise a server that loses each session at once would be sent `initialize` in a tight loop.
    const delay = this.#reinitializedAt + this.target.limits.retryDelayMax - performance.now();
    if (delay > 0) await pause(delay, undefined, { ref: false });
    this.#reinitializedAt = performance.now();
    while (this.#closed === undefined && this.#rpc === undefined && this.#listenHeaders !== undefined) {
      try {
        await this.ready(this.#listenHeaders);
      } catch (error) {
        if (error instanceof UpstreamStatusError && error.status < 500) return;
        if (error instanceof TargetFailure && error.credential === 'refused') return;
        await pause(this.#backOff, undefined, { ref: false });
      }
    }
  }

  /**
   * Forgets the connection `rpc` and its session at the server; the next request initializes a new session. Does nothing if
   * `rpc` is not the current connection, because another call has already replaced it.
   */
  dropSession(rpc: JsonRpcConnection): void {
    if (this.#rpc !== rpc) return;
    this.#rpc = undefined;
    this.#ready = undefined;
    // Retired, not closed: each call that is in flight on it receives its own response.
    void rpc.retire();
  }

  /** Stops a child process that has been unused for the target's idle timeout; the next request starts another. */
  stopIfIdle(): void {
    const rpc = this.#rpc;
    const { idleTimeout = Number.POSITIVE_INFINITY, name } = this.target;
    const since = rpc?.channel?.lastUsed ?? Number.POSITIVE_INFINITY;
    if (rpc === undefined || rpc.inFlight > 0 || performance.now() - since < idleTimeout) return;
    this.#log.debug('mcp::stdio', 'idle process of a session was stopped (stdio.idleTimeout)', {
      target: name,
    });
    this.isAsleep = true;
    this.dropSession(rpc);
  }

  /** Closes the connection. Calls in flight and further attempts to connect fail with `why`. */
  async close(why = new SessionEnded()): Promise<void> {
    this.#closed ??= why;
    const rpc = this.#rpc ?? this.#connecting;
    this.#rpc = undefined;
    await rpc?.close(why);
  }

  #createRpc(): JsonRpcConnection {
    const rpc = new JsonRpcConnection(this.target, this.#log, (message) => {
      if (!this.#isLateProgress(message)) this.#onUnrelated(this, message, rpc);
    });
    rpc.onClosed = (error) => {
      // While connecting, the attempt itself reports the failure.
      if (this.#rpc === rpc) this.#fail(error);
    };
    rpc.onSessionLost = () => void this.#reinitialize(rpc);
    return rpc;
  }

  /**
   * Whether a message is about a request that nobody waits for any more, or that never was. Clients take an unknown token for an
   * error, and some close the connection (lennix1337/Genexus18MCP#44). Progress of a task follows the response to its request.
   */
  #isLateProgress({ method }: RpcMessage): boolean {
    return method === PROGRESS && this.capabilities !== undefined && this.capabilities['tasks'] === undefined;
  }

  async #connect(headers: ClientHeaders, isFirst: boolean): Promise<Ready> {
    const rpc = this.#createRpc();
    this.#connecting = rpc;
    const startedAt = performance.now();
    this.#startedAt = startedAt;
    const slow = isFirst
      ? undefined
      : setTimeout(() => this.#noteSlow(), this.target.limits.targetResponseWait);
    try {
      const { result, message, isNative } = await this.open(this.target, rpc, headers, () => {
        if (this.#closed !== undefined) throw this.#closed;
      });
      this.version = result.protocolVersion;
      this.isNative = isNative;
      this.capabilities = result.capabilities;
      this.website = websiteOf(result);
      this.problem = undefined;
      this.#backOff = this.target.limits.retryDelayMin;
      if (this.#closed !== undefined) throw this.#closed;
      this.#rpc = rpc;
      // With the credential of the request that connects, which is newer than that of the client's GET.
      if (this.#listenHeaders !== undefined)
        rpc.channel?.listen({
          ...this.#listenHeaders,
          request: headers.request ?? this.#listenHeaders.request,
        });
      // The client sends the notification for the first connection only: it does not know of later ones.
      this.#isConfirmed = result.protocolVersion === MODERN_REVISION || !isFirst || this.#joinsLate;
      if (this.#isConfirmed && result.protocolVersion !== MODERN_REVISION) {
        rpc.send(notificationMessage(INITIALIZED), headers);
        void this.replayed.replay(this, rpc, headers, this.#log);
      }
      // A process that was only stopped because it was idle has the same lists.
      if (!this.isAsleep) this.#notifyListChanges(isFirst);
      this.isAsleep = false;
      this.#log.debug('mcp', 'target is ready', {
        target: this.target.name,
        version: result.protocolVersion,
        ms: Math.round(performance.now() - startedAt),
      });
      return { rpc, result, message };
    } catch (error) {
      this.#fail(error);
      this.#awaitSignIn(error, headers);
      const reason = messageOf(error);
      this.#unavailable = () => reason;
      void rpc.close();
      throw error;
    } finally {
      clearTimeout(slow);
      this.#connecting = undefined;
    }
  }

  /** Connects as soon as the user has signed in, so that the client hears of the items. */
  #awaitSignIn(error: unknown, headers: ClientHeaders): void {
    const link = signInOf(error);
    if (link === undefined || link.id === this.#awaited) return;
    this.#awaited = link.id;
    void link.done.then(() => {
      if (this.#awaited === link.id && this.#closed === undefined) this.ready(headers).catch(() => undefined);
    });
  }

  #noteSlow(): void {
    this.#unavailable = () => startingMessage(performance.now() - this.#startedAt);
  }

  /** Sends `list_changed` if lists were returned without this target or before it was restarted. */
  #notifyListChanges(isFirst: boolean): void {
    if (isFirst && this.#unavailable === undefined) return;
    this.#unavailable = undefined;
    for (const kind of ['tools', 'prompts', 'resources'])
      if (kind in (this.capabilities ?? {})) this.changed(kind);
  }

  /** Sends `notifications/<kind>/list_changed` to the client. `kind` is `tools`, `prompts` or `resources`. */
  changed(kind: string): void {
    const message = parseMessage(notificationMessage(`notifications/${kind}/list_changed`));
    if (this.#rpc !== undefined) this.#onUnrelated(this, message, this.#rpc);
  }

  #fail(error: unknown): void {
    if (this.problem !== undefined)
      this.#backOff = Math.min(this.#backOff * 2, this.target.limits.retryDelayMax);
    this.#failedAt = performance.now();
    this.#ready = undefined;
    this.#rpc = undefined;
    this.isAsleep = false;
    this.#failure = error;
    this.problem = detailOf(error);
    if (this.#closed === undefined && signInOf(error) === undefined)
      this.#log.warn('mcp', 'target is not available', { target: this.target.name, problem: this.problem });
  }
}

/** The website of an untrusted server, for use as a link: an http(s) URL only. */
function websiteOf({ serverInfo }: InitializeResult): string | undefined {
  const url = serverInfo?.['websiteUrl'];
  if (typeof url !== 'string' || url.length > LIMITS.logFieldLength || !URL.canParse(url)) return undefined;
  const { protocol, href } = new URL(url);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}
