import process from 'node:process';
import type { LineSink } from '../core/log.ts';

/**
 * Ends the process at once. While a reader of stdout or stderr takes nothing, `process.exit` does not return: the log
 * writer and Node.js both wait for the write that is blocked. What waits is then given up, and the signal itself ends the
 * process, after what is to run at an exit.
 */
export function endProcess(code: number, signal: NodeJS.Signals, sinks: readonly LineSink[]): void {
  const blocked = sinks.filter(({ isBlocked }) => isBlocked === true);
  if (blocked.length === 0) process.exit(code);
  for (const sink of blocked) sink.discard?.();
  process.emit('exit', code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}
