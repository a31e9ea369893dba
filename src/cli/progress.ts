import { LIMITS } from '../core/limits.ts';
import { escapeControls } from '../core/log.ts';
import type { Context } from './context.ts';
import { rawOutput } from './safe-output.ts';

const CLEAR_LINE = '\r\u001b[K';

/**
 * Reports on stderr what a command is waiting for. On a terminal this is one line, redrawn with every change;
 * elsewhere, one line at first and another every few seconds.
 */
export class Progress {
  readonly #stderr: Context['stderr'];
  readonly #isTerminal: boolean;
  #isShown = false;
  #printedAt = Number.NEGATIVE_INFINITY;

  constructor({ stderr, env }: Pick<Context, 'stderr' | 'env'>) {
    this.#stderr = rawOutput(stderr);
    this.#isTerminal = stderr.isTTY === true && env['TERM'] !== 'dumb';
  }

  get isTerminal(): boolean {
    return this.#isTerminal;
  }

  /** Replaces the displayed text. */
  show(text: string): void {
    const safe = escapeControls(text);
    if (this.#isTerminal) {
      // A wrapped line could not be redrawn.
      this.#stderr.write(CLEAR_LINE + safe.slice(0, (this.#stderr.columns || 80) - 1));
      this.#isShown = true;
      return;
    }
    const now = performance.now();
    if (now - this.#printedAt < LIMITS.progressIntervalLog) return;
    this.#printedAt = now;
    this.#stderr.write(`${safe}\n`);
  }

  /** Removes the line before other output is printed. */
  clear(): void {
    if (this.#isShown) this.#stderr.write(CLEAR_LINE);
    this.#isShown = false;
  }
}
