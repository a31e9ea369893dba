import type { SendHandle } from 'node:child_process';
import { Socket } from 'node:net';
import { elementsOf, isRecord, shownValue } from '../../core/foreign.ts';
import { TransientMap } from '../kernel/transient-map.ts';

/** The end of an IPC channel: a child process, or `process` in a child. */
export interface IpcPort {
  send?(
    message: unknown,
    handle?: SendHandle,
    options?: object,
    sent?: (error: Error | null) => void,
  ): boolean;
  on(event: 'message', listener: (message: unknown, handle?: unknown) => void): unknown;
}

/** What one process can ask of the other, by name. Arguments are JSON values (so `undefined` is `null`), and results too. */
export type Calls = Readonly<Record<string, (...args: never[]) => unknown>>;

/** Receives a connection and the id of its port; no connection if the client has left on the way. */
type SocketReceiver = (port: string, socket: Socket | undefined) => void;

/** A call, or its answer. `id` is 0 if no answer is expected. */
type Frame =
  | { readonly id: number; readonly call: string; readonly args: readonly unknown[] }
  | { readonly id: number; readonly result?: unknown; readonly error?: string };

/** The other process has ended, or was told to: its answer will not come. */
export class LinkClosed extends Error {
  constructor() {
    super('the other process has ended');
    this.name = 'LinkClosed';
  }
}

/**
 * Calls between two processes over Node's IPC channel. Calls and answers of one event-loop turn are sent as one message,
 * because a message costs about 20 µs in each process, whatever its length.
 */
export class Link<Local extends Calls, Other extends Calls> {
  readonly #port: IpcPort;
  readonly #local: Local;
  readonly #onSocket: SocketReceiver | undefined;
  readonly #waiting = new TransientMap<number, PromiseWithResolvers<unknown>>();
  #queue: Frame[] = [];
  #lastId = 0;
  #isClosed = false;

  /** `onSocket` receives the connections that the other process passes on with `pass`. */
  constructor(port: IpcPort, local: Local, onSocket?: SocketReceiver) {
    this.#port = port;
    this.#local = local;
    this.#onSocket = onSocket;
    port.on('message', (message, handle) => this.#receive(message, handle));
  }

  /** Calls a function of the other process. Rejects with its error message, or with `LinkClosed`. */
  call<Name extends keyof Other & string>(
    name: Name,
    ...args: Parameters<Other[Name]>
  ): Promise<Awaited<ReturnType<Other[Name]>>> {
    if (this.#isClosed) return Promise.reject(new LinkClosed());
    const id = ++this.#lastId;
    const waiter = Promise.withResolvers<unknown>();
    this.#waiting.set(id, waiter);
    this.#post({ id, call: name, args });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the other process runs the same program
    return waiter.promise as Promise<Awaited<ReturnType<Other[Name]>>>;
  }

  /** Calls a function of the other process, whose result does not matter. */
  tell<Name extends keyof Other & string>(name: Name, ...args: Parameters<Other[Name]>): void {
    if (!this.#isClosed) this.#post({ id: 0, call: name, args });
  }

  /** Like `tell`, at once: the message has left this process when the function returns, unless the other one is stuck. */
  tellNow<Name extends keyof Other & string>(name: Name, ...args: Parameters<Other[Name]>): void {
    this.#send([{ id: 0, call: name, args }]);
  }

  /**
   * Passes a connection to the other process. It stays open here, unread: Node would lose it if the other process ended
   * before it took the connection.
   */
  pass(port: string, socket: Socket): void {
    this.#port.send?.(port, socket, { keepOpen: true }, () => undefined);
  }

  /** Rejects all calls without an answer: the other process has ended. */
  close(): void {
    this.#isClosed = true;
    const waiting = this.#waiting.values();
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new LinkClosed());
  }

  #post(frame: Frame): void {
    this.#queue.push(frame);
    if (this.#queue.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    const frames = this.#queue;
    this.#queue = [];
    if (!this.#isClosed) this.#send(frames);
  }

  #send(frames: readonly Frame[]): void {
    // An error means that the other process has gone, which its exit tells, too.
    this.#port.send?.(frames, undefined, {}, () => undefined);
  }

  /**
   * Messages of another shape are left out: a module of the other process can use the channel, too (`process.send`), and a
   * worker that is replaced after an update of the package runs the new version.
   */
  #receive(message: unknown, handle: unknown): void {
    if (typeof message === 'string') {
      this.#onSocket?.(message, handle instanceof Socket ? handle : undefined);
      return;
    }
    if (Array.isArray(message)) for (const frame of message) this.#handle(frame);
  }

  #handle(frame: unknown): void {
    if (!isRecord(frame) || typeof frame['id'] !== 'number') return;
    const { id, call, args, result, error } = frame;
    if (typeof call === 'string') {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same program has checked the types of the arguments
      const called = this.#local[call] as ((...all: readonly unknown[]) => unknown) | undefined;
      void this.#answer(id, () => called?.(...elementsOf(args)));
      return;
    }
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiter?.resolve(result);
    else waiter?.reject(new Error(shownValue(error)));
  }

  async #answer(id: number, perform: () => unknown): Promise<void> {
    try {
      const result = await perform();
      if (id !== 0) this.#post({ id, result });
    } catch (error) {
      if (id === 0) throw error;
      this.#post({ id, error: error instanceof Error ? error.message : String(error) });
    }
  }
}
