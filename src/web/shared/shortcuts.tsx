import { type ReactNode, useEffect, useRef, useSyncExternalStore } from 'react';
import type { Page } from './page.ts';
import { navigate } from './router.tsx';

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
function useShownShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(subscribe, () => shown);
}

/** Whether single-key shortcuts are enabled; stored by the browser. Space, arrows and the like always work. */
function useShortcutsOn(): readonly [boolean, (isOn: boolean) => void] {
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
  // The target of a key in the editor of the configuration is the element that has its shadow root.
  if (!mayAct(event.composedPath()[0] ?? null, key)) return;
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

/** The global keys, and the list of all keys that are currently active (`?`). */
export function ShortcutList({ pages }: { readonly pages: readonly Page[] }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOn, setOn] = useShortcutsOn();
  const shown = useShownShortcuts();
  const open = (): void => dialog.current?.showModal();
  useShortcuts([
    { keys: '?', what: 'this list', run: open },
    { keys: '/', what: 'focus the filter of the page', run: focusFilter },
    ...pages.map(({ key, path, title }) => ({
      keys: `g ${key}`,
      what: `open ${title}`,
      run: () => navigate(path),
    })),
  ]);
  return (
    <>
      <button type="button" className="plain keys" onClick={open} aria-keyshortcuts="?">
        Shortcuts
      </button>
      <dialog ref={dialog} aria-label="Keyboard shortcuts">
        <h2>Keyboard shortcuts</h2>
        <table>
          <tbody>
            <tr>
              <th scope="row">
                <kbd>Ctrl K</kbd>
                <kbd>⌘ K</kbd>
              </th>
              <td>find a page, route, target, tool or model</td>
            </tr>
            {shown.map(({ keys, what }) => (
              <tr key={keys}>
                <th scope="row">
                  {keys.split(' ').map((key) => (
                    <kbd key={key}>{NAMES[key] ?? key}</kbd>
                  ))}
                </th>
                <td>{what}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p>
          <label>
            <input type="checkbox" checked={isOn} onChange={(event) => setOn(event.target.checked)} />{' '}
            Single-key shortcuts are on
          </label>
        </p>
        <form method="dialog">
          <button type="submit" className="primary">
            Close
          </button>
        </form>
      </dialog>
    </>
  );
}

const NAMES: Readonly<Record<string, string>> = {
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  Escape: 'Esc',
};

/** A page marks its filter with `data-filter`. */
function focusFilter(): void {
  document.querySelector<HTMLElement>('main [data-filter]')?.focus();
}
