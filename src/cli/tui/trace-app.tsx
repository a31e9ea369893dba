import { useApp } from 'ink';
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { LIMITS } from '../../core/limits.ts';
import { detailLines } from './detail.ts';
import type { Key } from './keys.ts';
import { Rows } from './rows.tsx';
import { screenRows } from './screen.ts';
import { useScreenInput } from './screen-input.ts';
import type { TraceStore, TraceView } from './trace-store.ts';
import { FIRST_UI, press, selectedIndex, shownSteps, shownTrace, type Ui } from './ui-state.ts';

interface Props {
  readonly store: TraceStore;
  readonly hasColor: boolean;
  /** Copies a text to the clipboard of the user's terminal. */
  readonly copy: (text: string) => void;
  /** Called to leave the screen. Default: ends the program. */
  readonly leave?: () => void;
}

/** The trace screen: keys in, rows out. `screen.ts` decides what is displayed, `ui-state.ts` what keys do. */
export function TraceApp({ store, hasColor, copy, leave }: Props): ReactNode {
  const view = useSyncExternalStore(store.subscribe, store.view);
  const [ui, setUi] = useState<Ui>(FIRST_UI);
  const now = useClock(view.phase === 'waiting');
  const { exit } = useApp();
  // Several keys may arrive before the next drawing: each applies to the latest state, not to the displayed one.
  const latest = useRef(ui);
  const handle = (one: Key): void => {
    const before = latest.current;
    const pressed = press(before, one, view, Math.max(1, Math.floor(size.rows / 2) - 4));
    latest.current = pressed.ui;
    setUi(pressed.ui);
    if (view.note !== '') store.note('');
    if (pressed.action === 'quit') (leave ?? exit)();
    else if (pressed.action === 'next') void store.next();
    else if (pressed.action === 'save') void store.save();
    else if (pressed.action === 'copy') copyDetail(before, view, copy);
  };
  const size = useScreenInput(handle);
  const silent = view.phase === 'waiting' && now - view.heardAt > LIMITS.traceKeepaliveTimeout;
  const shown =
    silent && view.note === ''
      ? { ...view, note: `no data from the gateway for ${Math.floor((now - view.heardAt) / 1000)} s` }
      : view;
  return <Rows rows={screenRows(shown, ui, size, now)} size={size} hasColor={hasColor} />;
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
