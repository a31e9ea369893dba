import type { IncomingMessage } from 'node:http';
import { type RawData, WebSocket } from 'ws';
import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { RunningWork } from '../../kernel/request/request-context.ts';
import type { Handshake, Takeover } from '../../kernel/request/upgrade.ts';
import type { TlsOptions } from '../tls/backend-tls.ts';
import { hostLookup } from '../upstream/host-lookup.ts';
import { upstreamError } from '../upstream/upstream-error.ts';
import { type AcceptOptions, acceptWebSocket } from './accept-web-socket.ts';

export interface WebSocketTarget {
  /** `ws:` or `wss:`. */
  readonly url: URL;
  /** Names and values in turn, without those of the handshake itself. */
  readonly headers: readonly string[];
  /** Subprotocols that are offered. */
  readonly protocols: readonly string[];
  /** Messages over this size end the connection with code 1009; bytes. */
  readonly maxMessage: number;
  readonly tls?: TlsOptions;
}

/** A response other than 101 to a handshake. */
export interface Refusal {
  readonly status: number;
  readonly headers: HeaderList;
  /** The beginning of the body, up to `LIMITS.webSocketRefusal`. */
  readonly body: Buffer;
}

/**
 * Opens a WebSocket to an upstream. It is paused, so that its first messages wait until it is relayed. Resolves to a
 * refusal if the upstream answers with another status. Rejects with the `AppError` of `upstreamError`.
 */
export function connectWebSocket(
  { url, headers, protocols, maxMessage, tls }: WebSocketTarget,
  signal: AbortSignal,
): Promise<WebSocket | Refusal> {
  const { promise, resolve, reject } = Promise.withResolvers<WebSocket | Refusal>();
  const socket = new WebSocket(url, [...protocols], {
    headers: headersOf(headers),
    maxPayload: maxMessage,
    perMessageDeflate: false,
    followRedirects: false,
    handshakeTimeout: LIMITS.connectTimeout,
    lookup: hostLookup.forConnect,
    ...tls,
  });
  const abort = (): void => socket.terminate();
  signal.addEventListener('abort', abort);
  socket.once('open', () => {
    socket.pause();
    resolve(socket);
  });
  socket.once('unexpected-response', (request, response) => {
    void refusalOf(response).then((refusal) => {
      request.destroy();
      resolve(refusal);
    });
  });
  socket.on('error', (error) =>
    reject(
      error.message === HANDSHAKE_TIMEOUT
        ? new AppError('upstream_timeout', { detail: `${url.host}: ${error.message}`, cause: error })
        : upstreamError(error, url.host),
    ),
  );
  return promise.finally(() => signal.removeEventListener('abort', abort));
}

/** The message of ws; the error has no code. */
const HANDSHAKE_TIMEOUT = 'Opening handshake has timed out';

/** Repeated headers become lists, as `node:http` takes them. */
function headersOf(raw: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = Object.create(null);
  for (let at = 0; at < raw.length; at += 2) {
    const name = (raw[at] ?? '').toLowerCase();
    headers[name] = [...(headers[name] ?? []), raw[at + 1] ?? ''];
  }
  return headers;
}

async function refusalOf(response: IncomingMessage): Promise<Refusal> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= LIMITS.webSocketRefusal) break;
    }
  } catch {
    // What has arrived of an error response is still better than nothing.
  }
  const body = Buffer.concat(chunks).subarray(0, LIMITS.webSocketRefusal);
  return { status: response.statusCode ?? 502, headers: new HeaderList(response.rawHeaders), body };
}

/** What becomes of a client's message. */
export interface CheckedMessage {
  /** Whether it is sent to the upstream, or the client gets an answer instead. */
  readonly for: 'upstream' | 'client';
  readonly message: string | Buffer;
}

/** What the client gets after a message of the upstream was checked. */
export interface Released {
  readonly messages: readonly string[];
  /** Whether the session ends after them, with code 1008. */
  readonly isLast: boolean;
}

export interface RelayOptions {
  readonly maxMessage: number;
  /** Checks each message of the client. Messages keep their order, and meanwhile no more is read from the client. */
  readonly check?: ((message: Buffer, isBinary: boolean) => Promise<CheckedMessage>) | undefined;
  /**
   * Checks each message of the upstream, and may hold it back. Never rejects. Messages keep their order, and meanwhile no
   * more is read from the upstream. What is held when the upstream closes is not sent.
   */
  readonly release?: ((message: Buffer, isBinary: boolean) => Promise<Released>) | undefined;
  /** Removes secrets from each message of the upstream, and from its reason to close. */
  readonly redact?: Redact | undefined;
  /** Called with each text message of the upstream, before it is sent to the client. */
  readonly received?: (message: Buffer) => void;
  /** Called once when both sides are closed, with what went wrong, if anything did. */
  readonly ended?: (problem: RelayProblem | undefined) => void;
}

