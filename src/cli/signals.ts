import { closeSync, openSync } from 'node:fs';
import process from 'node:process';
import { EXIT_CODES } from '../core/exit-codes.ts';
import type { LineSink, Log } from '../core/log.ts';
import { isFailureOfForeignCode } from '../server/kernel/foreign-code.ts';
import type { Context } from './context.ts';

/** What a shutdown of the gateway needs. */
export interface ShutdownOptions {
  readonly log: Log;
  readonly sinks: readonly LineSink[];
  /** Stops accepting requests and resolves when open requests have finished. Called once. */
  drain(): Promise<void>;
  /** Called for the signal that starts the shutdown. */
  announce(signal: NodeJS.Signals): void;
}

export interface Shutdown {
  /** The exit code, once the gateway has drained. */
  readonly stopped: Promise<number>;
  /** Starts the shutdown; resolves when the gateway has drained. */
  stop(): Promise<void>;
}

/**
 * Shuts the gateway down after the first SIGTERM or SIGINT, or on request; a second signal ends the process immediately.
 * An uncaught error is a bug: it is logged once, and the gateway drains rather than continue in an unknown state.
 */
export function shutdownOnSignals({ log, sinks, drain, announce }: ShutdownOptions): Shutdown {
  const { promise: stopped, resolve: done } = Promise.withResolvers<number>();
  let draining: Promise<void> | undefined;
  const stop = (code: number): Promise<void> => {
    draining ??= drain().then(() => done(code));
    return draining;
  };
  const onBug = (error: unknown): void => {
    if (isFailureOfForeignCode(error)) return;
    log.error('agctl', 'internal error, stopping', {
      problem: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    void stop(EXIT_CODES.bug.code);
  };
  process.on('uncaughtException', onBug);
  process.on('unhandledRejection', onBug);
  const onSignal = (signal: NodeJS.Signals): void => {
    if (draining !== undefined) {
      // The exit handler of their supervisor kills the child processes.
      const { interrupted, not_ok } = EXIT_CODES;
      endProcess(signal === 'SIGINT' ? interrupted.code : not_ok.code, signal, sinks);
      return;
    }
    announce(signal);
    void stop(EXIT_CODES.ok.code);
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  return { stopped, stop: () => stop(EXIT_CODES.ok.code) };
}

/**
 * SIGHUP reloads the configuration, as is usual for servers. A terminal that closes also sends it to every process started
 * in it; in that case the gateway stops.
 */
export function onSighup({ stderr }: Context, actions: { reload(): void; stop(): void }): void {
  const hasTerminal = stderr.isTTY === true;
  process.on('SIGHUP', () => {
    if (hasTerminal && !isTerminalOpen()) actions.stop();
    else actions.reload();
  });
}

function isTerminalOpen(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/**
 * Ends the process immediately. `process.exit` does not return while a write to a blocked stdout or stderr is pending,
 * because the log writer and Node.js both wait for it. In that case the pending lines are discarded, the exit handlers run,
 * and the signal itself ends the process.
 */
export function endProcess(code: number, signal: NodeJS.Signals, sinks: readonly LineSink[]): void {
  const blocked = sinks.filter(({ isBlocked }) => isBlocked === true);
  if (blocked.length === 0) process.exit(code);
  for (const sink of blocked) sink.discard?.();
  process.emit('exit', code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
