import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { JsonRpcConnection } from './json-rpc-connection.ts';
import { LateLists } from './late-lists.ts';
import { parseMessage, type RpcMessage } from './message.ts';
import { notificationMessage } from './protocol.ts';
import { LastingRequests } from './repeated-requests.ts';
import type { Target } from './target.ts';
import { detailOf, TargetFailure } from './target-failure.ts';
import { UpstreamStatusError } from './targets/http-body.ts';
import { lateFailure, timeoutMessage, withTimeout } from './timeouts.ts';

export interface InitializeResult {
  readonly protocolVersion: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly serverInfo?: { readonly name?: string; readonly websiteUrl?: unknown };
  readonly instructions?: string;
}

const INITIALIZED = 'notifications/initialized';

/** An initialized server: the peer to talk to, and what it said of itself. */
export interface Ready {
  readonly peer: JsonRpcConnection;
  readonly result: InitializeResult;
  /** The initialize response, whole. */
  readonly message: RpcMessage;
}

/**
 * One target within one session. Connects on demand and again after the server went away, at most once per
 * back-off interval; everybody who asks meanwhile gets the same attempt.
 */
export class Connection {
  readonly target: Target;
  readonly #log: Log;
  readonly #unrelated: (connection: Connection, message: RpcMessage, peer: JsonRpcConnection) => void;
  /** What the client said of itself in `initialize`, as JSON text: servers are told the same. */
  readonly #initializeParams: string;
  #ready: Promise<Ready> | undefined;
  #peer: JsonRpcConnection | undefined;
  #connecting: JsonRpcConnection | undefined;
  #failedAt = 0;
  /** What failed last. */
  #failure: unknown;
  #wait: number = LIMITS.retryFirst;
  #closed = false;
  #late = false;
  #isResumed = false;
  #begunAgainAt = Number.NEGATIVE_INFINITY;
  /** The server knows that its `initialize` was accepted. */
  #isConfirmed = false;
  /** Why lists do without the target: it could not be connected to, or has taken too long. Undefined once it is there. */
  #missing: string | undefined;
  /** Headers for receiving what the server sends on its own, once a client wants that. */
  #listens: readonly string[] | undefined;
  readonly lateLists = new LateLists();
  /** What a server that was started again must be asked again. */
  readonly requested = new LastingRequests();
  /** Why the target is not available, as the log and the admin server may say it; undefined while it is. */
  problem: string | undefined;
  /** The revision agreed on with the server. */
  version: string | undefined;
  capabilities: Readonly<Record<string, unknown>> | undefined;
  /** A page about the server, as it says itself. */
  website: string | undefined;

  constructor(
    target: Target,
    log: Log,
    initializeParams: string,
    unrelated: (connection: Connection, message: RpcMessage, peer: JsonRpcConnection) => void,
  ) {
    this.target = target;
    this.#log = log;
    this.#initializeParams = initializeParams;
    this.#unrelated = unrelated;
  }

  /** The live peer, or undefined. */
  get peer(): JsonRpcConnection | undefined {
    return this.#peer;
  }

