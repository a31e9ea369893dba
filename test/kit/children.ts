import type { ChildProcess } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll } from 'vitest';
import { CHROMIUM } from './chromium.ts';

// A setup file of every test file: what a test started and did not end is ended with the file. A test that runs out of
// time never reaches its `finally`, and neither `await using` nor the exit of a worker ends a server that listens.

const running = new Set<ChildProcess>();

// Node.js publishes every child process here, whoever starts it: the kit, a test, or the gateway under test.
const started = (message: unknown): void => {
  const { process: child } = message as { readonly process: ChildProcess };
  running.add(child);
  const forget = (): void => void running.delete(child);
  child.once('exit', forget).once('error', forget);
};
subscribe('child_process', started);

/** How long a process may take to end by itself, such as a server that has just lost its gateway, in ms. */
const PATIENCE = 1_000;

/** Some tests start commands of a hundred kilobytes. */
const SHOWN_COMMAND = 200;

/**
 * What still runs, without what could not be started (it has no `pid`), and without the browser, which serves all files
 * of its worker. Which program a process runs is known only after its start.
 */
const left = (): ChildProcess[] =>
  [...running].filter(({ pid, spawnfile }) => pid !== undefined && spawnfile !== CHROMIUM);

afterAll(async () => {
  const deadline = performance.now() + PATIENCE;
  while (left().length > 0 && performance.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 10));
  for (const child of left()) {
    const command = child.spawnargs.join(' ').slice(0, SHOWN_COMMAND);
    process.stderr.write(`LEFT RUNNING BY A TEST, ended now: ${command}\n`);
    end(child);
  }
  // The next file of this worker has a listener of its own.
  unsubscribe('child_process', started);
});

/** Ends a process, and those that it started where it leads a group. */
function end(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // It leads no group, or it is gone.
    }
  }
}
