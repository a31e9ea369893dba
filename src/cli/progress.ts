import { LIMITS } from '../core/limits.ts';
import { escapeControls } from '../core/log.ts';
import type { Context } from './context.ts';

const CLEAR_LINE = '\r\u001b[K';

/**
 * Says on stderr what a command waits for. At a terminal that is one line, drawn again with every change; elsewhere it is
 * a line at first and then one every few seconds.
 */
export class Progress {
  readonly #stderr: Context['stderr'];
  readonly #isTerminal: boolean;
  #isShown = false;
  #printedAt = Number.NEGATIVE_INFINITY;

  constructor({ stderr, env }: Pick<Context, 'stderr' | 'env'>) {
    this.#stderr = stderr;
    this.#isTerminal = stderr.isTTY === true && env['TERM'] !== 'dumb';
  }

  get isTerminal(): boolean {
    return this.#isTerminal;
  }

  /** Shows the text in place of the one before. */
  show(text: string): void {
    const safe = escapeControls(text);
    if (this.#isTerminal) {
      // A line that wraps could not be drawn over.
      this.#stderr.write(CLEAR_LINE + safe.slice(0, (this.#stderr.columns || 80) - 1));
      this.#isShown = true;
      return;
    }
    const now = performance.now();
    if (now - this.#printedAt < LIMITS.progressLine) return;
    this.#printedAt = now;
    this.#stderr.write(`${safe}\n`);
  }

  /** Removes the line, so that something else can be printed. */
  clear(): void {
    if (this.#isShown) this.#stderr.write(CLEAR_LINE);
    this.#isShown = false;
  }
}
