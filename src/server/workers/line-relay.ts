import type { Readable } from 'node:stream';
import { LIMITS } from '../../core/limits.ts';
import type { LineSink } from '../../core/log.ts';

const NEWLINE = 0x0a;

/** Copies the output of a worker to a log, in whole lines: those of several workers do not mix. */
export class LineRelay {
  readonly #sink: LineSink;
  /** The beginning of a line. */
  #rest: Buffer[] = [];
  #length = 0;

  constructor(output: Readable | null, sink: LineSink) {
    this.#sink = sink;
    output?.on('data', (chunk: Buffer) => this.#add(chunk));
  }

  #add(chunk: Buffer): void {
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      this.#sink.write(Buffer.concat([...this.#rest, chunk.subarray(0, end)]).toString());
      this.#rest = [];
      this.#length = 0;
    }
    if (end === chunk.length) return;
    this.#rest.push(chunk.subarray(end));
    this.#length += chunk.length - end;
    if (this.#length > LIMITS.workerLogLine) this.end();
  }

  /** Writes the rest as a line: the worker has ended in the middle of it, or the line is too long. */
  end(): void {
    if (this.#rest.length === 0) return;
    this.#sink.write(`${Buffer.concat(this.#rest).toString()}\n`);
    this.#rest = [];
    this.#length = 0;
  }
}
