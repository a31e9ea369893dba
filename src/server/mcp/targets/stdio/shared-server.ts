import { textIn } from '../../../../core/foreign.ts';
import type { Limits } from '../../../../core/limits.ts';
import type { Log } from '../../../../core/log.ts';
import { VERSION } from '../../../../core/version.ts';
import { NO_HEADERS } from '../../connection/client-headers.ts';
import { JsonRpcConnection } from '../../connection/json-rpc-connection.ts';
import type { Channel, ChannelEvents, Target } from '../../connection/target.ts';
import { timeoutFailure } from '../../connection/target-failure.ts';
import { ChannelLink } from '../../eras/channel-link.ts';
import { discoverAfterRefusal, mayBeModern } from '../../eras/negotiation.ts';
import { initializeResultOf } from '../../protocol/initialize-result.ts';
import type { RpcMessage } from '../../protocol/message.ts';
import {
  errorMessage,
  LATEST_SESSION_REVISION,
  MODERN_REVISION,
  notificationMessage,
  RPC,
  resultMessage,
} from '../../protocol/protocol.ts';
import { type Answered, SharedChannel, type SharedProcess } from './shared-channel.ts';

/** Without capabilities: requests of the server could not be assigned to one of several clients. */
const CLIENT = { capabilities: {}, clientInfo: { name: 'agctl', version: VERSION }, logLevel: undefined };
const INITIALIZE = JSON.stringify({
  protocolVersion: LATEST_SESSION_REVISION,
  capabilities: CLIENT.capabilities,
  clientInfo: CLIENT.clientInfo,
});

/**
 * One process of a stdio target for all sessions (`stdio.shared`). It starts with the first session and is stopped after the
 * last, or some time later (`stdio.idleTimeout`). Responses, progress and subscriptions of revision 2026-07-28 go to the session
 * of the request, `list_changed` to all sessions, and updates of resources to subscribers. Other messages are dropped, because they may concern another user's call (docs/decisions/0020).
 */
export class SharedServer {
  readonly #target: Target;
  readonly #log: Log;
  readonly #open: (events: ChannelEvents) => Promise<Channel>;
  #current: Promise<SharedProcess> | undefined;
  #joining = 0;
  /** Resolves when the previous process has exited: two at a time could damage each other's files. */
  #stopped: Promise<void> = Promise.resolve();
  #failure: unknown;
  #failedAt = Number.NEGATIVE_INFINITY;
  #wait: number;
  #nextToken = 1;
  readonly #idleTimeout: number;
  #idle: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `idleTimeout`: how long the process is kept after its last session, in ms. */
  constructor(target: Target, log: Log, open: (events: ChannelEvents) => Promise<Channel>, idleTimeout = 0) {
    this.#idleTimeout = idleTimeout;
    this.#target = target;
    this.#wait = target.limits.retryDelayMin;
    this.#log = log;
    this.#open = open;
  }

