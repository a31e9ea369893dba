import type { FastifyInstance } from 'fastify';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { errorCode } from '../../core/foreign.ts';
import { LIMITS } from '../../core/limits.ts';
import { tcpAddress } from '../../core/listening-server.ts';
import type { Log } from '../../core/log.ts';
import type { Context } from '../context.ts';

/**
 * Starts listening, and returns the origin under which this machine reaches the service.
 *
 * @param setBy What sets the port, for the message that it is in use.
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
    if (errorCode(error) === 'EADDRINUSE') {
      throw new CommandError(
        'not_ok',
        `port ${port} is already in use`,
        `stop the other process, or choose another port with ${setBy}`,
      );
    }
    throw new CommandError('not_ok', `cannot listen on ${host}:${port}: ${messageOf(error)}`);
  }
  const { port: actual } = tcpAddress(app.server);
  const named = ['0.0.0.0', '::', ''].includes(host) ? '127.0.0.1' : host;
  return `http://${named.includes(':') ? `[${named}]` : named}:${actual}`;
}

/** Waits until open requests finish, for at most `LIMITS.drain`, then closes their connections. */
export async function drain(app: FastifyInstance): Promise<void> {
  const cut = setTimeout(() => app.server.closeAllConnections(), LIMITS.drain);
  await app.close();
  clearTimeout(cut);
}

/**
 * Resolves when `close` has completed after the first signal; a second signal ends the process immediately. An uncaught
 * error is a bug: it is logged, and the service stops rather than continue in an unknown state.
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
      stderr.write(`${signal}: finishing open requests; a second signal stops now\n`);
      stop(EXIT_CODES.ok.code);
    };
    process.on('uncaughtException', onBug);
    process.on('unhandledRejection', onBug);
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
