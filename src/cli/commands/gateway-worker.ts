import process from 'node:process';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { isFailureOfForeignCode } from '../../server/kernel/foreign-code.ts';
import { Worker } from '../../server/workers/worker.ts';
import type { Run } from '../context.ts';
import { collectWhileIdle } from '../idle-collection.ts';
import { boundNewSpace } from '../new-space.ts';
import { endProcess } from '../signals.ts';

/** Runs a worker of a gateway until the process that started it says otherwise, or ends. */
export const run: Run<object> = async (_options, { env }) => {
  if (process.send === undefined)
    throw new CommandError('usage', 'a gateway starts this command itself', 'set config.workers');
  const worker = new Worker(process);
  let code: number = EXIT_CODES.ok.code;
  const onBug = (error: unknown): void => {
    if (isFailureOfForeignCode(error)) return;
    code = EXIT_CODES.bug.code;
    worker.failed(error);
  };
  process.on('uncaughtException', onBug);
  process.on('unhandledRejection', onBug);
  // Sent to the whole process group by a terminal or a supervisor: the process that started this one decides.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.once('disconnect', () => void worker.primaryEnded());
  const stops = [collectWhileIdle(), boundNewSpace(env)];
  await worker.ended;
  for (const stop of stops) stop();
  await Promise.all(worker.sinks.map((sink) => sink.flush()));
  if (process.connected) process.disconnect?.();
  setTimeout(() => endProcess(code, 'SIGTERM', worker.sinks), LIMITS.exitGrace).unref();
  return code;
};