  /**
   * Opens a channel for one session. Rejects with the reason if the process cannot be started; during the back-off after a
   * failure, with the last failure.
   */
  async join(events: ChannelEvents): Promise<Channel> {
    this.#joining += 1;
    clearTimeout(this.#idle);
    try {
      if (this.#current === undefined) {
        if (performance.now() - this.#failedAt < this.#wait) throw this.#failure;
        this.#current = this.#start();
      }
      const running = await this.#current;
      if (running.isOver) throw this.#failure;
      const member = new SharedChannel(this, running, events);
      running.members.add(member);
      return member;
    } finally {
      this.#joining -= 1;
    }
  }

  get limits(): Limits {
    return this.#target.limits;
  }

  /** Returns a progress token that no other call of any session uses. */
  nextToken(): string {
    return `"agctl-${this.#nextToken++}"`;
  }

  /** Removes a session; stops the process after the last one, or `idleTimeout` ms later. */
  async leave(member: SharedChannel, running: SharedProcess): Promise<void> {
    running.members.delete(member);
    if (running.members.size > 0 || this.#joining > 0) return;
    if (this.#idleTimeout === 0 || this.#isClosed) return this.#stop(running);
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.#stop(running), this.#idleTimeout).unref();
  }

  /** Stops the process. Resolves when it has exited. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    const running = await this.#current?.catch(() => undefined);
    if (running !== undefined) await this.#stop(running);
    await this.#stopped;
  }

  /** Handles a message that belongs to no call: answers requests, passes notifications to the sessions that they concern. */
  unrelated(running: SharedProcess, message: RpcMessage): void {
    const { kind, method, params, text } = message;
    if (kind === 'request') {
      const id = message.id ?? 'null';
      const answer =
        method === 'ping'
          ? resultMessage(id, '{}')
          : errorMessage(id, RPC.methodNotFound, `${method}: this server is shared by several clients`);
      running.rpc.send(answer, NO_HEADERS);
      return;
    }
    const receivers = [...running.members].filter(
      (member) =>
        /^notifications\/[a-z]+\/list_changed$/.test(method) ||
        (method === 'notifications/resources/updated' && member.isSubscribed(textIn(params['uri']))),
    );
    for (const member of receivers) member.events.message(text);
    if (receivers.length === 0)
      this.#log.debug(
        'mcp::stdio',
        'a notification of a shared server belongs to no session and was dropped',
        {
          target: this.#target.name,
          method,
        },
      );
  }

  async #start(): Promise<SharedProcess> {
    await this.#stopped;
    const members = new Set<SharedChannel>();
    const rpc: JsonRpcConnection = new JsonRpcConnection(this.#target, this.#log, (message) =>
      this.unrelated(running, message),
    );
    const link = new ChannelLink(rpc.events, (error) =>
      this.#log.internalError('mcp', error, { target: this.#target.name }),
    );
    let channel: Channel;
    try {
      channel = await this.#open(link.events);
    } catch (error) {
      this.#failed(error, false);
      throw error;
    }
    rpc.bind(channel);
    const answered = this.#negotiate(rpc, channel, link);
    const running: SharedProcess = { rpc, channel, members, answered, isOver: false };
    let isInitialized = false;
    running.answered.then(
      () => {
        isInitialized = true;
        this.#wait = this.#target.limits.retryDelayMin;
      },
      (error: Error) => {
        this.#ended(running, error, false);
        this.#stopped = channel.close();
      },
    );
    rpc.onClosed = (error) => this.#ended(running, error, isInitialized);
    return running;
  }

  /** Initializes the process, or discovers revision 2026-07-28 if it has no other. */
  async #negotiate(rpc: JsonRpcConnection, channel: Channel, link: ChannelLink): Promise<Answered> {
    try {
      return { message: await this.#initialize(rpc, channel), isModern: false };
    } catch (error) {
      if (!mayBeModern(error)) throw error;
      const discovered = await discoverAfterRefusal(
        this.#target,
        channel,
        link,
        CLIENT,
        NO_HEADERS,
        this.#log,
      );
      if (discovered === undefined) throw error;
      channel.agreed(MODERN_REVISION);
      return { message: discovered, isModern: true };
    }
  }

  async #initialize(rpc: JsonRpcConnection, channel: Channel): Promise<RpcMessage> {
    const seconds = this.#target.limits.initializeTimeout / 1000;
    const timedOut = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const text = `no answer to initialize within ${seconds} s`;
      timedOut.reject(timeoutFailure(this.#target, text, channel.diagnosis?.()));
    }, this.#target.limits.initializeTimeout);
    try {
      const message = await Promise.race([rpc.call('initialize', INITIALIZE, NO_HEADERS), timedOut.promise]);
      channel.agreed(initializeResultOf(message).protocolVersion);
      rpc.send(notificationMessage('notifications/initialized'), NO_HEADERS);
      return message;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Closes all channels after the process has exited. The next use starts another process. */
  #ended(running: SharedProcess, error: Error, wasReady: boolean): void {
    if (running.isOver) return;
    running.isOver = true;
    const members = [...running.members];
    running.members.clear();
    this.#failed(error, wasReady);
    for (const member of members) member.processExited(error);
  }

  #failed(error: unknown, wasReady: boolean): void {
    this.#current = undefined;
    this.#failure = error;
    if (!wasReady && this.#failedAt !== Number.NEGATIVE_INFINITY)
      this.#wait = Math.min(this.#wait * 2, this.#target.limits.retryDelayMax);
    this.#failedAt = performance.now();
  }

  async #stop(running: SharedProcess): Promise<void> {
    if (running.isOver) return;
    running.isOver = true;
    this.#current = undefined;
    this.#failure = new Error('the session ended');
    for (const member of running.members) member.processExited(new Error('the session ended'));
    running.members.clear();
    this.#stopped = running.rpc.close();
    await this.#stopped;
  }
}
