import { Box, type SuspendTerminal, Text, useApp, useInput, useWindowSize } from 'ink';
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { LIMITS } from '../../core/limits.ts';
import type { Span } from '../../core/render/span.ts';
import { detailLines } from './detail.ts';
import type { Row } from './row.ts';
import { screenRows } from './screen.ts';
import type { TraceStore, TraceView } from './trace-store.ts';
import { FIRST_UI, type Key, press, selectedIndex, shownSteps, shownTrace, type Ui } from './ui-state.ts';

interface Props {
  readonly store: TraceStore;
  readonly hasColor: boolean;
  /** Copies a text to the clipboard of the user's terminal. */
  readonly copy: (text: string) => void;
}

/** Result for Ctrl-C: exit code 130, as for a program that the signal ends. */
export const INTERRUPTED = 'interrupted';

/** The trace screen: keys in, rows out. `screen.ts` decides what is displayed, `ui-state.ts` what keys do. */
export function TraceApp({ store, hasColor, copy }: Props): ReactNode {
  const view = useSyncExternalStore(store.subscribe, store.view);
  const [ui, setUi] = useState<Ui>(FIRST_UI);
  const now = useClock(view.phase === 'waiting');
  const { exit } = useApp();
  const { columns, rows } = useWindowSize();
  // A pseudo-terminal without a size reports 0.
  const size = { columns: columns || 80, rows: rows || 24 };
  const suspend = useSuspend();
  useInput((input, key) => {
    if (key.ctrl && input === 'c') {
      exit(INTERRUPTED);
      return;
    }
    if (key.ctrl && input === 'z') {
      suspend();
      return;
    }
    for (const one of keysOf(input, key)) handle(one);
  });
  // Several keys may arrive before the next drawing: each applies to the latest state, not to the displayed one.
  const latest = useRef(ui);
  const handle = (one: Key): void => {
    const before = latest.current;
    const pressed = press(before, one, view, Math.max(1, Math.floor(size.rows / 2) - 4));
    latest.current = pressed.ui;
    setUi(pressed.ui);
    if (view.note !== '') store.note('');
    if (pressed.action === 'quit') exit();
    else if (pressed.action === 'next') void store.next();
    else if (pressed.action === 'save') void store.save();
    else if (pressed.action === 'copy') copyDetail(before, view, copy);
  };
  const silent = view.phase === 'waiting' && now - view.heardAt > LIMITS.traceKeepaliveTimeout;
  const shown =
    silent && view.note === ''
      ? { ...view, note: `no data from the gateway for ${Math.floor((now - view.heardAt) / 1000)} s` }
      : view;
  return (
    <Box flexDirection="column" width={size.columns} height={Math.max(1, size.rows - 1)}>
      {screenRows(shown, ui, size, now).map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row of the screen is identified by its position.
        <Line key={index} row={row} hasColor={hasColor} />
      ))}
    </Box>
  );
}

function copyDetail(ui: Ui, view: TraceView, copy: Props['copy']): void {
  const trace = shownTrace(ui, view);
  if (trace === undefined) return;
  const steps = shownSteps(ui, trace);
  const step = steps[selectedIndex(ui, steps, view.phase === 'done' || view.phase === 'lost')];
  copy(
    detailLines(trace, step, ui.view, ui.isYaml)
      .map(({ text }) => text)
      .join('\n'),
  );
}

/** The keys of one read: fast typing or pasting arrives in one piece, with its line breaks. */
function keysOf(input: string, key: InkKey): Key[] {
  const name = nameOf(key);
  if (name !== undefined || input.length < 2 || key.ctrl) return [{ input: key.ctrl ? '' : input, name }];
  return [...input].map((character) =>
    character === '\r' || character === '\n'
      ? { input: '', name: 'enter' }
      : { input: character, name: undefined },
  );
}

function Line({ row, hasColor }: { readonly row: Row; readonly hasColor: boolean }): ReactNode {
  return (
    <Text wrap="truncate">
      {row.length === 0
        ? ' '
        : row.map((span, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a span of a row is identified by its position.
            <Text key={index} {...styleOf(span, hasColor)}>
              {span.text}
            </Text>
          ))}
    </Text>
  );
}

function styleOf(
  { tone, isBold, isSelected }: Span,
  hasColor: boolean,
): { color?: string; bold?: boolean; inverse?: boolean } {
  // Without color, the symbols carry the meaning: a selected step has an arrow, a failed one a cross.
  if (!hasColor) return {};
  return {
    ...(tone === undefined ? {} : { color: tone }),
    ...(isBold ? { bold: true } : {}),
    ...(isSelected ? { inverse: true } : {}),
  };
}

/** The current time in ms, updated every second while it is displayed. */
function useClock(isRunning: boolean): number {
  const [now, setNow] = useState(() => performance.now());
  useEffect(() => {
    if (!isRunning) return;
    setNow(performance.now());
    const timer = setInterval(() => setNow(performance.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}

type InkKey = Parameters<Parameters<typeof useInput>[0]>[1];

function nameOf(key: InkKey): Key['name'] {
  if (key.upArrow) return 'up';
  if (key.downArrow) return 'down';
  if (key.pageUp) return 'pageUp';
  if (key.pageDown) return 'pageDown';
  if (key.home) return 'home';
  if (key.end) return 'end';
  if (key.tab) return 'tab';
  if (key.return) return 'enter';
  if (key.escape) return 'escape';
  return key.backspace || key.delete ? 'backspace' : undefined;
}

/**
 * Handles Ctrl-Z, which a terminal in raw mode does not: restores the terminal, stops the process, and redraws
 * everything when the shell resumes it. Also handles SIGTSTP from elsewhere, and SIGCONT after SIGSTOP. Returns the
 * handler for the key.
 */
function useSuspend(): () => void {
  const { suspendTerminal } = useApp();
  const [{ stop, redraw }] = useState(() => new Suspension(suspendTerminal));
  useEffect(() => {
    process.on('SIGTSTP', stop);
    process.on('SIGCONT', redraw);
    return () => {
      process.off('SIGTSTP', stop);
      process.off('SIGCONT', redraw);
    };
  }, [stop, redraw]);
  return stop;
}

/**
 * Time within which the process is stopped. Timers do not run while it is stopped, so this expires right after it
 * resumes.
 */
const STOP_DELAY = 100;

class Suspension {
  readonly #suspendTerminal: SuspendTerminal;
  #isSuspended = false;

  constructor(suspendTerminal: SuspendTerminal) {
    this.#suspendTerminal = suspendTerminal;
  }

  /** Stops the whole job, as the terminal does. Resumes immediately if no shell could resume it. */
  readonly stop = (): void => {
    this.#while(async () => {
      // Without a handler, the signal stops the process.
      process.off('SIGTSTP', this.stop);
      process.kill(0, 'SIGTSTP');
      await new Promise((resolve) => setTimeout(resolve, STOP_DELAY));
      process.on('SIGTSTP', this.stop);
    });
  };

  readonly redraw = (): void => this.#while(() => Promise.resolve());

  #while(act: () => Promise<void>): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#suspendTerminal(act)
      // A closed terminal cannot be restored; the screen then ends by other means.
      .catch(() => undefined)
      .finally(() => {
        this.#isSuspended = false;
      });
  }
}
