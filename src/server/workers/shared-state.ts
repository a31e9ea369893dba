import { parseJson } from '../../core/foreign.ts';
import type { Operations, Remote, Shared, SharedState } from '../kernel/shared-state.ts';
import type { PrimaryCalls, WorkerCalls } from './calls.ts';
import type { Link } from './link.ts';

/** The state that all workers share, in the process that holds it. */
export class HeldState implements SharedState {
  readonly #components = new Map<string, Operations>();
  readonly #publish: (key: string, event: unknown) => void;

  /** `publish` sends an event to all workers. */
  constructor(publish: (key: string, event: unknown) => void) {
    this.#publish = publish;
  }

  join<T extends Operations>(keyOf: () => string, operations: T): Shared<T> {
    const key = keyOf();
    this.#components.set(key, operations);
    return {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a direct call has the type of the operation
      call: operations as unknown as Remote<T>,
      isRemote: false,
      publish: (event) => this.#publish(key, event),
      release: () => {
        if (this.#components.get(key) === operations) this.#components.delete(key);
      },
    };
  }

  /**
   * Performs an operation for a worker. Undefined if the component is gone: the request began with a configuration that
   * has since been replaced.
   */
  perform(key: string, name: string, args: readonly unknown[]): unknown {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `RemoteState.join` has the types of the arguments
    const operation = this.#components.get(key)?.[name] as
      | ((...args: readonly unknown[]) => unknown)
      | undefined;
    const result = operation?.(...args);
    // Results of asynchronous operations belong to their caller alone.
    if (result instanceof Promise) return result;
    // As it is now: the answer is sent at the end of the turn, after further operations.
    return result === undefined ? undefined : parseJson(JSON.stringify(result));
  }
}

/** The shared state as a worker sees it: operations are performed by the process that holds it. */
export class RemoteState implements SharedState {
  readonly #link: Pick<Link<WorkerCalls, PrimaryCalls>, 'call'>;
  readonly #receivers = new Map<string, Set<(event: never) => void>>();

  constructor(link: Pick<Link<WorkerCalls, PrimaryCalls>, 'call'>) {
    this.#link = link;
  }

  join<T extends Operations>(
    keyOf: () => string,
    operations: T,
    receive?: (event: never) => void,
  ): Shared<T> {
    const key = keyOf();
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one function for each operation
    const call = Object.fromEntries(
      Object.keys(operations).map((name) => [
        name,
        (...args: readonly unknown[]) => this.#link.call('shared', key, name, args),
      ]),
    ) as unknown as Remote<T>;
    const receivers = this.#receivers.get(key) ?? new Set();
    if (receive !== undefined) this.#receivers.set(key, receivers.add(receive));
    return {
      call,
      isRemote: true,
      publish: () => undefined,
      release: () => {
        if (receive !== undefined) receivers.delete(receive);
        if (receivers.size === 0) this.#receivers.delete(key);
      },
    };
  }

  /** Passes an event on to the component that it was published for. */
  received(key: string, event: unknown): void {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `publish` of the same component has sent it
    for (const receive of this.#receivers.get(key) ?? []) receive(event as never);
  }
}
