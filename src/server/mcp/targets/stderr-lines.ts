import { StringDecoder } from 'node:string_decoder';
import { LIMITS } from '../../../core/limits.ts';

/** Called with each line that may be logged; `suppressed` lines were left out before it. */
export type OnLine = (text: string, suppressed: number) => void;

/** In place of a line that was too long to be kept whole: secrets are not found in the rest of a line. */
const TOO_LONG = `(a line over ${LIMITS.childErrorBytes} bytes)`;

/** How many lines an explanation has, and how many characters. */
const LAST_LINES = 3;
const LAST_CHARACTERS = 500;

/** Splits stderr into lines, takes the secrets out, keeps the last lines, and passes on so many a second. */
export class StderrLines {
  readonly #clean: (line: string) => string;
  readonly #onLine: OnLine;
  // A character may come in two pieces, and with it a secret.
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  #isTooLong = false;
  #last: string[] = [];
  #second = 0;
  #inSecond = 0;
  #suppressed = 0;

  constructor(clean: (line: string) => string, onLine: OnLine) {
    this.#clean = clean;
    this.#onLine = onLine;
  }

  push(chunk: Buffer): void {
    const lines = (this.#rest + this.#decoder.write(chunk)).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      this.#pass(this.#whole(line));
      this.#isTooLong = false;
    }
    if (this.#rest.length <= LIMITS.childErrorBytes) return;
    this.#rest = '';
    this.#isTooLong = true;
  }

  /** The last three lines, without secrets, for an explanation. */
  last(): string {
    const all = [...this.#last, this.#whole(this.#rest)].filter((line) => line !== '');
    return all
      .slice(-LAST_LINES)
      .map((line) => this.#clean(line))
      .join(' | ')
      .slice(-LAST_CHARACTERS);
  }

  #whole(line: string): string {
    return this.#isTooLong || line.length > LIMITS.childErrorBytes ? TOO_LONG : line.trim();
  }

  #pass(line: string): void {
    if (line === '') return;
    this.#last.push(line);
    if (this.#last.length > LAST_LINES) this.#last.shift();
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    this.#inSecond += 1;
    if (this.#inSecond > LIMITS.childErrorLinesPerSecond) {
      this.#suppressed += 1;
      return;
    }
    this.#onLine(this.#clean(line), this.#suppressed);
    this.#suppressed = 0;
  }
}
