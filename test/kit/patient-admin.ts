import { LIMITS } from '../../src/core/limits.ts';

/** How long the admin server waits for a request, in ms: longer than any test. */
const PATIENCE = 600_000;

/**
 * Admin servers that are started until this is disposed wait for requests without a timeout. For tests with silent
 * connections, and with work that blocks the event loop: Node.js answers 408 to requests that it reads after the timeout.
 */
export function patientAdmin(): Disposable {
  const limits = LIMITS as { operatorServerHeadersTimeout: number; adminRequestTimeout: number };
  const { operatorServerHeadersTimeout, adminRequestTimeout } = limits;
  Object.assign(limits, { operatorServerHeadersTimeout: PATIENCE, adminRequestTimeout: PATIENCE });
  return {
    [Symbol.dispose]() {
      Object.assign(limits, { operatorServerHeadersTimeout, adminRequestTimeout });
    },
  };
}
