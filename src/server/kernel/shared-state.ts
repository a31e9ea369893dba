/**
 * Operations on the state of a component that all workers of a gateway share, such as a rate limit. Arguments and
 * results are JSON values, because a worker sends them to the process that has the state.
 */
export type Operations = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The operations as callers see them: direct where the state is, a promise in a worker. */
export type Remote<T extends Operations> = {
  readonly [Name in keyof T]: (
    ...args: Parameters<T[Name]>
  ) => Awaited<ReturnType<T[Name]>> | Promise<Awaited<ReturnType<T[Name]>>>;
};

/** One component's place in the shared state. */
export interface Shared<T extends Operations> {
  readonly call: Remote<T>;
  /** Whether another process has the state. */
  readonly isRemote: boolean;
  /** Sends an event to the same component in all workers; without workers, it has no receiver. */
  publish(event: unknown): void;
  /** Removes the operations of the component. Called when it is closed. */
  release(): void;
}

/** State that the workers of a gateway share. */
export interface SharedState {
  /**
   * Adds a component. `keyOf` names it in all processes; components with the same key have the same configuration.
   * `receive` gets the events that are published for it.
   */
  join<T extends Operations>(keyOf: () => string, operations: T, receive?: (event: never) => void): Shared<T>;
}

/** The shared state of a gateway without workers: every operation is a direct call. */
export const OWN_STATE: SharedState = {
  join: (_keyOf, operations) => ({
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a direct call has the type of the operation.
    call: operations as unknown as Remote<typeof operations>,
    isRemote: false,
    publish: () => undefined,
    release: () => undefined,
  }),
};
