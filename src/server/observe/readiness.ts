import type { IncomingMessage, ServerResponse } from 'node:http';

/** Tracks the startup tasks that must finish before the program is ready. */
export class Readiness {
  readonly #pending = new Set<string>();

  /** Registers a task. The program is not ready until the returned function is called. */
  begin(task: string): () => void {
    this.#pending.add(task);
    return () => void this.#pending.delete(task);
  }

  /** Names of unfinished tasks, sorted. */
  get pending(): readonly string[] {
    return [...this.#pending].sort();
  }
}

/**
 * Handles GET `/healthz/ready`: 200 `ready`, or 500 with the unfinished tasks. Other paths: 404; other methods: 405.
 */
export function readinessHandler(
  readiness: Readiness,
): (request: IncomingMessage, response: ServerResponse) => void {
  return ({ url, method }, response) => {
    if (url?.split('?')[0] !== '/healthz/ready') response.writeHead(404).end();
    else if (method !== 'GET') response.writeHead(405, { allow: 'GET' }).end();
    else {
      const { pending } = readiness;
      response
        .writeHead(pending.length === 0 ? 200 : 500, { 'content-type': 'text/plain; charset=utf-8' })
        .end(pending.length === 0 ? 'ready\n' : `not ready, pending: ${pending.join(', ')}\n`);
    }
  };
}
