import { type Readable, Transform, type Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { LIMITS } from '../../core/limits.ts';

/** A request whose answer comes in its own time, or never: a subscription. */
const ENDLESS = 'subscriptions/listen';

/** MCP on a pair of streams. To be closed once `input` has ended, which it does after the last answer. */
export interface StdioTransport {
  readonly transport: Transport;
  /** What is read goes in here. */
  readonly input: Writable;
}

/**
 * A transport that answers the requests that came before the end of its input: `printf … | agctl memory-adapter stdio`
 * works as one would think. The SDK's own gives them up. It waits for as long as `LIMITS.drain`.
 */
export function stdioTransport(output: Writable): StdioTransport {
  const open = new Set<unknown>();
  let answered = (): void => undefined;
  const settle = (id: unknown): void => {
    open.delete(id);
    if (open.size === 0) answered();
  };
  const input = new Transform({
    transform: (chunk, _encoding, done) => done(null, chunk),
    // Nothing more comes; the end goes on to the SDK when nothing is open.
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
        const { id, method } = message as { id?: unknown; method?: string };
        if (id !== undefined && method !== undefined && method !== ENDLESS) open.add(id);
        transport.onmessage?.(message);
        if (method === 'notifications/cancelled') settle(cancelledOf(message));
      };
      inner.onclose = () => {
        clearTimeout(late);
        // Also after too long a message: nobody reads on.
        input.destroy();
        transport.onclose?.();
      };
      inner.onerror = (error) => transport.onerror?.(error);
      return inner.start();
    },
    async send(message) {
      const { id, method } = message as { id?: unknown; method?: string };
      try {
        await inner.send(message);
      } finally {
        if (id !== undefined && method === undefined) settle(id);
      }
    },
    close: () => inner.close(),
  };
  return { transport, input };
}

function cancelledOf(message: JSONRPCMessage): unknown {
  return (message as { params?: { requestId?: unknown } }).params?.requestId;
}

/** Calls back when everything that was written has been read. */
function whenRead(stream: Readable, then: () => void): void {
  if (stream.readableLength === 0) then();
  else stream.once('data', () => setImmediate(() => whenRead(stream, then)));
}
