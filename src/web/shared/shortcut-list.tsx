import { type ReactNode, useRef } from 'react';
import type { Page } from './page.ts';
import { navigate } from './router.ts';
import { useShortcuts, useShortcutsOn, useShownShortcuts } from './shortcuts.ts';

/** The global keys, and the list of all keys that are currently active (`?`). */
export function ShortcutList({ pages }: { readonly pages: readonly Page[] }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOn, setOn] = useShortcutsOn();
  const shown = useShownShortcuts();
  const open = (): void => dialog.current?.showModal();
  useShortcuts([
    { keys: '?', what: 'this list', run: open },
    { keys: '/', what: 'to the filter of the page', run: focusFilter },
    ...pages.map(({ key, path, title }) => ({
      keys: `g ${key}`,
      what: `to ${title}`,
      run: () => navigate(path),
    })),
  ]);
  return (
    <>
      <button type="button" className="plain keys" onClick={open} aria-keyshortcuts="?">
        Keys
      </button>
      <dialog ref={dialog} aria-label="Keyboard shortcuts">
        <h2>Keyboard shortcuts</h2>
        <table>
          <tbody>
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
