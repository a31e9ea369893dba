import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../core/limits.ts';

/** A response that knows where it waits. A request whose body was read to its end may have lost its socket. */
export interface Waiting extends ServerResponse {
  line: Line<this> | undefined;
}

/** The requests of one connection. */
export interface Line<R> {
  readonly socket: Socket;
  current: R | undefined;
  readonly waiting: R[];
  isPausing: boolean;
  isPaused: boolean;
  isWatched: boolean;
  /** Its body is malformed: it gets the answer to that. */
  broken?: R;
  whenNone?: () => void;
}

/**
 * Requests of one connection take turns (pipelining). Node would begin all that came with one read at once: a client
 * could open a connection to the backend with every 30 bytes, and requests that change something could overtake each
 * other, which RFC 9112 §9.3.2 allows for safe methods only. While several wait, no more is read.
 */
export class RequestPipeline<R extends Waiting> {
  readonly #lines = new WeakMap<Socket, Line<R>>();
  readonly #neverBegun: (response: R) => void;

  /** `neverBegun` is told of those whose connection ended before their turn. */
  constructor(neverBegun: (response: R) => void) {
    this.#neverBegun = neverBegun;
  }

  /** A request came. True when it is its turn; otherwise `leave` gives it later. */
  enter(response: R): boolean {
    // Of the request: a response that waits for its turn has no socket yet.
    const { socket } = response.req;
    const line = this.#lineOf(socket);
    response.line = line;
    if (line.current === undefined && line.waiting.length === 0) {
      line.current = response;
      return true;
    }
    if (!line.isWatched) socket.once('close', () => this.#giveUp(line));
    line.isWatched = true;
    line.waiting.push(response);
    if (!line.isPausing && line.waiting.length > LIMITS.pipelinedRequests) {
      line.isPausing = true;
      process.nextTick(pause, line);
    }
    return false;
  }

  /** A request has ended. Returns the next one. */
  leave(response: R): R | undefined {
    const line = response.line as Line<R> | undefined;
    if (line?.current !== response) return undefined;
    const { socket } = line;
    line.current = undefined;
    const next = line.waiting[0];
    if (next === undefined) {
      line.whenNone?.();
      return undefined;
    }
    // Without one, that answer was the connection's last.
    if (next.socket === null || socket.destroyed) return undefined;
    line.waiting.shift();
    line.current = next;
    if (line.isPaused && line.waiting.length <= LIMITS.pipelinedRequests) {
      line.isPaused = false;
      if (!isHeldByNode(socket)) socket.resume();
    }
    return next;
  }

  /**
   * Node reports a malformed request at once, also while earlier ones of the same connection are still to be answered:
   * their answers come first. Acts at once when there are none, or when the body of the current one is what is wrong.
   */
  whenNone(socket: Socket, action: () => void): void {
    const line = this.#lines.get(socket);
    const { current, waiting = [] } = line ?? {};
    const isOwn = waiting.length === 0 && current?.req.complete === false;
    if (line === undefined || current === undefined || isOwn) {
      action();
      return;
    }
    if (waiting.at(-1)?.req.complete === false) line.broken = waiting.pop() as R;
    line.whenNone = action;
  }

  #lineOf(socket: Socket): Line<R> {
    let line = this.#lines.get(socket);
    if (line === undefined) {
      line = { socket, current: undefined, waiting: [], isPausing: false, isPaused: false, isWatched: false };
      this.#lines.set(socket, line);
    }
    return line;
  }

  #giveUp(line: Line<R>): void {
    const left = line.waiting.splice(0);
    if (line.broken !== undefined) left.push(line.broken);
    delete line.broken;
    for (const response of left) this.#neverBegun(response);
  }
}

/** After all that one read brought: Node starts the connection again at the end of each request. */
function pause(line: Line<unknown>): void {
  line.isPausing = false;
  if (line.waiting.length <= LIMITS.pipelinedRequests) return;
  line.isPaused = true;
  line.socket.pause();
}

/** Node has paused it, because the client does not read, and will start it again. */
const isHeldByNode = (socket: Socket & { readonly _paused?: boolean }): boolean => socket._paused === true;