export interface Redact {
  message(bytes: Buffer): Buffer;
  reason(bytes: Buffer): Buffer;
}

/** Why a relay ended, unless a side closed it as usual. */
export interface RelayProblem {
  readonly side: 'client' | 'upstream';
  readonly why: string;
  /** The closing code of the upstream, if it sent one. */
  readonly code?: number;
}

/**
 * Passes messages between a client and an upstream, with back-pressure in both directions, and closing codes. Each side
 * is pinged every `LIMITS.webSocketPing`; a side that did not answer the previous ping is closed.
 */
export class WebSocketRelay implements Takeover, RunningWork {
  readonly #upstream: WebSocket;
  readonly #options: RelayOptions;
  #client: WebSocket | undefined;
  #problem: RelayProblem | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #silent = new Set<WebSocket>();
  /** Resolves when all messages that the client has sent were checked. */
  #checking: Promise<void> | undefined;
  /** Resolves when all messages that the upstream has sent were checked. */
  #releasing: Promise<void> | undefined;
  #isBlocked = false;
  /** Whether the gateway itself has closed the sides. */
  #isClosing = false;
  #open = 2;
  #refusal: string | undefined;
  /** Called when the session has ended. */
  onEnd: (() => void) | undefined;

  /** `upstream` is open and paused. */
  constructor(upstream: WebSocket, options: RelayOptions) {
    this.#upstream = upstream;
    this.#options = options;
  }

