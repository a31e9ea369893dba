import { useEffect, useRef, useSyncExternalStore } from 'react';

/** The effect of a key on the current page. */
export interface Shortcut {
  /** A value of `KeyboardEvent.key`, or two separated by a space: pressed one after the other. Space is `Space`. */
  readonly keys: string;
  /** Description for the list of shortcuts. */
  readonly what: string;
  readonly run: () => void;
}

/** Maximum time between the two keys of a sequence, in ms. */
const SEQUENCE = 1_500;
const SETTING = 'agctl-shortcuts';
const NO_SHORTCUTS: readonly Shortcut[] = [];

type Holder = { current: readonly Shortcut[] };
const holders = new Set<Holder>();
const listeners = new Set<() => void>();
let shown: readonly Shortcut[] = NO_SHORTCUTS;
let pending = '';
let pendingSince = 0;

/** Activates keys while the component is on the page. They are ignored in inputs and with Ctrl, Alt or Meta. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const holder = useRef(shortcuts);
  const names = shortcuts.map(({ keys }) => keys).join(',');
  useEffect(() => {
    holder.current = shortcuts;
  });
  useEffect(() => {
    if (holders.size === 0) document.addEventListener('keydown', onKey);
    holders.add(holder);
    return () => {
      holders.delete(holder);
      if (holders.size === 0) document.removeEventListener('keydown', onKey);
      changed();
    };
  }, []);
  useEffect(() => {
    if (names !== '') changed();
  }, [names]);
}

/** All active keys, in the order in which their components were added. */
export function useShownShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(subscribe, () => shown);
}

/** Whether single-key shortcuts are enabled; stored by the browser. Space, arrows and the like always work. */
export function useShortcutsOn(): readonly [boolean, (isOn: boolean) => void] {
  const isOn = useSyncExternalStore(subscribe, areOn);
  return [
    isOn,
    (next) => {
      localStorage.setItem(SETTING, next ? 'on' : 'off');
      changed();
    },
  ];
}

const areOn = (): boolean => localStorage.getItem(SETTING) !== 'off';

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(): void {
  shown = [...holders].flatMap(({ current }) => current);
  for (const listener of listeners) listener();
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key === ' ' ? 'Space' : event.key;
  if (!mayAct(event.target, key)) return;
  const sequence = performance.now() - pendingSince < SEQUENCE && pending !== '' ? `${pending} ${key}` : key;
  const all = [...holders].flatMap(({ current }) => current);
  const found = all.findLast(({ keys }) => keys === sequence) ?? all.findLast(({ keys }) => keys === key);
  pending = '';
  if (found !== undefined) {
    event.preventDefault();
    found.run();
  } else if (all.some(({ keys }) => keys.startsWith(`${key} `))) {
    pending = key;
    pendingSince = performance.now();
  }
}

/** Inputs keep their keys, and so do an open dialog and elements that Space and Enter activate. */
function mayAct(target: EventTarget | null, key: string): boolean {
  if (key.length === 1 && !areOn()) return false;
  if (!(target instanceof HTMLElement)) return true;
  if (target.isContentEditable || target.closest('input, textarea, select, dialog') !== null) return false;
  if (key !== 'Space' && key !== 'Enter') return true;
  return target.closest('button, a, summary') === null;
}
