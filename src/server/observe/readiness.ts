import type { IncomingMessage, ServerResponse } from 'node:http';

/** Which parts of the program are not ready yet. */
export class Readiness {
  readonly #pending = new Set<string>();

  /** Not ready until the returned function is called. */
  begin(task: string): () => void {
    this.#pending.add(task);
    return () => void this.#pending.delete(task);
  }

  /** Names of what is missing, sorted. */
  get pending(): readonly string[] {
    return [...this.#pending].sort();
  }
}

/** Answers GET `/healthz/ready`: 200 `ready`, or 500 with what is missing. */
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
