import type { BatchSum } from './batch-sum.ts';
import { resultIn } from './read-batch.ts';

const NEWLINE = 0x0a;

/** Adds the usage in the results of a batch while they pass. Keeps the line that has not ended, up to a limit. */
export class ResultsMeter {
  readonly #sum: BatchSum;
  readonly #maxLine: number;
  #line: Buffer[] = [];
  #size = 0;
  /** Whether it is known to be results; false: another file. */
  #isResults: boolean | undefined;
  /** Lines of which nothing is counted: too long, or no result of a request. */
  unread = 0;

  /** `isResults`: false if the file may be any other. */
  constructor(sum: BatchSum, maxLine: number, isResults: boolean) {
    this.#sum = sum;
    this.#maxLine = maxLine;
    this.#isResults = isResults || undefined;
  }

  get isOtherFile(): boolean {
    return this.#isResults !== true;
  }

  see(chunk: Buffer): void {
    let start = 0;
    while (this.#isResults !== false) {
      const end = chunk.indexOf(NEWLINE, start);
      this.#keep(end === -1 ? chunk.subarray(start) : chunk.subarray(start, end));
      if (end === -1) return;
      this.#endLine();
      start = end + 1;
    }
  }

  /** The last line may have no end. */
  ended(): void {
    if (this.#isResults !== false) this.#endLine();
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#maxLine) this.#line = [];
    else if (part.length > 0) this.#line.push(part);
  }

  #endLine(): void {
    const isTooLong = this.#size > this.#maxLine;
    const text = Buffer.concat(this.#line).toString('utf8').trim();
    this.#line = [];
    this.#size = 0;
    if (isTooLong) this.unread += 1;
    else if (text !== '') this.#read(text);
  }

  #read(text: string): void {
    const result = resultIn(text);
    // The first line tells what the file is.
    this.#isResults ??= result !== undefined;
    if (result === undefined) this.unread += 1;
    else if (result.used !== undefined) this.#sum.add(result.used, { requests: 1 });
  }
}
