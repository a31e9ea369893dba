import type { WebSocket } from 'ws';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { RunningWork } from '../../kernel/request/request-context.ts';
import type { Handshake, Takeover } from '../../kernel/request/upgrade.ts';
import { type AcceptOptions, acceptWebSocket } from './accept-web-socket.ts';
import { BLOCKED, bytesOf, INTERNAL_ERROR, POLICY_VIOLATION, type RelayOptions } from './web-socket-relay.ts';

/** What the gateway itself says in a session. */
export interface LocalSession {
  /** The first messages. */
  start(): readonly string[];
  /** The messages that answer a text of the client. */
  answer(message: string): readonly string[];
}

/** A session with a client in which the gateway answers. It is pinged like a relayed one, and reads no faster than it writes. */
export class LocalWebSocket implements Takeover, RunningWork {
  readonly #session: LocalSession;
  readonly #options: RelayOptions;
  #client: WebSocket | undefined;
  #refusal: string | undefined;
  /** Called when the session has ended. */
  onEnd: (() => void) | undefined;
  /** Ends when all messages that were received are checked. */
  #checking: Promise<void> | undefined;
  /** Ends when all messages of the session were checked. */
  #releasing: Promise<void> | undefined;
  #failed: (error: unknown) => void = () => undefined;

  constructor(session: LocalSession, options: RelayOptions) {
    this.#session = session;
    this.#options = options;
  }

  takeOver(handshake: Handshake, headers: HeaderList): void {
    const options: AcceptOptions = {
      headers,
      maxMessage: this.#options.maxMessage,
      // The one without a credential, which browsers offer.
      protocol: (offered) => (offered.has('realtime') ? 'realtime' : false),
      refused: () => this.discard(),
    };
    acceptWebSocket(handshake, options, (client) => this.#start(client));
  }

  discard(): void {
    this.onEnd?.();
    this.#options.ended?.(undefined);
  }

  abandoned(): void {
    this.#client?.terminate();
  }

  expired(): boolean {
    this.#client?.close(GOING_AWAY, 'the gateway is closing');
    return true;
  }

  /** Ends the session, because the client may no longer use it. */
  refuse(why: string): void {
    this.#refusal = why;
    this.#client?.close(POLICY_VIOLATION, why);
  }

  #start(client: WebSocket): void {
    this.#client = client;
    let isSilent = false;
    let why: string | undefined;
    const timer = setInterval(() => {
      if (isSilent) client.terminate();
      isSilent = true;
      client.ping();
    }, LIMITS.webSocketPing);
    client.on('pong', () => {
      isSilent = false;
    });
    // An error of our own in what checks or answers a message: it ends this session.
    const failed = (error: unknown): void => {
      why ??= `internal error: ${messageOf(error)}`;
      client.close(INTERNAL_ERROR, 'internal error');
    };
    this.#failed = failed;
    client.on('error', (error) => {
      why = error.message;
    });
    client.on('close', () => {
      clearInterval(timer);
      this.onEnd?.();
      this.#options.ended?.(why === undefined ? undefined : { side: 'client', why });
    });
    const { check } = this.#options;
    client.on('message', (data, isBinary) => {
      try {
        if (check !== undefined) this.#check(client, bytesOf(data), isBinary, check);
        else if (!isBinary) this.#send(client, this.#session.answer(bytesOf(data).toString()));
      } catch (error) {
        failed(error);
      }
    });
    this.#send(client, this.#session.start());
    if (this.#refusal !== undefined) client.close(POLICY_VIOLATION, this.#refusal);
  }

  #check(
    client: WebSocket,
    data: Buffer,
    isBinary: boolean,
    check: NonNullable<RelayOptions['check']>,
  ): void {
    client.pause();
    const before = this.#checking;
    const checking = (async () => {
      await before;
      const { for: receiver, message } = await check(data, isBinary);
      this.#send(client, receiver === 'client' ? [String(message)] : this.#session.answer(String(message)));
    })().then(() => {
      if (this.#checking === checking) this.#checking = undefined;
      this.#readOn(client);
    }, this.#failed);
    this.#checking = checking;
  }

  #send(client: WebSocket, messages: readonly string[]): void {
    const { release } = this.#options;
    for (const message of messages) {
      this.#options.received?.(Buffer.from(message));
      if (release === undefined) client.send(message, () => this.#readOn(client));
      else this.#release(client, message, release);
    }
    if (client.bufferedAmount > LIMITS.streamHighWaterBytes) client.pause();
  }

  #release(client: WebSocket, message: string, release: NonNullable<RelayOptions['release']>): void {
    client.pause();
    const before = this.#releasing;
    const releasing = (async () => {
      await before;
      if (client.readyState !== client.OPEN) return;
      const { messages, isLast } = await release(Buffer.from(message), false);
      for (const released of messages) client.send(released, () => this.#readOn(client));
      if (isLast) client.close(POLICY_VIOLATION, BLOCKED);
    })().then(() => {
      if (this.#releasing === releasing) this.#releasing = undefined;
      this.#readOn(client);
    }, this.#failed);
    this.#releasing = releasing;
  }

  #readOn(client: WebSocket): void {
    const isChecking = this.#checking !== undefined || this.#releasing !== undefined;
    const isBusy = isChecking || client.bufferedAmount > LIMITS.streamHighWaterBytes;
    if (client.isPaused && !isBusy) client.resume();
  }
}

/** RFC 6455 §7.4.1. */
const GOING_AWAY = 1001;
