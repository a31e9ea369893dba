import type { Dispatcher } from 'undici';
import { AppError, errorType } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { HeaderList, removeHopByHop } from '../kernel/header-list.ts';
import type { CallSpan } from '../kernel/observer.ts';
import { UpstreamBody } from './upstream-body.ts';
import {
  BODY_IDLE,
  CLIENT_GONE,
  explainUpstreamError,
  failure,
  UNKNOWN_ENCODING,
  upstreamError,
} from './upstream-error.ts';
import type { Destination, RelayClient, UpstreamRequest, UpstreamResponse } from './upstream-request.ts';

/**
 * One request on its way. A class with methods instead of functions over shared variables: those would keep whole
 * requests alive until a full collection, a third of the cost of a small one.
 */
export class Relay implements Dispatcher.DispatchHandler {
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #resolve: (response: UpstreamResponse) => void;
  readonly #reject: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #body: UpstreamBody | undefined;
  #informational = 0;
  readonly #to: Destination;
  readonly #span: CallSpan | undefined;
  readonly #client: RelayClient | undefined;
  readonly #startedAt = performance.now();
  #givenUp: Error | undefined;

  constructor(
    { client, timeout }: UpstreamRequest,
    span: CallSpan | undefined,
    to: Destination,
    resolve: (response: UpstreamResponse) => void,
    reject: (error: unknown) => void,
  ) {
    this.#to = to;
    this.#span = span;
    this.#client = client;
    if (client !== undefined) client.timings.called ??= this.#startedAt;
    this.#resolve = resolve;
    this.#reject = reject;
    if (client?.isAbandoned) this.abandoned();
    else if (client !== undefined) client.running = this;
    if (timeout !== undefined && !this.isOver) this.#timer = setTimeout(giveUpInTime, timeout, this);
  }

  /** Whether it was given up. */
  get isOver(): boolean {
    return this.#givenUp !== undefined;
  }

  /** The client has left, or its request was given up. */
  abandoned(): void {
    this.giveUp(failure(CLIENT_GONE, this.#client?.abandonReason ?? 'the client left'));
  }

  /** Also before there is a connection, when the dispatcher cannot be told yet. */
  giveUp(error: Error): void {
    this.#givenUp = error;
    this.#controller?.abort(error);
    this.#settle();
    this.#span?.fail(explainUpstreamError(error), errorType(error));
    if (this.#body === undefined) this.#refuse(error);
  }

  /** There is no answer. */
  #refuse(error: Error): void {
    this.#reject(upstreamError(error, this.#to.address));
  }

  #answered(status: number): void {
    const now = performance.now();
    if (this.#client !== undefined) this.#client.timings.answered = now;
    this.#to.meter?.answered(now - this.#startedAt);
    this.#to.reachability?.answered();
    this.#span?.end(status);
  }

  #settle(): void {
    clearTimeout(this.#timer);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#givenUp !== undefined) controller.abort(this.#givenUp);
  }

  onRequestUpgrade(
    _controller: unknown,
    _status: number,
    _headers: unknown,
    socket: { destroy(): void },
  ): void {
    // We asked for none: an unsolicited 101 must not become a tunnel.
    socket.destroy();
    this.#settle();
    this.#reject(
      new AppError('upstream_invalid', { detail: `${this.#to.address}: unsolicited protocol switch` }),
    );
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) {
      this.#informational += 1;
      if (this.#informational > LIMITS.informationalResponses)
        controller.abort(new Error('too many informational responses'));
      return;
    }
    clearTimeout(this.#timer);
    this.#answered(status);
    const headers = new HeaderList(textHeaders(controller.rawHeaders));
    const encoding = headers.get('transfer-encoding');
    if (encoding !== undefined && encoding.trim().toLowerCase() !== 'chunked') {
      this.giveUp(failure(UNKNOWN_ENCODING, 'transfer-encoding other than chunked'));
      return;
    }
    removeHopByHop(headers);
    this.#body = new UpstreamBody(controller);
    this.#resolve({ status, headers, body: this.#body });
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    this.#settle();
    const body = this.#body;
    // The connection remembers its last request: it must not keep the client's alive with it.
    this.#body = undefined;
    body?.end();
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#settle();
    this.#span?.fail(explainUpstreamError(error), errorType(error));
    if (this.#body === undefined) this.#refuse(error);
    else this.#body.fail(explainUpstreamError(error), (error as { code?: string }).code === BODY_IDLE);
  }
}

const giveUpInTime = (call: Relay): void =>
  call.giveUp(failure('UND_ERR_HEADERS_TIMEOUT', 'no answer in time'));

function textHeaders(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  return Array.isArray(raw)
    ? raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')))
    : [];
}