  /** A process runs for this session alone. */
  get hasProcess(): boolean {
    return (this.#peer ?? this.#connecting)?.channel?.hasProcess === true;
  }

  /** Connects and initializes, unless that is done or under way. Rejects with the reason in words. */
  ready(headers: readonly string[], isFirst = false): Promise<Ready> {
    if (this.#closed) return Promise.reject(new Error('the session ended'));
    if (this.#ready !== undefined) return this.#ready;
    const since = performance.now() - this.#failedAt;
    if (this.problem !== undefined && since < this.#wait)
      return Promise.reject(this.#failure instanceof TargetFailure ? this.#failure : new Error(this.problem));
    this.#ready = this.#connect(headers, isFirst);
    return this.#ready;
  }

  /**
   * The same for what the client waits for: rejects after `LIMITS.slowTarget`, while the target goes on starting. With
   * `isList`, a target that failed to connect last time is not waited for at all.
   */
  readySoon(headers: readonly string[], isList = false): Promise<Ready> {
    const ready = this.ready(headers);
    if (!isList || this.#missing === undefined || this.#peer !== undefined)
      return withTimeout(ready, undefined, this.target);
    ready.catch(() => undefined);
    return Promise.reject(new Error(this.#missing));
  }

  /** The session begins without this target: once it is ready, the gateway confirms `initialize` for the client. */
  isLate(): void {
    this.#late = true;
    this.#missing = timeoutMessage(LIMITS.slowBegin);
    this.#log.warn('mcp', 'target is slow to begin; the session begins without it', {
      target: this.target.name,
      problem: detailOf(this.lateFailure(this.#missing)),
    });
  }

  /** The failure of a server that has not answered `initialize` in time; the log learns what is known of it. */
  lateFailure(message: string): Error {
    return lateFailure(this.target, message, this.#connecting?.channel?.diagnosis?.());
  }

  /** Passes a notification of the client on, if the target is connected. Beginnings are confirmed once. */
  notify({ method, text }: RpcMessage, headers: readonly string[]): void {
    if (method === INITIALIZED && this.#isConfirmed) return;
    this.#peer?.send(text, headers);
  }

  /** Receives what the server sends on its own, now and after every new beginning. */
  listen(headers: readonly string[]): void {
    this.#listens = headers;
    this.#peer?.channel?.listen(headers);
  }

  /** Continues a session that another process began: no `initialize` is sent. */
  async resume(sessionId: string, version: string): Promise<void> {
    const peer = this.#createPeer();
    const channel = await this.target.open(peer.events, sessionId);
    peer.bind(channel);
    channel.agreed(version);
    this.#isResumed = true;
    this.#peer = peer;
    this.version = version;
    this.#ready = Promise.resolve({ peer, result: { protocolVersion: version, capabilities: {} } } as Ready);
  }

  /**
   * The server has forgotten the session while nobody was calling. A new one is begun, so that what the server sends on
   * its own keeps coming; tried until it works, as long as a client listens.
   */
  async #beginAgain(peer: JsonRpcConnection): Promise<void> {
    // What the client of a resumed session is able to do was said to another process: only the client can begin again.
    if (this.#peer !== peer || this.#isResumed) return;
    this.lost(peer);
    // A server that forgets each session after a moment would be asked for a new one all the time.
    const early = this.#begunAgainAt + LIMITS.retryLast - performance.now();
    if (early > 0) await pause(early, undefined, { ref: false });
    this.#begunAgainAt = performance.now();
    while (!this.#closed && this.#peer === undefined && this.#listens !== undefined) {
      try {
        await this.ready(this.#listens);
      } catch (error) {
        if (error instanceof UpstreamStatusError && error.status < 500) return;
        await pause(this.#wait, undefined, { ref: false });
      }
    }
  }

  /** Forgets the server's session, so that the next use begins a new one. `peer` is who found out: others may know already. */
  lost(peer: JsonRpcConnection): void {
    if (this.#peer !== peer) return;
    this.#peer = undefined;
    this.#ready = undefined;
    // Not closed: calls in flight on it get the same answer, each of its own.
    void peer.retire();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const peer = this.#peer ?? this.#connecting;
    this.#peer = undefined;
    await peer?.close();
  }

  #createPeer(): JsonRpcConnection {
    const peer = new JsonRpcConnection(this.target, this.#log, (message) =>
      this.#unrelated(this, message, peer),
    );
    peer.onClosed = (error) => {
      // While connecting, the attempt itself reports the failure.
      if (this.#peer === peer) this.#fail(error);
    };
    peer.onSessionLost = () => void this.#beginAgain(peer);
    return peer;
  }

  async #connect(headers: readonly string[], isFirst: boolean): Promise<Ready> {
    const peer = this.#createPeer();
    this.#connecting = peer;
    const began = performance.now();
    const slow = isFirst ? undefined : setTimeout(() => this.#isSlow(), LIMITS.slowTarget);
    try {
      const channel = await this.target.open(peer.events);
      peer.bind(channel);
      if (this.#closed) throw new Error('the session ended');
      const answer = peer.call('initialize', this.#initializeParams, headers);
      const message = await within(answer, (text) => this.lateFailure(text));
      const result = message.result as InitializeResult;
      if (typeof result?.protocolVersion !== 'string')
        throw new Error('its initialize result has no protocolVersion');
      this.version = result.protocolVersion;
      this.capabilities =
        typeof result.capabilities === 'object' && result.capabilities !== null ? result.capabilities : {};
      this.website = pageOf(result);
      channel.agreed(result.protocolVersion);
      this.problem = undefined;
      this.#wait = LIMITS.retryFirst;
      if (this.#closed) throw new Error('the session ended');
      this.#peer = peer;
      if (this.#listens !== undefined) channel.listen(this.#listens);
      // On the first connection the client's own notification follows; later ones it knows nothing of.
      this.#isConfirmed = !isFirst || this.#late;
      if (this.#isConfirmed) {
        peer.send(notificationMessage(INITIALIZED), headers);
        void this.requested.repeat(this, peer, headers, this.#log);
      }
      this.#joined(isFirst);
      this.#log.debug('mcp', 'target is ready', {
        target: this.target.name,
        version: result.protocolVersion,
        ms: Math.round(performance.now() - began),
      });
      return { peer, result, message };
    } catch (error) {
      this.#fail(error);
      this.#missing = messageOf(error);
      void peer.close();
      throw error;
    } finally {
      clearTimeout(slow);
      this.#connecting = undefined;
    }
  }

  #isSlow(): void {
    this.#missing = timeoutMessage(LIMITS.slowTarget);
  }

  /** Tells the client to list again what it was given without this target, or before the target was started again. */
  #joined(isFirst: boolean): void {
    if (isFirst && this.#missing === undefined) return;
    this.#missing = undefined;
    for (const kind of ['tools', 'prompts', 'resources'])
      if (kind in (this.capabilities ?? {})) this.changed(kind);
  }

  /** Tells the client that a list is not the one that it was given. */
  changed(kind: string): void {
    const message = parseMessage(notificationMessage(`notifications/${kind}/list_changed`));
    if (this.#peer !== undefined) this.#unrelated(this, message, this.#peer);
  }

  #fail(error: unknown): void {
    if (this.problem !== undefined) this.#wait = Math.min(this.#wait * 2, LIMITS.retryLast);
    this.#failedAt = performance.now();
    this.#ready = undefined;
    this.#peer = undefined;
    this.#failure = error;
    this.problem = detailOf(error);
    if (!this.#closed)
      this.#log.warn('mcp', 'target is not available', { target: this.target.name, problem: this.problem });
  }
}

/** Only an address that a link may lead to: servers are strangers. */
function pageOf({ serverInfo }: InitializeResult): string | undefined {
  const url = serverInfo?.websiteUrl;
  if (typeof url !== 'string' || url.length > LIMITS.logFieldLength || !URL.canParse(url)) return undefined;
  const { protocol, href } = new URL(url);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}

function within<T>(promise: Promise<T>, failure: (message: string) => Error): Promise<T> {
  const text = `no answer to initialize within ${LIMITS.initializeTimeout / 1000} s`;
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(failure(text)), LIMITS.initializeTimeout);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
