import { pipeline } from 'node:stream';
import type { CommandError } from '../../core/exit-codes.ts';
import { membersOf } from '../../core/foreign.ts';
import type { Context } from '../context.ts';
import { asCalled } from '../invocation.ts';
import { stdioTransport } from './stdio-transport.ts';

/** Of errors that a server defines (JSON-RPC 2.0, section 5.1). */
const SERVER_ERROR = -32_000;

/** Clients ask at once. What else starts the process, such as a script, may never end its stdin; ms. */
const SILENCE = 10_000;

/**
 * Answers every request on stdin with the reason why the server did not start, until stdin ends or is silent: a client shows the answer of its
 * `initialize`, and of a server that has ended only "Connection closed".
 */
export async function refuseStdio({ message, help }: CommandError, context: Context): Promise<void> {
  const { transport, input } = stdioTransport(process.stdout, (problem) =>
    context.stderr.write(`${problem}\n`),
  );
  const silence = setTimeout(() => process.stdin.destroy(), SILENCE);
  transport.onmessage = (request) => {
    silence.refresh();
    const { id, method } = membersOf(request);
    if (method === undefined || (typeof id !== 'string' && typeof id !== 'number')) return;
    const text = asCalled(help === undefined ? message : `${message}. ${help}`, context);
    const error = { code: SERVER_ERROR, message: text };
    // A client that has gone needs no answer.
    transport.send({ jsonrpc: '2.0', id, error }).catch(() => undefined);
  };
  await transport.start();
  await new Promise<void>((resolve) => pipeline(process.stdin, input, () => resolve()));
  clearTimeout(silence);
  await transport.close();
}
