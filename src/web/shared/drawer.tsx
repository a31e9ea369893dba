import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from 'react';
import './drawer.css';

/**
 * A modal dialog at the side, with details of a selected item. The browser traps the focus, closes the dialog on
 * Escape, and restores the focus.
 */
export function Drawer({
  title,
  close,
  onKeyDown,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
  readonly children: ReactNode;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} className="drawer" aria-labelledby={id} onClose={close} onKeyDown={onKeyDown}>
      <div className="drawer-head">
        <h2 id={id}>{title}</h2>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
      {children}
    </dialog>
  );
}
