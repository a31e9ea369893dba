import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { VERSION } from '../../../core/version.ts';
import { JsonRpcConnection } from '../json-rpc-connection.ts';
import type { RpcMessage } from '../message.ts';
import {
  errorMessage,
  LATEST_SESSION_REVISION,
  notificationMessage,
  RPC,
  resultMessage,
} from '../protocol.ts';
import type { Channel, ChannelEvents, Target } from '../target.ts';
import { lateFailure } from '../timeouts.ts';
import { SharedChannel, type SharedProcess } from './shared-channel.ts';

/** Without abilities of its own: a request of the server could not be given to the right one of several clients. */
const CLIENT = JSON.stringify({
  protocolVersion: LATEST_SESSION_REVISION,
  capabilities: {},
  clientInfo: { name: 'agctl', version: VERSION },
});

/**
 * One process of a stdio target for all sessions (`stdio.shared`). It starts with the first session and ends with the
 * last. Answers and progress go to the session that asked; what the server says of itself (`list_changed`) goes to all,
 * and updates of resources to those that subscribed. What nobody can be found for goes to no client: it could be about
 * another user's call (docs/decisions/0020).
 */
export class SharedServer {
  readonly #target: Target;
  readonly #log: Log;
  readonly #open: (events: ChannelEvents) => Promise<Channel>;
  #current: Promise<SharedProcess> | undefined;
  #joining = 0;
  /** The end of the last process: two at a time could harm each other's files. */
  #stopped: Promise<void> = Promise.resolve();
  #failure: unknown;
  #failedAt = Number.NEGATIVE_INFINITY;
  #wait: number = LIMITS.retryFirst;
  #nextToken = 1;

  constructor(target: Target, log: Log, open: (events: ChannelEvents) => Promise<Channel>) {
    this.#target = target;
    this.#log = log;
    this.#open = open;
  }

  /** A channel for one session. Rejects with the reason when the process cannot be started, or was not a moment ago. */
  async join(events: ChannelEvents): Promise<Channel> {
    this.#joining += 1;
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

  /** A progress token that no other call of any session has. */
  nextToken(): string {
    return `"agctl-${this.#nextToken++}"`;
  }

  /** Ends the process with its last session. */
  async leave(member: SharedChannel, running: SharedProcess): Promise<void> {
    running.members.delete(member);
    if (running.members.size === 0 && this.#joining === 0) await this.#stop(running);
  }

  async close(): Promise<void> {
    const running = await this.#current?.catch(() => undefined);
    if (running !== undefined) await this.#stop(running);
    await this.#stopped;
  }

  /** What belongs to no call of a session. */
  unrelated(running: SharedProcess, message: RpcMessage): void {
    const { kind, method, params, text } = message;
    if (kind === 'request') {
      const id = message.id ?? 'null';
      const answer =
        method === 'ping'
          ? resultMessage(id, '{}')
          : errorMessage(
              id,
              RPC.methodNotFound,
              `${method}: this server is shared, and has no single client`,
            );
      running.peer.send(answer, []);
      return;
    }
    const receivers = [...running.members].filter(
      (member) =>
        /^notifications\/[a-z]+\/list_changed$/.test(method) ||
        (method === 'notifications/resources/updated' && member.isSubscribed(String(params['uri']))),
    );
    for (const member of receivers) member.events.message(text);
    if (receivers.length === 0)
      this.#log.debug('mcp::stdio', 'notification of a shared server belongs to no session; it was dropped', {
        target: this.#target.name,
        method,
      });
  }

  async #start(): Promise<SharedProcess> {
    await this.#stopped;
    const members = new Set<SharedChannel>();
    const peer: JsonRpcConnection = new JsonRpcConnection(this.#target, this.#log, (message) =>
      this.unrelated(running, message),
    );
    let channel: Channel;
    try {
      channel = await this.#open(peer.events);
    } catch (error) {
      this.#failed(error, false);
      throw error;
    }
    peer.bind(channel);
    const initialized = this.#initialize(peer, channel);
    const running: SharedProcess = { peer, channel, members, initialized, isOver: false };
    let isInitialized = false;
    running.initialized.then(
      () => {
        isInitialized = true;
        this.#wait = LIMITS.retryFirst;
      },
      (error: Error) => {
        this.#ended(running, error, false);
        this.#stopped = channel.close();
      },
    );
    peer.onClosed = (error) => this.#ended(running, error, isInitialized);
    return running;
  }

  async #initialize(peer: JsonRpcConnection, channel: Channel): Promise<RpcMessage> {
    const seconds = LIMITS.initializeTimeout / 1000;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const text = `no answer to initialize within ${seconds} s`;
      late.reject(lateFailure(this.#target, text, channel.diagnosis?.()));
    }, LIMITS.initializeTimeout);
    try {
      const message = await Promise.race([peer.call('initialize', CLIENT, []), late.promise]);
      const result = message.result as { protocolVersion?: unknown } | null | undefined;
      if (typeof result?.protocolVersion !== 'string')
        throw new Error('its initialize result has no protocolVersion');
      channel.agreed(result.protocolVersion);
      peer.send(notificationMessage('notifications/initialized'), []);
      return message;
    } finally {
      clearTimeout(timer);
    }
  }

  /** The process is gone: so is every session's channel, and the next use starts another. */
  #ended(running: SharedProcess, error: Error, wasReady: boolean): void {
    if (running.isOver) return;
    running.isOver = true;
    const members = [...running.members];
    running.members.clear();
    this.#failed(error, wasReady);
    for (const member of members) member.gone(error);
  }

  #failed(error: unknown, wasReady: boolean): void {
    this.#current = undefined;
    this.#failure = error;
    if (!wasReady && this.#failedAt !== Number.NEGATIVE_INFINITY)
      this.#wait = Math.min(this.#wait * 2, LIMITS.retryLast);
    this.#failedAt = performance.now();
  }

  async #stop(running: SharedProcess): Promise<void> {
    if (running.isOver) return;
    running.isOver = true;
    this.#current = undefined;
    this.#failure = new Error('the session ended');
    for (const member of running.members) member.gone(new Error('the session ended'));
    running.members.clear();
    this.#stopped = running.peer.close();
    await this.#stopped;
  }
}
