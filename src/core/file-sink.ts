import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import process from 'node:process';
import sonicBoom from 'sonic-boom';
import { LIMITS } from './limits.ts';
import type { LineSink } from './log.ts';

/**
 * A sink on a file descriptor. Node writes pipes synchronously, so a stuck reader of stdout would block every
 * request; sonic-boom, pino's writer, keeps its own queue instead, which drops over `LIMITS.logQueueBytes`. What waits
 * when the process exits is written then.
 */
export function fileSink(fd: number): LineSink {
  // With a `minLength` of 0 it takes `flush` to be done at once, while a write is still under way.
  const writer = new sonicBoom.SonicBoom({ fd, sync: false, minLength: 1, maxLength: LIMITS.logQueueBytes });
  let dropped = 0;
  const listeners: (() => void)[] = [];
  // Lines are batched here, because the writer sums up the length of its whole queue on every write.
  let batch = endsLine(fd) ? '' : '\n';
  /** Bytes that the writer holds: it has no public count of them. */
  let held = 0;
  /** Nothing is written any more: the reader has left, or the rest was given up. */
  let isOver = false;
  /** The last write failed, and the next one tries again. */
  let hasFailed = false;
  let progressAt = 0;
  const writeBatch = (): void => {
    if (batch === '' || isOver) return;
    // Otherwise a write is under way, and this one waits for it.
    if (held === 0 || hasFailed) progressAt = performance.now();
    hasFailed = false;
    held += Buffer.byteLength(batch);
    const lines = batch;
    batch = '';
    writer.write(lines);
  };
  const giveUp = (): void => {
    isOver = true;
    batch = '';
    held = 0;
    clearInterval(timer);
    atExit.delete(writeRest);
  };
  const writeRest = (): void => {
    try {
      writeBatch();
      writer.flushSync();
    } catch {
      // The reader has left.
    }
  };
  const timer = setInterval(writeBatch, LIMITS.logBatchTime).unref();
  process.off('exit', writeAtExit).once('exit', writeAtExit);
  atExit.add(writeRest);
  writer.on('write', (bytes: number) => {
    progressAt = performance.now();
    held = Math.max(0, held - bytes);
  });
  writer.on('drop', (lines: string) => {
    held -= Buffer.byteLength(lines);
    dropped += lines.split('\n').length - 1;
    for (const listener of listeners) listener();
  });
  writer.on('error', (error: NodeJS.ErrnoException) => {
    hasFailed = true;
    // The reader of a pipe has left: logging ends, the gateway goes on.
    if (error.code === 'EPIPE') giveUp();
  });
  return {
    write(line) {
      if (isOver) return;
      batch += line;
      if (batch.length >= LIMITS.logBatchBytes) writeBatch();
    },
    get dropped() {
      return dropped;
    },
    onDropped: (listener) => void listeners.push(listener),
    get queued() {
      return batch.length + held;
    },
    get isBlocked() {
      return held > 0 && !hasFailed && performance.now() - progressAt > LIMITS.logStall;
    },
    discard() {
      giveUp();
      writer.destroy();
    },
    flush: () =>
      new Promise((resolve) => {
        if (isOver) return resolve();
        writeBatch();
        const waiting = setTimeout(resolve, LIMITS.logFlush);
        writer.flush(() => {
          clearTimeout(waiting);
          resolve();
        });
      }),
  };
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
