import { type Readable, Transform, type Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';

/** A request that is not answered within a bounded time, if ever: a subscription. */
const ENDLESS = 'subscriptions/listen';

/** MCP on a pair of streams. Close it once `input` has ended, which happens after the last response. */
export interface StdioTransport {
  readonly transport: Transport;
  /** Data from stdin is written here. */
  readonly input: Writable;
}

/**
 * A transport that answers all requests before the end of its input, so that `printf … | agctl memory-adapter stdio`
 * works as expected. The SDK's own transport drops them. Waits for at most `LIMITS.drain`.
 */
export function stdioTransport(output: Writable): StdioTransport {
  const open = new Set<unknown>();
  let answered = (): void => undefined;
  const complete = (id: unknown): void => {
    open.delete(id);
    if (open.size === 0) answered();
  };
  const input = new Transform({
    transform: (chunk, _encoding, done) => done(null, chunk),
    // The input has ended; the SDK sees the end once no request is open.
    flush: (done) => void whenRead(input, () => waitFor(done)),
  });
  let late: NodeJS.Timeout | undefined;
  const waitFor = (done: () => void): void => {
    late = setTimeout(() => answered(), LIMITS.drain);
    answered = () => {
      clearTimeout(late);
      answered = () => undefined;
      done();
    };
    if (open.size === 0) answered();
  };
  const inner = new StdioServerTransport(input, output);
  const transport: Transport = {
    start() {
      inner.onmessage = (message) => {
        const { id, method } = membersOf(message);
        if (id !== undefined && method !== undefined && method !== ENDLESS) open.add(id);
        transport.onmessage?.(message);
        if (method === 'notifications/cancelled') complete(cancelledOf(message));
      };
      inner.onclose = () => {
        clearTimeout(late);
        // Also after a message that is too long, since nothing is read after it.
        input.destroy();
        transport.onclose?.();
      };
      inner.onerror = (error) => transport.onerror?.(error);
      return inner.start();
    },
    async send(message) {
      const { id, method } = membersOf(message);
      try {
        await inner.send(message);
      } finally {
        if (id !== undefined && method === undefined) complete(id);
      }
    },
    close: () => inner.close(),
  };
  return { transport, input };
}

function cancelledOf(message: JSONRPCMessage): unknown {
  return membersOf(membersOf(message)['params'])['requestId'];
}

/** Calls back when all written data has been read. */
function whenRead(stream: Readable, then: () => void): void {
  if (stream.readableLength === 0) then();
  else stream.once('data', () => setImmediate(() => whenRead(stream, then)));
}
