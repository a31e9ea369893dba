import { type ClientConnection, clientConnection } from '../../kernel/request/client-connection.ts';
import { RequestContext } from '../../kernel/request/request-context.ts';
import { answer, type RequestEvents } from '../http1/http1.ts';
import { drain } from '../listener/drain.ts';
import { FetchBody, FetchRequest, fieldsOf } from './fetch-request.ts';
import { FetchResponse } from './fetch-response.ts';

/** Who has sent a request to the program. */
export interface FetchClient {
  /** IP address; empty if it is not known. */
  readonly address: string;
  readonly port: number;
}

/** What decides whether a client may connect. */
interface Admission {
  admits(client: ClientConnection): boolean;
  /** Undefined: there is nobody to ask. */
  authorizes(client: ClientConnection, gone: AbortSignal): Promise<boolean> | undefined;
}

/** Requests of the program that the gateway runs in, which come without a connection, as objects of the Fetch API. */
export class FetchRequests {
  readonly #events: RequestEvents;
  readonly #port: number;
  readonly #admission: Admission;
  readonly #open = new Set<FetchResponse>();
  #isClosed = false;
  #onEmpty: (() => void) | undefined;

  /** `port` is what the requests count as sent to. */
  constructor(events: RequestEvents, port: number, admission: Admission) {
    this.#events = events;
    this.#port = port;
    this.#admission = admission;
  }

  /**
   * Answers a request as one that was received on the port. Rejects if the gateway is closing and, as `fetch` does, if the
   * signal of the request is aborted or its body has been read.
   */
  async handle(request: Request, from: FetchClient): Promise<Response> {
    request.signal.throwIfAborted();
    const url = new URL(request.url);
    const client = clientConnection(from.address, from.port, {
      connection: request,
      local: { localPort: this.#port },
      scheme: url.protocol === 'https:' ? 'https' : 'http',
    });
    if (this.#isClosed) throw closing();
    const isAdmitted = this.#admission.admits(client);
    // Without a wait, if nobody is asked: `close` waits for a request that was handed over before.
    const asked = isAdmitted ? this.#admission.authorizes(client, request.signal) : undefined;
    const isAllowed = asked === undefined ? isAdmitted : await asked;
    request.signal.throwIfAborted();
    // A connection would be closed without a response.
    if (!isAllowed) return new Response('the client is not allowed to connect', { status: 403 });
    if (this.#isClosed) throw closing();
    return this.#serve(request, url, client);
  }

  /** As `Listener.close`. */
  close(deadline: number, beforeAbort?: () => boolean): Promise<void> {
    this.#isClosed = true;
    const closed = new Promise<void>((resolve) => {
      if (this.#open.size === 0) resolve();
      this.#onEmpty = resolve;
    });
    const closeAll = (): void => {
      for (const response of this.#open) response.destroy(closing());
    };
    return drain({ closed, closeAll }, deadline, beforeAbort);
  }

  #serve(request: Request, url: URL, client: ClientConnection): Promise<Response> {
    const { listener, limits } = this.#events;
    const body = request.body === null ? undefined : new FetchBody(request.body);
    const fields = fieldsOf(request, url);
    const response = new FetchResponse(request.method === 'HEAD');
    const received = new FetchRequest(request, url, fields);
    const ctx = new RequestContext(received, response, listener, fields, body, client);
    const abort = (): void => response.destroy(request.signal.reason);
    request.signal.addEventListener('abort', abort, { once: true });
    const slow = body && setTimeout(abort, limits.requestTimeout);
    body?.once('end', () => clearTimeout(slow));
    // It fails with what has ended the request.
    body?.on('error', () => undefined);
    this.#open.add(response);
    response.once('close', () => {
      clearTimeout(slow);
      request.signal.removeEventListener('abort', abort);
      body?.destroy();
      this.#open.delete(response);
      if (!response.writableFinished) ctx.clientClosed();
      this.#events.ended(ctx, response.status, response.bodyBytes);
      if (this.#open.size === 0) this.#onEmpty?.();
    });
    void answer(ctx, response, this.#events);
    return response.started;
  }
}

const closing = (): Error => new Error('the gateway is closing');