  takeOver(handshake: Handshake, headers: HeaderList): void {
    const { protocol } = this.#upstream;
    const options: AcceptOptions = {
      headers,
      maxMessage: this.#options.maxMessage,
      protocol: () => (protocol === '' ? false : protocol),
      refused: () => this.discard(),
    };
    acceptWebSocket(handshake, options, (client) => this.#start(client));
  }

  discard(): void {
    this.#upstream.terminate();
    this.#finish();
  }

  abandoned(): void {
    this.#isClosing = true;
    this.#upstream.terminate();
    this.#client?.terminate();
  }

  /** Closes both sides with "going away". */
  expired(): boolean {
    this.#close(GOING_AWAY, 'the gateway is closing');
    return true;
  }

  /** Closes both sides, because the client may no longer use the session. */
  refuse(why: string): void {
    this.#isBlocked = true;
    this.#refusal = why;
    if (this.#client !== undefined) this.#close(POLICY_VIOLATION, why);
  }

  #start(client: WebSocket): void {
    this.#client = client;
    const upstream = this.#upstream;
    const { check } = this.#options;
    this.#connect(
      client,
      upstream,
      'client',
      check && ((data, isBinary) => this.#check(client, data, isBinary, check)),
    );
    upstream.on('message', (data, isBinary) => {
      if (isBinary) return;
      try {
        this.#options.received?.(bytesOf(data));
      } catch (error) {
        this.#failed('upstream', error);
      }
    });
    const { release, redact } = this.#options;
    const redacted = (data: RawData): RawData =>
      redact === undefined ? data : redact.message(bytesOf(data));
    this.#connect(upstream, client, 'upstream', (data, isBinary) =>
      release === undefined
        ? pass(redacted(data), isBinary, upstream, client)
        : this.#release(client, bytesOf(redacted(data)), isBinary, release),
    );
    this.#timer = setInterval(() => this.#ping(), LIMITS.webSocketPing);
    upstream.resume();
    if (this.#refusal !== undefined) this.#close(POLICY_VIOLATION, this.#refusal);
  }

  #connect(
    from: WebSocket,
    to: WebSocket,
    side: RelayProblem['side'],
    receive = (data: RawData, isBinary: boolean): void => pass(data, isBinary, from, to),
  ): void {
    from.on('message', receive);
    from.on('pong', () => this.#silent.delete(from));
    from.on('error', (error) => {
      this.#problem ??= { side, why: error.message };
    });
    const closed = (code: number, sent: Buffer): void => {
      // A paused side would never read the closing frame of the other.
      to.resume();
      const reason = side === 'upstream' ? this.#reasonWithoutSecrets(sent) : sent;
      // Otherwise it is the answer to a closing frame.
      const isFirst = this.#open === 2 && !this.#isClosing;
      if (isFirst && side === 'upstream' && !USUAL.has(code)) {
        const said = reason.length === 0 ? '' : `: ${reason.toString()}`;
        this.#problem ??= { side, why: `the connection was closed with code ${code}${said}`, code };
      }
      if (code === ABNORMAL) {
        if (!this.#isClosing)
          this.#problem ??= { side, why: 'the connection was closed without a closing frame' };
        to.close(side === 'client' ? GOING_AWAY : INTERNAL_ERROR, `the ${side} has disconnected`);
      } else to.close(code === NO_STATUS ? undefined : code, reason);
      this.#open -= 1;
      if (this.#open === 0) this.#finish();
    };
    // What was sent before is sent first.
    from.on('close', (code, reason) => {
      const unsent = side === 'client' ? this.#checking : this.#releasing;
      if (unsent === undefined) closed(code, reason);
      else void unsent.then(() => closed(code, reason));
    });
  }

  #reasonWithoutSecrets(sent: Buffer): Buffer {
    const reason = this.#options.redact?.reason(sent) ?? sent;
    return reason.length > LONGEST_REASON ? Buffer.alloc(0) : reason;
  }

  #check(
    client: WebSocket,
    data: RawData,
    isBinary: boolean,
    check: NonNullable<RelayOptions['check']>,
  ): void {
    client.pause();
    const before = this.#checking;
    const checking = (async () => {
      await before;
      const { for: receiver, message } = await check(bytesOf(data), isBinary);
      await written(receiver === 'client' ? client : this.#upstream, message);
    })().then(
      () => {
        // After the last one: a piece of the stream may hold many messages.
        if (this.#checking === checking) client.resume();
      },
      (error: unknown) => this.#failed('client', error),
    );
    this.#checking = checking;
  }

  #release(
    client: WebSocket,
    data: Buffer,
    isBinary: boolean,
    release: NonNullable<RelayOptions['release']>,
  ): void {
    const upstream = this.#upstream;
    upstream.pause();
    const before = this.#releasing;
    const releasing = (async () => {
      await before;
      if (this.#isBlocked) return;
      const { messages, isLast } = await release(data, isBinary);
      for (const message of messages) await written(client, message);
      if (!isLast) return;
      this.#isBlocked = true;
      this.#close(POLICY_VIOLATION, BLOCKED);
    })().then(
      () => {
        if (this.#releasing === releasing) upstream.resume();
      },
      (error: unknown) => this.#failed('upstream', error),
    );
    this.#releasing = releasing;
  }

  /** An error of our own in what reads or checks a message: it ends this session, and nothing that was not checked is sent. */
  #failed(side: RelayProblem['side'], error: unknown): void {
    this.#problem ??= { side, why: `internal error: ${messageOf(error)}` };
    this.#isBlocked = true;
    this.#close(INTERNAL_ERROR, 'internal error');
  }

  #ping(): void {
    for (const side of [this.#client, this.#upstream]) {
      if (side?.readyState !== WebSocket.OPEN) continue;
      if (this.#silent.has(side)) {
        side.terminate();
        continue;
      }
      this.#silent.add(side);
      side.ping();
    }
  }

  #close(code: number, reason: string): void {
    this.#isClosing = true;
    for (const side of [this.#client, this.#upstream]) side?.close(code, reason);
  }

  #finish(): void {
    clearInterval(this.#timer);
    this.onEnd?.();
    this.#options.ended?.(this.#problem);
  }
}

/** A message in one piece. With the type of binary messages that is set here, which is the default of ws, it is a buffer. */
export function bytesOf(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}

/** Sends a text. Resolves once it was written, or the connection is closed. */
function written(to: WebSocket, message: string | Buffer): Promise<void> {
  if (to.readyState !== WebSocket.OPEN) return Promise.resolve();
  return new Promise((resolve) => to.send(message, { binary: false }, () => resolve()));
}

/** Sends a message on, and reads no more until it was written. */
function pass(data: RawData, isBinary: boolean, from: WebSocket, to: WebSocket): void {
  if (to.readyState !== WebSocket.OPEN) return;
  to.send(data, { binary: isBinary }, () => {
    if (from.isPaused && to.bufferedAmount <= LIMITS.streamHighWaterBytes) from.resume();
  });
  if (to.bufferedAmount > LIMITS.streamHighWaterBytes) from.pause();
}

/** Why a session ends after `Released.isLast`. */
export const BLOCKED = 'a message was blocked';

// RFC 6455 §7.4.1. The first two are never sent.
const NO_STATUS = 1005;
const ABNORMAL = 1006;
const GOING_AWAY = 1001;
/** Codes of a session that is over. A lost connection has no code. */
const USUAL: ReadonlySet<number> = new Set([1000, GOING_AWAY, NO_STATUS, ABNORMAL]);
/** RFC 6455 §5.5: a control frame has 125 bytes at most, of which two are the code. */
const LONGEST_REASON = 123;
export const POLICY_VIOLATION = 1008;
export const INTERNAL_ERROR = 1011;
