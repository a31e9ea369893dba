import { writeSync } from 'node:fs';
import { render } from 'ink';
import { createElement } from 'react';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import { type Context, wantsColor } from '../context.ts';
import type { TracePlan } from '../proxy/trace-options.ts';
import { endText } from '../proxy/trace-text.ts';
import { INTERRUPTED, TraceApp } from './trace-app.tsx';
import { TraceStore } from './trace-store.ts';

/** Leaves the alternate screen, shows the cursor and resets the style, whatever happened before. */
const RESTORE = '\u001b[?1049l\u001b[?25h\u001b[0m';
const SIGNALS = { SIGTERM: 143, SIGHUP: 129, SIGINT: EXIT_CODES.interrupted.code } as const;

/**
 * Displays traces on the terminal until the user leaves; resolves to the exit code. Restores the terminal on every way
 * out: a key, a signal, an internal error.
 *
 * @throws CommandError if nothing could be displayed at all: no gateway, or a file that is not a trace
 */
export async function showTrace(
  plan: TracePlan,
  context: Context & { readonly color: string },
): Promise<number> {
  const { stdout } = context;
  const store = new TraceStore(plan, context.cwd);
  await store.load();
  const first = store.next();
  // A missing gateway is reported in a line, not on a screen.
  await started(store, first);
  if (store.firstFailure !== undefined) throw store.firstFailure;
  const guard = new TerminalGuard();
  const app = render(
    createElement(TraceApp, {
      store,
      hasColor: wantsColor(stdout, context.color, context.env),
      copy: (text) => copy(text, store, stdout),
    }),
    {
      exitOnCtrlC: false,
      alternateScreen: true,
      interactive: true,
      patchConsole: false,
      incrementalRendering: true,
      maxFps: 20,
    },
  );
  guard.onEnd((code) => {
    endCode = code;
    app.unmount();
  });
  let endCode: number | undefined;
  try {
    const ended: unknown = await app.waitUntilExit();
    if (ended === INTERRUPTED) endCode = EXIT_CODES.interrupted.code;
  } finally {
    store.stop();
    guard.release();
  }
  if (guard.failure !== undefined) throw guard.failure;
  const { traces } = store.view();
  const last = traces.at(-1);
  if (last !== undefined) stdout.write(endText(last));
  if (endCode !== undefined) return endCode;
  return store.failed ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
}

/** Resolves when there is something to display, or when it is certain that there will be nothing. */
function started(store: TraceStore, first: Promise<void>): Promise<unknown> {
  const changed = new Promise<void>((resolve) => {
    const stop = store.subscribe(() => {
      if (store.view().phase === 'connecting') return;
      stop();
      resolve();
    });
  });
  return Promise.race([changed, first]);
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

/** OSC 52 reaches the user's clipboard through SSH and tmux; the text is base64, so it cannot contain commands. */
function copy(text: string, store: TraceStore, stdout: Context['stdout']): void {
  if (text.length > CLIPBOARD) {
    store.note('too long for the clipboard; press w to save the trace');
    return;
  }
  stdout.write(`\u001b]52;c;${Buffer.from(text).toString('base64')}\u0007`);
  store.note('copied, if the terminal supports it');
}
