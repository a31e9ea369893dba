import { AsyncLocalStorage } from 'node:async_hooks';

/** Code of somebody else that runs in this process. */
export interface ForeignCode {
  /** Called with what it has thrown where nobody waits for it: a promise without `await`, a timer, a listener. */
  failed(error: unknown): void;
}

const running = new AsyncLocalStorage<ForeignCode>();

/** Runs such code. What it begins and does not wait for still counts as its own. */
export function runForeign<T>(code: ForeignCode, run: () => T): T {
  return running.run(code, run);
}

/** For handlers of uncaught errors: tells the code that has caused one. Returns whether there is such code; otherwise, the error is a bug. */
export function isFailureOfForeignCode(error: unknown): boolean {
  const code = running.getStore();
  code?.failed(error);
  return code !== undefined;
}
