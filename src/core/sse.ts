import type { ServerResponse } from 'node:http';
import { LIMITS } from './limits.ts';

/**
 * One server-sent event as text. Line breaks inside `data` become several `data:` lines, which a reader joins
 * again (HTML standard, "Server-sent events" §9.2.6).
 */
export function formatEvent(data: string, event = 'message'): string {
  const lines = /[\r\n]/.test(data) ? data.split(/\r\n|\r|\n/).join('\ndata: ') : data;
  return `event: ${event}\ndata: ${lines}\n\n`;
}

/**
 * A response body of server-sent events. Events sent before the response is there wait; `onClose` runs once,
 * with `false` when the client left before `end()`.
 */
export class EventStream {
  #response: ServerResponse | undefined;
  #waiting: string[] = [];
  #ended = false;
  #closed = false;
  #stalledSince = 0;
  onClose: ((completed: boolean) => void) | undefined;
  /** Runs once, when there is something to send: the moment to answer the request with this stream. */
  onFirst: (() => void) | undefined;
  /** The reader is slow (true) or has caught up (false): a source may pause meanwhile. */
  onPressure: ((paused: boolean) => void) | undefined;

  /** Whether it is the answer to a request already. */
  get isAttached(): boolean {
    return this.#response !== undefined;
  }

  get isOpen(): boolean {
    return !this.#ended && !this.#closed;
  }

  send(data: string, event?: string): void {
    if (this.isOpen) this.#write(formatEvent(data, event));
  }

  /** Sends a last event, if any, and ends the response. */
  end(data?: string): void {
    if (!this.isOpen) return;
    this.#ended = true;
    const frame = data === undefined ? undefined : formatEvent(data);
    if (this.#response === undefined) {
      this.#hold(frame ?? '');
      return;
    }
    // One write for a response of one event: head and body leave in the same packet.
    this.#response.end(frame);
  }

  /** Called by the listener after `writeHead`. The head leaves at once, with what is waiting. */
  attach(response: ServerResponse): void {
    this.#response = response;
    const waiting = this.#waiting.join('');
    this.#waiting = [];
    response.once('close', () => {
      this.#closed = true;
      OPEN.delete(this);
      this.onClose?.(response.writableFinished);
    });
    if (this.#ended) {
      response.end(waiting);
      return;
    }
    OPEN.add(this);
    startHeartbeat();
    if (waiting !== '') this.#write(waiting);
    else response.flushHeaders();
  }

  /** The client left before there was a response. */
  discard(): void {
    this.#closed = true;
    this.onClose?.(false);
  }

  /** Ends the connection without an orderly end, so that the client does not take a part for the whole. */
  destroy(): void {
    this.#response?.destroy();
  }

  /** @internal Heartbeat: a comment when idle, the end of a reader that takes nothing. */
  beat(now: number): void {
    if (this.#stalledSince !== 0) {
      if (now - this.#stalledSince > LIMITS.writeStall) this.destroy();
      return;
    }
    this.#write(': keep-alive\n\n');
  }

  #hold(text: string): void {
    this.#waiting.push(text);
    const first = this.onFirst;
    this.onFirst = undefined;
    first?.();
  }

  #write(text: string): void {
    const response = this.#response;
    if (response === undefined) {
      this.#hold(text);
      return;
    }
    response.write(text);
    if (response.writableLength <= LIMITS.streamHighWaterBytes || this.#stalledSince !== 0) return;
    this.#stalledSince = Date.now();
    this.onPressure?.(true);
    response.once('drain', () => {
      this.#stalledSince = 0;
      this.onPressure?.(false);
    });
  }
}

/** Open streams share one timer: a timer a stream would cost more than the stream. */
const OPEN = new Set<EventStream>();
let heartbeat: NodeJS.Timeout | undefined;

function startHeartbeat(): void {
  heartbeat ??= setInterval(() => {
    if (OPEN.size === 0) {
      clearInterval(heartbeat);
      heartbeat = undefined;
      return;
    }
    const now = Date.now();
    for (const stream of OPEN) stream.beat(now);
  }, LIMITS.heartbeat).unref();
}
