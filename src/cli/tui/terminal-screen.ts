import { writeSync } from 'node:fs';
import { render } from 'ink';
import type { ReactNode } from 'react';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import type { Context } from '../context.ts';
import { rawOutput } from '../safe-output.ts';

/** Result of a screen for Ctrl-C: exit code 130, as for a program that the signal ends. */
export const INTERRUPTED = 'interrupted';

/** Leaves the alternate screen, shows the cursor and resets the style, whatever happened before. */
const RESTORE = '\u001b[?1049l\u001b[?25h\u001b[0m';
const SIGNALS = { SIGTERM: 143, SIGHUP: 129, SIGINT: EXIT_CODES.interrupted.code } as const;

/**
 * Shows a screen until it ends. Restores the terminal on every way out: a key, a signal, an internal error. Returns the
 * exit code of a signal or Ctrl-C; undefined if the user has left. `stop` is called at the end.
 */
export async function showScreen(node: ReactNode, stop: () => void): Promise<number | undefined> {
  const guard = new TerminalGuard();
  const app = render(node, {
    exitOnCtrlC: false,
    alternateScreen: true,
    interactive: true,
    patchConsole: false,
    incrementalRendering: true,
    maxFps: 20,
  });
  let endCode: number | undefined;
  guard.onEnd((code) => {
    endCode = code;
    app.unmount();
  });
  try {
    const ended: unknown = await app.waitUntilExit();
    if (ended === INTERRUPTED) endCode = EXIT_CODES.interrupted.code;
  } finally {
    stop();
    guard.release();
  }
  if (guard.failure !== undefined) throw guard.failure;
  return endCode;
}

/** Restores the terminal if the process ends without the screen's knowledge. */
class TerminalGuard {
  failure: unknown;
  #end: (code: number | undefined) => void = () => undefined;
  readonly #handlers = Object.entries(SIGNALS).map(([name, code]) => ({
    name,
    handle: () => this.#end(code),
  }));
  readonly #crash = (error: unknown): void => {
    this.failure ??= error;
    this.#end(undefined);
  };
  readonly #restore = (): void => {
    try {
      writeSync(1, RESTORE);
    } catch {
      // The terminal has been closed.
    }
  };

  constructor() {
    for (const { name, handle } of this.#handlers) process.on(name, handle);
    process.on('uncaughtException', this.#crash);
    process.on('exit', this.#restore);
  }

  onEnd(end: (code: number | undefined) => void): void {
    this.#end = end;
  }

  release(): void {
    for (const { name, handle } of this.#handlers) process.off(name, handle);
    process.off('uncaughtException', this.#crash);
    process.off('exit', this.#restore);
  }
}

/** Longest text that terminals accept over OSC 52. */
const CLIPBOARD = 74_000;

/** OSC 52 reaches the user's clipboard through SSH and tmux; the text is base64, so it cannot contain commands. Returns a note for the user. */
export function copyText(text: string, stdout: Context['stdout']): string {
  if (text.length > CLIPBOARD) {
    return 'too long for the clipboard';
  }
  rawOutput(stdout).write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`);
  return 'copied, if the terminal supports it';
}
