import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readAll } from './upstream.ts';

/** A request that the fake backend received. */
export interface Seen {
  readonly method: string;
  /** Request target, as on the wire. */
  readonly target: string;
  readonly headers: IncomingMessage['headers'];
  // biome-ignore lint/suspicious/noExplicitAny: what was sent is for the test to look into.
  readonly body: any;
  /** The caller hung up before the answer. */
  readonly closed: boolean;
}

/** What it does with one request: answers, or anything else. */
export type Answer = (res: ServerResponse, seen: Seen) => void;

/** A memory backend that does what it is told, one answer after the other; the last one goes on. */
export interface FakeBackend extends AsyncDisposable {
  readonly url: string;
  readonly seen: readonly Seen[];
  /** Replaces what comes next. */
  script(...answers: Answer[]): void;
}

export const reply =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answer =>
  (res) => {
    const isText = typeof body === 'string';
    res.writeHead(status, { 'content-type': isText ? 'text/html' : 'application/json', ...headers });
    res.end(isText ? body : JSON.stringify(body));
  };

/** Cuts the connection without an answer. */
export const cut: Answer = (res) => void res.socket?.destroy();
/** Never answers. */
export const silence: Answer = () => undefined;

export async function fakeBackend(...answers: Answer[]): Promise<FakeBackend> {
  let next = answers;
  const seen: Seen[] = [];
  const server = createServer((req, res) => {
    void readAll(req).then((body) => {
      let closed = false;
      res.once('close', () => {
        closed = !res.writableFinished;
      });
      const entry: Seen = {
        method: req.method ?? '',
        target: req.url ?? '',
        headers: req.headers,
        body: body.length === 0 ? undefined : JSON.parse(body.toString('utf8')),
        get closed() {
          return closed;
        },
      };
      seen.push(entry);
      const answer = next.length > 1 ? next.shift() : next[0];
      answer?.(res, entry);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    script: (...replaced) => {
      next = replaced;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
