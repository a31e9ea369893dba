import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { membersOf } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import { boundedLines } from './bounded-lines.ts';
import { readLine } from './readable-message.ts';

/** Of a request that cannot be read (JSON-RPC 2.0, section 5.1). */
const INVALID_REQUEST = -32_600;

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
 *
 * A line that is too long or no message is answered with an error, and what follows it is read: the SDK's own transport ends or goes
 * on without a word.
 *
 * @param onProblem called with a sentence about input that is not read
 */
export function stdioTransport(output: Writable, onProblem: (problem: string) => void): StdioTransport {
  const open = new Set<unknown>();
  let answered = (): void => undefined;
  const complete = (id: unknown): void => {
    open.delete(id);
    if (open.size === 0) answered();
  };
  const most = MEMORY_API_LIMITS.stdioLineBytes;
  const input = boundedLines({
    most,
    read(bytes) {
      const line = readLine(bytes);
      if (line === undefined) return undefined;
      if ('message' in line) return `${line.message}\n`;
      onProblem(`a message is not read: ${line.problem}`);
      if (line.answer !== undefined) output.write(`${JSON.stringify(line.answer)}\n`);
      return undefined;
    },
    onDiscarded(id) {
      const message = `a message of more than ${most} bytes is not read: send less at once`;
      onProblem(message);
      const answer = { jsonrpc: '2.0', id: id ?? null, error: { code: INVALID_REQUEST, message } };
      output.write(`${JSON.stringify(answer)}\n`);
    },
    // The input has ended; the SDK sees the end once no request is open.
    beforeEnd: (done) => void whenRead(input, () => waitFor(done)),
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
  const inner = new StdioServerTransport(input, output, { maxBufferSize: most });
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
        // Nothing is read after it.
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
