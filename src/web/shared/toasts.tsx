import { type ReactNode, useSyncExternalStore } from 'react';
import './toasts.css';

/** A brief message about an action at the edge of the page, with a way to undo it if possible. */
export interface Toast {
  readonly text: string;
  readonly isBad?: boolean;
  readonly undo?: () => void;
}

interface Shown extends Toast {
  readonly id: number;
}

const SHOWN_FOR = 10_000;
/** Maximum number of messages at once. */
const MOST = 4;

let toasts: readonly Shown[] = [];
let count = 0;
const listeners = new Set<() => void>();

export function say(toast: Toast): void {
  count += 1;
  const id = count;
  change([...toasts, { ...toast, id }].slice(-MOST));
  setTimeout(() => dismiss(id), SHOWN_FOR);
}

function dismiss(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

function change(next: readonly Shown[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Displays the messages of `say`. Used once per application; the region exists before its first text, so that it is
 * announced.
 */
export function Toasts(): ReactNode {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <section className="toasts" aria-label="Notices" aria-live="polite">
      {shown.map(({ id, text, isBad, undo }) => (
        <div key={id} className={isBad === true ? 'toast bad' : 'toast'}>
          <span>
            {isBad === true ? '✗' : '✓'} {text}
          </span>
          {undo === undefined ? null : (
            <button
              type="button"
              onClick={() => {
                dismiss(id);
                undo();
              }}
            >
              Undo
            </button>
          )}
          <button type="button" className="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ×
          </button>
        </div>
      ))}
    </section>
  );
}
