import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from 'react';
import './drawer.css';

/**
 * A modal dialog at the side: details of what was chosen. The browser keeps the focus inside, closes it on Escape,
 * and gives the focus back.
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
