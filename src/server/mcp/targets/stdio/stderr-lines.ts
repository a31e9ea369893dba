import { StringDecoder } from 'node:string_decoder';
import { LIMITS } from '../../../../core/limits.ts';

/** Called with each line to log. `suppressed`: number of lines omitted before it. */
export type OnLine = (text: string, suppressed: number) => void;

/** Replaces a line over the limit: secrets could not be found in a part of it. */
const TOO_LONG = `(a line over ${LIMITS.childErrorBytes} bytes)`;

/** Lines in an explanation: the last ones, preceded by the first ones that mention an error. */
const LAST_LINES = 3;
const FIRST_ERRORS = 3;
/** Number of recent lines that are searched for errors, and their maximum age in ms. */
const KEPT_LINES = 40;
const KEPT_CHARACTERS = LAST_LINES * LIMITS.childErrorBytes;
const KEPT_FOR = 10_000;
/** Maximum length of one line in an explanation and of the whole, in characters. The end is cut from the left. */
const LINE_CHARACTERS = 200;
const ALL_CHARACTERS = 700;

/** Lines that mention an error: `npm error code E404`, `ModuleNotFoundError: ...`. Programs often print it first. */
const ERROR =
  /\b(?:error|fatal|exception|panic|failed|denied|refused|not found|cannot)\b|[a-z]Error:|\bE[A-Z]{4,}\b/i;

interface Line {
  readonly text: string;
  readonly at: number;
}

/**
 * Splits stderr into lines, removes secrets, keeps the last lines for explanations, and passes at most
 * `LIMITS.childErrorLinesPerSecond` on.
 */
export class StderrLines {
  readonly #clean: (line: string) => string;
  readonly #onLine: OnLine;
  // A character, and with it a secret, may be split between chunks.
  readonly #decoder = new StringDecoder('utf8');
  #rest = '';
  #isTooLong = false;
  #last: Line[] = [];
  #size = 0;
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

  /** Explanation of a failure: the last lines, preceded by the first recent ones that mention an error, without secrets. */
  last(): string {
    const rest = this.#whole(this.#rest);
    const now = performance.now();
    const all = rest === '' ? this.#last : [...this.#last, { text: rest, at: now }];
    const last = all.slice(-LAST_LINES);
    const errors = all
      .slice(0, -LAST_LINES)
      .filter(({ text, at }) => now - at < KEPT_FOR && ERROR.test(text))
      .slice(0, FIRST_ERRORS);
    const shown = (lines: readonly Line[]): string =>
      lines.map(({ text }) => shorten(this.#clean(text), LINE_CHARACTERS)).join(' | ');
    const before = errors.length === 0 ? '' : `${shown(errors)} | `;
    const end = shown(last);
    return before + end.slice(-(ALL_CHARACTERS - before.length));
  }

  /** Keeps whole lines, because secrets are not found in parts of a line. */
  #keep(text: string): void {
    this.#last.push({ text, at: performance.now() });
    this.#size += text.length;
    while (this.#last.length > KEPT_LINES || (this.#size > KEPT_CHARACTERS && this.#last.length > 1))
      this.#size -= this.#last.shift()?.text.length ?? 0;
  }

  #whole(line: string): string {
    return this.#isTooLong || line.length > LIMITS.childErrorBytes ? TOO_LONG : line.trim();
  }

  #pass(line: string): void {
    if (line === '') return;
    this.#keep(line);
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

const shorten = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length - 1)}…`;
