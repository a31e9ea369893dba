import { connect, type Socket } from 'node:net';

/** What came back on one TCP connection. */
export interface RawReply {
  readonly text: string;
  /** Status codes of the responses, in order; 100 included. */
  readonly statuses: readonly number[];
  /** Whether the server ended the connection (true), or left it open until we did. */
  readonly closed: boolean;
}

interface RawOptions {
  /** Stops once so many responses have begun and their bodies are here; without it, when the server ends the connection. */
  readonly responses?: number;
  /** Cuts the connection once the bytes are out. */
  readonly leave?: boolean;
}

const patience = 10_000;

/** Writes bytes to a port as they are and returns what is answered. Rejects when nothing is decided within 10 s. */
export function sendRaw(
  port: number,
  bytes: string | Uint8Array,
  { responses, leave = false }: RawOptions = {},
): Promise<RawReply> {
  return new Promise((resolve, reject) => {
    let text = '';
    let socket: Socket | undefined;
    const finish = (closed: boolean): void => {
      clearTimeout(timer);
      socket?.destroy();
      resolve({ text, statuses: statusesOf(text), closed });
    };
    const timer = setTimeout(() => {
      socket?.destroy();
      reject(new Error(`nothing decided within ${patience} ms; so far: ${JSON.stringify(text)}`));
    }, patience);
    socket = connect({ port, host: '127.0.0.1' }, () =>
      socket?.write(bytes, () => leave && socket?.destroy()),
    );
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (responses !== undefined && completeResponses(text) >= responses) finish(false);
    });
    socket.on('close', () => finish(true));
    // A reset is also an end that the server chose; 'close' follows.
    socket.on('error', () => undefined);
  });
}

/** A request with the fields that nobody wants to repeat; `lines` come after Host. */
export function rawRequest(start: string, lines: readonly string[] = [], body = ''): string {
  return [start, 'Host: localhost', ...lines, '', body].join('\r\n');
}

function statusesOf(text: string): number[] {
  // Not at the start of a line: a body without a line break stands before the next response.
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

/** Responses whose declared length has arrived; enough for answers with content-length. */
function completeResponses(text: string): number {
  let count = 0;
  let at = 0;
  for (;;) {
    const end = text.indexOf('\r\n\r\n', at);
    if (end === -1) return count;
    const length = Number(/content-length: (\d+)/i.exec(text.slice(at, end))?.[1] ?? 0);
    if (text.length < end + 4 + length) return count;
    at = end + 4 + length;
    count += 1;
  }
}
