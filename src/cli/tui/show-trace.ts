import { createElement } from 'react';
import { EXIT_CODES } from '../../core/exit-codes.ts';
import { type Context, wantsColor } from '../context.ts';
import type { TracePlan } from '../proxy/trace-options.ts';
import { endText } from '../proxy/trace-text.ts';
import { copyText, showScreen } from './terminal-screen.ts';
import { TraceApp } from './trace-app.tsx';
import { TraceStore } from './trace-store.ts';

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
  const endCode = await showScreen(
    createElement(TraceApp, {
      store,
      hasColor: wantsColor(stdout, context.color, context.env),
      copy: (text) => store.note(copyText(text, stdout)),
    }),
    () => store.stop(),
  );
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
