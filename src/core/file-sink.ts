import { closeSync, fstatSync, openSync, readSync, write, writeSync } from 'node:fs';
import process from 'node:process';
import { isatty } from 'node:tty';
import { LIMITS } from './limits.ts';
import type { LineSink, SinkFailure } from './log.ts';

/**
 * A sink on a file descriptor. Node writes to pipes synchronously, so a stuck reader of stdout would block every request.
 * Here one write at a time is under way in Node's thread pool, and lines wait for it in a queue, which drops over
 * `LIMITS.logQueueBytes`. What waits when the process exits is written then.
 */
export function fileSink(fd: number): LineSink {
  /** Asked now: a terminal that was closed is none. */
  const isTerminal = isatty(fd);
  const lost = new LostLines();
  /** Lines that wait for the next write. */
  let batch = endsLine(fd) ? '' : '\n';
  /** Bytes of the write that is under way, or that failed and is repeated. */
  let rest: Buffer = NOTHING;
  let isWriting = false;
  let startedAt = 0;
  /** Nothing is written any more: the reader has left, or the rest was given up. */
  let isOver = false;
  const flushing = new Set<() => void>();
  const endFlushes = (): void => {
    for (const end of flushing) end();
    flushing.clear();
  };
  const giveUp = (): void => {
    isOver = true;
    batch = '';
    rest = NOTHING;
    clearInterval(timer);
    atExit.delete(writeRest);
    endFlushes();
  };
  const writeNext = (): void => {
    if (isWriting || isOver) return;
    if (rest.length === 0) {
      if (batch === '') {
        endFlushes();
        return;
      }
      rest = Buffer.from(batch);
      batch = '';
    }
    isWriting = true;
    startedAt = performance.now();
    write(fd, rest, onWritten);
  };
  const onWritten = (error: NodeJS.ErrnoException | null, bytes: number): void => {
    isWriting = false;
    if (isOver) return;
    if (error === null) {
      lost.problem = undefined;
      rest = rest.subarray(bytes);
      if (rest.length > 0 || batch.length >= LIMITS.logBatchBytes || flushing.size > 0) writeNext();
    } else if (error.code === 'EPIPE' || (error.code === 'EIO' && isTerminal)) {
      // The reader has left, or the terminal was closed: logging ends, the gateway goes on.
      const unwritten = `${rest.toString()}${batch}`;
      giveUp();
      lost.end(isTerminal ? 'the terminal was closed' : 'its reader has left', unwritten);
    } else if (!isBusy(error)) {
      lost.problem = error.message;
      // The timer tries again.
      endFlushes();
    }
  };
  const writeRest = (): void => {
    const waiting = Buffer.from(batch);
    // A write that is under way is finished by its thread.
    writeAtOnce(fd, isWriting ? waiting : Buffer.concat([rest, waiting]));
  };
  const timer = setInterval(writeNext, LIMITS.logBatchTime).unref();
  process.off('exit', writeAtExit).once('exit', writeAtExit);
  atExit.add(writeRest);
  return {
    write(line) {
      if (lost.isEnded) lost.add(line);
      if (isOver) return;
      if (batch.length + rest.length + line.length > LIMITS.logQueueBytes) {
        lost.add(line);
        return;
      }
      batch += line;
      if (batch.length >= LIMITS.logBatchBytes) writeNext();
    },
    get dropped() {
      return lost.count;
    },
    failure: lost,
    onDropped: (listener) => void lost.listeners.push(listener),
    get queued() {
      return batch.length + rest.length;
    },
    get isBlocked() {
      return isWriting && performance.now() - startedAt > LIMITS.logStall;
    },
    discard: giveUp,
    flush: () =>
      new Promise((resolve) => {
        if (isOver) return resolve();
        const waiting = setTimeout(resolve, LIMITS.logFlush);
        flushing.add(() => {
          clearTimeout(waiting);
          resolve();
        });
        writeNext();
      }),
  };
}

/** Lines that are not written, and why. */
class LostLines implements SinkFailure {
  count = 0;
  problem: string | undefined;
  isEnded = false;
  readonly listeners: (() => void)[] = [];

  end(problem: string, unwritten: string): void {
    this.problem = problem;
    this.isEnded = true;
    this.add(unwritten);
  }

  add(lines: string): void {
    this.count += lines.split('\n').length - 1;
    for (const listener of this.listeners) listener();
  }
}

const NOTHING = Buffer.alloc(0);

/** The reader of a pipe that does not block is slow. */
const isBusy = ({ code }: NodeJS.ErrnoException): boolean => code === 'EAGAIN' || code === 'EBUSY';

/** Time between two attempts to write to a slow reader when the process exits, in ms. */
const PAUSE = 10;

/** Writes while the process exits, when nothing can be awaited. Gives up after an error, or `LIMITS.logFlush` with a slow reader. */
function writeAtOnce(fd: number, bytes: Buffer): void {
  const pauses = new Int32Array(new SharedArrayBuffer(4));
  let left = LIMITS.logFlush / PAUSE;
  let rest = bytes;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      if (!(error instanceof Error && isBusy(error)) || left-- <= 0) return;
      Atomics.wait(pauses, 0, 0, PAUSE);
    }
  }
}

/** What the open sinks do at the exit of the process. One listener for all: Node.js warns of more than ten. */
const atExit = new Set<() => void>();

function writeAtExit(): void {
  for (const write of atExit) write();
}

/** Files that were looked at: stdout and stderr may be the same one. */
const looked = new Set<string>();

/** Whether the next line begins a line: a process before may have crashed while it wrote to a file. True if that cannot be read. */
function endsLine(fd: number): boolean {
  try {
    const { dev, ino, size } = fstatSync(fd);
    const id = `${dev}/${ino}`;
    if (size === 0 || looked.has(id)) return true;
    looked.add(id);
    // Another one for reading: the file is open for writing only.
    const reader = openSync(`/dev/fd/${fd}`, 'r');
    const last = Buffer.alloc(1);
    const isRead = readSync(reader, last, 0, 1, size - 1) === 1;
    closeSync(reader);
    return !isRead || last.toString() === '\n';
  } catch {
    return true;
  }
}
