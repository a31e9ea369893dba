import type { AddressInfo } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Context } from '../context.ts';

/**
 * Listens, and returns the origin that it can be reached under from this machine.
 *
 * @param setBy What sets the port, for who is told that it is in use.
 */
export async function listen(
  app: FastifyInstance,
  host: string,
  port: number,
  setBy = '--port or PORT',
): Promise<string> {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') {
      throw new CommandError(
        'not_ok',
        `port ${port} is already in use`,
        `stop the other process, or take another port with ${setBy}`,
      );
    }
    throw new CommandError('not_ok', `cannot listen on ${host}:${port}: ${message}`);
  }
  const { port: actual } = app.server.address() as AddressInfo;
  const named = ['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host;
  return `http://${named.includes(':') ? `[${named}]` : named}:${actual}`;
}

/** Lets open requests finish, for as long as `LIMITS.drain`, then cuts them. */
export async function drain(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), LIMITS.drain);
  await app.close();
  clearTimeout(cut);
}

/**
 * Resolves once `close` is done, after the first signal; a second one ends the process at once. An error that nobody
 * caught is a bug of ours: it is logged, and the service stops rather than go on in an unknown state.
 */
export function untilStopped(close: () => Promise<void>, log: Log, { stderr }: Context): Promise<number> {
  return new Promise((done) => {
    let stopping = false;
    const stop = (code: number): void => {
      stopping = true;
      void close().then(
        () => done(code),
        (error: unknown) => {
          log.error('memory', 'could not stop cleanly', { problem: String(error) });
          done(EXIT_CODES.bug.code);
        },
      );
    };
    const onBug = (error: unknown): void => {
      log.error('memory', 'internal error, stopping', {
        problem: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      if (!stopping) stop(EXIT_CODES.bug.code);
    };
    const onSignal = (signal: NodeJS.Signals): void => {
      if (stopping) {
        process.exit(signal === 'SIGINT' ? EXIT_CODES.interrupted.code : EXIT_CODES.not_ok.code);
      }
      stderr.write(`${signal}: finishing open requests; again stops now\n`);
      stop(EXIT_CODES.ok.code);
    };
    process.on('uncaughtException', onBug);
    process.on('unhandledRejection', onBug);
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
