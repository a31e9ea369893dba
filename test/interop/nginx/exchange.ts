import { createServer } from 'node:http';
import { type AddressInfo, connect, type NetConnectOpts } from 'node:net';

/** One whole request as the backend got it. */
export interface Arrived {
  readonly front: string;
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly body: string;
}

export interface Recorder extends AsyncDisposable {
  readonly port: number;
  /** Requests that arrived to their end. A server acts on no other. */
  readonly arrived: readonly Arrived[];
  /** Bytes from a front that are not HTTP. */
  readonly malformed: readonly string[];
}

/** A backend that records what reaches it, and from which of the servers in front of it (`X-Front`). */
export async function recordingBackend(): Promise<Recorder> {
  const arrived: Arrived[] = [];
  const malformed: string[] = [];
  const server = createServer((request, response) => {
    const { method = '', url: target = '', headers } = request;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('latin1');
      arrived.push({ front: String(headers['x-front']), method, target, body });
      response.end('reached');
    });
  });
  server.maxHeadersCount = 0;
  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    // A front that gives a request up ends its connection.
    if (error.code !== 'ECONNRESET' && error.code !== 'HPE_INVALID_EOF_STATE')
      malformed.push(`${error.code}: ${error.rawPacket?.toString('latin1')}`);
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    arrived,
    malformed,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A well-formed request after each case: who is still in step with the client answers it and closes. */
export const LAST = 'GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

/** Longer than any server here waits for the rest of a request. */
const PATIENCE = 8_000;

/** How long the next piece waits, so that the server reads each on its own. */
const BETWEEN_PIECES = 3;

/** The same bytes in four: cut within the request line, in the middle, and before the last request. */
export function inPieces(bytes: string): string[] {
  const middle = Math.max(3, bytes.length >> 1);
  return [bytes.slice(0, 3), bytes.slice(3, middle), bytes.slice(middle), LAST];
}

/** Writes bytes, piece by piece, and waits until the server has closed. Resolves to the status codes that came back. */
export function converse(to: NetConnectOpts, pieces: readonly string[]): Promise<number[]> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(to, () => void write());
    const write = async (): Promise<void> => {
      for (const [index, piece] of pieces.entries()) {
        if (index > 0) await new Promise((next) => setTimeout(next, BETWEEN_PIECES));
        if (socket.writable) socket.write(Buffer.from(piece, 'latin1'));
      }
    };
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`not closed within ${PATIENCE} ms; so far: ${JSON.stringify(text.slice(0, 500))}`));
    }, PATIENCE);
    socket.setNoDelay();
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    // A reset is an end, too; 'close' follows.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timer);
      resolve([...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status)));
    });
  });
}
