import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../../core/limits.ts';

/** A response with the queue of its connection. Kept here because a request whose body was read may have lost its socket. */
export interface QueuedResponse extends ServerResponse {
  queue: ConnectionQueue<this> | undefined;
}

/** The pipelined requests of one connection. */
export interface ConnectionQueue<R> {
  readonly socket: Socket;
  current: R | undefined;
  readonly waiting: R[];
  isPausing: boolean;
  isPaused: boolean;
  isWatched: boolean;
  /** A request with a malformed body. Its response is the error response of the connection. */
  malformed?: R;
  afterPending?: () => void;
}

/**
 * Handles the pipelined requests of a connection one after the other. Node would start all requests of one read at once:
 * a client could open a backend connection with every 30 bytes, and requests with side effects could overtake each other,
 * which RFC 9112 §9.3.2 allows only for safe methods. While more than `LIMITS.pipelinedRequests` (16) wait, reading pauses.
 */
export class RequestPipeline<R extends QueuedResponse> {
  readonly #queues = new WeakMap<Socket, ConnectionQueue<R>>();
  readonly #dropped: (response: R) => void;

  /** `dropped` is called for requests whose connection closes before they start. */
  constructor(dropped: (response: R) => void) {
    this.#dropped = dropped;
  }

  /** Adds a new request. Returns whether it can start now; otherwise `finish` returns it later. */
  add(response: R): boolean {
    // The request's socket: a response that waits has none yet.
    const { socket } = response.req;
    const queue = this.#queueOf(socket);
    response.queue = queue;
    if (queue.current === undefined && queue.waiting.length === 0) {
      queue.current = response;
      return true;
    }
    if (!queue.isWatched) socket.once('close', () => this.#drop(queue));
    queue.isWatched = true;
    queue.waiting.push(response);
    if (!queue.isPausing && queue.waiting.length > LIMITS.pipelinedRequests) {
      queue.isPausing = true;
      process.nextTick(pause, queue);
    }
    return false;
  }

  /** Called when a request has ended. Returns the next one, or undefined. */
  finish(response: R): R | undefined {
    const queue = response.queue as ConnectionQueue<R> | undefined;
    if (queue?.current !== response) return undefined;
    const { socket } = queue;
    queue.current = undefined;
    const next = queue.waiting[0];
    if (next === undefined) {
      queue.afterPending?.();
      return undefined;
    }
    // Without a socket, the previous response was the last one of the connection.
    if (next.socket === null || socket.destroyed) return undefined;
    queue.waiting.shift();
    queue.current = next;
    if (queue.isPaused && queue.waiting.length <= LIMITS.pipelinedRequests) {
      queue.isPaused = false;
      if (!isPausedByNode(socket)) socket.resume();
    }
    return next;
  }

  /**
   * Calls `action` once earlier requests of the connection have been answered: Node reports a malformed request even while
   * these are pending. Calls it immediately if there are none, or if the body of the current request is malformed. If the client has
   * ended the connection, it waits for nothing: the connection is closed.
   */
  afterPending(socket: Socket, action: () => void): void {
    const queue = this.#queues.get(socket);
    const { current, waiting = [] } = queue ?? {};
    const isCurrentMalformed = waiting.length === 0 && current?.req.complete === false;
    if (queue === undefined || current === undefined || isCurrentMalformed) {
      action();
      return;
    }
    if (socket.readableEnded) {
      socket.destroy();
      return;
    }
    const last = waiting.at(-1);
    if (last?.req.complete === false) {
      waiting.pop();
      queue.malformed = last;
    }
    queue.afterPending = action;
  }

  #queueOf(socket: Socket): ConnectionQueue<R> {
    let queue = this.#queues.get(socket);
    if (queue === undefined) {
      queue = {
        socket,
        current: undefined,
        waiting: [],
        isPausing: false,
        isPaused: false,
        isWatched: false,
      };
      this.#queues.set(socket, queue);
    }
    return queue;
  }

  #drop(queue: ConnectionQueue<R>): void {
    const dropped = queue.waiting.splice(0);
    if (queue.malformed !== undefined) dropped.push(queue.malformed);
    delete queue.malformed;
    for (const response of dropped) this.#dropped(response);
  }
}

/** Called after all requests of one read were added, because Node resumes the socket at the end of each request. */
function pause(queue: ConnectionQueue<unknown>): void {
  queue.isPausing = false;
  if (queue.waiting.length <= LIMITS.pipelinedRequests) return;
  queue.isPaused = true;
  queue.socket.pause();
}

/** Whether Node has paused the socket, because the client does not read. Node then resumes it. */
const isPausedByNode = (socket: Socket & { readonly _paused?: boolean }): boolean => socket._paused === true;
