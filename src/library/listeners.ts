import { detailOf } from '../core/errors.ts';
import type { Log, LogWriter } from '../core/log.ts';
import type { RunningGateway } from '../server/runtime/gateway.ts';
import type { GatewayEvents, GatewayOptions } from './api.ts';
import { factsOf } from './facts.ts';

type ListenersOf<Name extends keyof GatewayEvents> = Set<(event: GatewayEvents[Name]) => void>;

/** What a program listens to. Without listeners, nothing is made for them. */
export class Listeners {
  readonly #of: { readonly [Name in keyof GatewayEvents]: ListenersOf<Name> } = {
    request: new Set(),
    log: new Set(),
  };
  #running: RunningGateway | undefined;
  #stop: (() => void) | undefined;
  /** Where an error of a listener is told. */
  log: Log | undefined;

  /** With listeners that are there from the start. */
  constructor(first: GatewayOptions['on'] = {}) {
    const { request, log } = first;
    if (request !== undefined) this.on('request', request);
    if (log !== undefined) this.on('log', log);
  }

  listenTo(running: RunningGateway): void {
    this.#running = running;
    this.#update();
  }

  on<Name extends keyof GatewayEvents>(
    name: Name,
    listener: (event: GatewayEvents[Name]) => void,
  ): () => void {
    if (!Object.hasOwn(this.#of, name))
      throw new TypeError(`unknown event \`${name}\`: expected ${Object.keys(this.#of).join(' or ')}`);
    if (typeof listener !== 'function') throw new TypeError(`the listener of \`${name}\` is not a function`);
    const all: ListenersOf<Name> = this.#of[name];
    all.add(listener);
    this.#update();
    return () => {
      all.delete(listener);
      this.#update();
    };
  }

  logged(...[level, scope, message, fields]: Parameters<LogWriter>): void {
    if (this.#of.log.size > 0) this.#tell(this.#of.log, { time: new Date(), level, scope, message, fields });
  }

  /** Facts of requests are read only if somebody wants them. */
  #update(): void {
    const isWanted = this.#of.request.size > 0;
    if (!isWanted) {
      this.#stop?.();
      this.#stop = undefined;
    } else
      this.#stop ??= this.#running?.onRequestEnded((ctx, status, runtime) =>
        this.#tell(this.#of.request, factsOf(ctx, status, runtime)),
      );
  }

  #tell<Event>(listeners: ReadonlySet<(event: Event) => void>, event: Event): void {
    for (const listener of listeners) {
      try {
        // It may be asynchronous, although its type says nothing of a promise.
        const done: unknown = listener(event);
        if (done instanceof Promise) done.catch((error: unknown) => this.#failed(listeners, error));
      } catch (error) {
        this.#failed(listeners, error);
      }
    }
  }

  #failed(listeners: object, error: unknown): void {
    // One that listens to the log would be told of its own error, and fail again.
    if (listeners === this.#of.log) return;
    this.log?.error('agctl', 'a listener of the program has failed', { problem: detailOf(error) });
  }
}
