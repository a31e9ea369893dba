import { EventEmitter } from 'node:events';
import { LIMITS } from '../../../core/limits.ts';
import { discardReply } from '../../kernel/request/error-response.ts';
import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { ClientResponse, Reply } from '../../kernel/request/request-context.ts';
import type { Takeover } from '../../kernel/request/upgrade.ts';
import { setContentLength } from '../http1/reply.ts';

/** RFC 9110 §7.6.1: fields of connections, which a response of the Fetch API has none of. */
const OF_CONNECTION = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** Statuses whose responses cannot have a body (Fetch, "null body status"). */
const WITHOUT_BODY = new Set([204, 205, 304]);

/** A response of the Fetch API, which exists once its headers are known: `started`. */
export class FetchResponse implements ClientResponse {
  /** Rejects with the reason if the response is destroyed before it has started. */
  readonly started: Promise<Response>;
  readonly #start: PromiseWithResolvers<Response>;
  readonly #events = new EventEmitter();
  readonly #isHead: boolean;
  #headers: Headers | undefined;
  #hasBody = true;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** 0 if no response was sent. */
  status = 0;
  /** Bytes of the body. */
  bodyBytes = 0;
  destroyed = false;
  writableFinished = false;

  constructor(isHead: boolean) {
    this.#isHead = isHead;
    this.#start = Promise.withResolvers();
    this.started = this.#start.promise;
  }

  get headersSent(): boolean {
    return this.status !== 0;
  }

  get writableLength(): number {
    const { desiredSize } = this.#controller ?? { desiredSize: HIGH_WATER };
    return Math.max(0, HIGH_WATER - (desiredSize ?? HIGH_WATER));
  }

  send(reply: Reply): void {
    const { headers, body } = reply;
    const hasContent = setContentLength(reply);
    this.#headers = headersOf(headers);
    this.status = sendable(reply.status);
    this.#hasBody = hasContent && !this.#isHead && !WITHOUT_BODY.has(this.status);
    if (!this.#hasBody) this.#respond(null);
    if (!hasContent) {
      discardReply(reply);
      this.#finish();
    } else if (typeof body === 'object' && 'attach' in body) body.attach(this);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- there is no handshake to take over.
    else this.end(body as Exclude<typeof body, Takeover>);
  }

  /** The body for a HEAD request is read, and not sent, as on a connection. */
  write(chunk: string | Uint8Array): boolean {
    if (this.destroyed || !this.#hasBody) return true;
    this.flushHeaders();
    const bytes = bytesOf(chunk);
    this.bodyBytes += bytes.byteLength;
    if (bytes.byteLength > 0) this.#controller?.enqueue(bytes);
    return (this.#controller?.desiredSize ?? 1) > 0;
  }

  end(chunk?: string | Uint8Array): void {
    if (this.destroyed || this.writableFinished) return;
    if (this.#controller === undefined && this.#hasBody) {
      // Complete: no stream is needed.
      const bytes = chunk === undefined ? undefined : bytesOf(chunk);
      this.bodyBytes = bytes?.byteLength ?? 0;
      this.#respond(bytes ?? null);
    } else {
      if (chunk !== undefined) this.write(chunk);
      this.#controller?.close();
    }
    this.#finish();
  }

  /** The response starts, before there is a body. */
  flushHeaders(): void {
    if (this.#controller !== undefined || !this.#hasBody) return;
    const source = {
      start: (controller: ReadableStreamDefaultController<Uint8Array>) => {
        this.#controller = controller;
      },
      pull: () => void this.#events.emit('drain'),
      cancel: () => this.#close(),
    };
    this.#respond(
      new ReadableStream(source, { highWaterMark: HIGH_WATER, size: ({ byteLength }) => byteLength }),
    );
  }

  /** There is no connection on which the program could wait before it sends the body. */
  writeContinue(): void {}

  /** Ends the response without a regular end. Reading it fails with `reason`. */
  destroy(reason: unknown = new TypeError('the response ended early')): void {
    if (this.destroyed || this.writableFinished) return;
    if (this.#controller === undefined) this.#start.reject(reason);
    else this.#controller.error(reason);
    this.#close();
  }

  once(event: 'close' | 'drain' | 'finish', listener: () => void): void {
    this.#events.once(event, listener.bind(this));
  }

  #respond(body: ConstructorParameters<typeof Response>[0]): void {
    const init = { status: this.status, headers: this.#headers ?? {} };
    this.#start.resolve(new Response(body, init));
  }

  #finish(): void {
    this.writableFinished = true;
    this.#events.emit('finish');
    this.#close();
  }

  /** In a later turn, as responses on connections do: what has ended the response goes on before. */
  #close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    setImmediate(() => this.#events.emit('close'));
  }
}

const HIGH_WATER = LIMITS.streamHighWaterBytes;

/** The Fetch API has no other statuses. Clients treat a higher one of an upstream as a failure of a server (RFC 9110 §15). */
const sendable = (status: number): number => (status > 599 || status < 200 ? 502 : status);

/** Encoded as on a connection of HTTP/1.1. */
const bytesOf = (chunk: string | Uint8Array): Uint8Array =>
  typeof chunk === 'string' ? Buffer.from(chunk) : chunk;

function headersOf({ raw }: HeaderList): Headers {
  const headers = new Headers();
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? '';
    if (!OF_CONNECTION.has(name.toLowerCase())) headers.append(name, raw[at + 1] ?? '');
  }
  return headers;
}
