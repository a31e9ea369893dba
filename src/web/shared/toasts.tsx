import type { ReactNode } from 'react';
import { createStore } from './store.ts';
import './toasts.css';

/** A brief message about an action at the edge of the page, with a way to undo it if possible. */
export interface Toast {
  readonly text: string;
  readonly isBad?: boolean;
  readonly undo?: () => void;
  /** Called when it can no longer be undone: after ten seconds, when dismissed, or for `settleToasts`. */
  readonly settle?: () => void;
}

interface Shown extends Toast {
  readonly id: number;
}

const SHOWN_FOR = 10_000;
/** Maximum number of messages at once. */
const MOST = 4;

const toasts = createStore<readonly Shown[]>([]);
let count = 0;

export function say(toast: Toast): void {
  count += 1;
  const id = count;
  for (const { id: oldest } of toasts.get().slice(0, -(MOST - 1))) dismiss(oldest);
  toasts.set([...toasts.get(), { ...toast, id }]);
  setTimeout(() => dismiss(id), SHOWN_FOR);
}

/** Ends the time to undo of all messages that have one. */
export function settleToasts(): void {
  for (const { id, settle } of toasts.get()) if (settle !== undefined) dismiss(id);
}

/** Undoes the action of the latest message that can be undone. */
export function undoLatest(): void {
  const latest = toasts.get().findLast(({ undo }) => undo !== undefined);
  if (latest !== undefined) undoOf(latest);
}

function undoOf({ id, undo }: Shown): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
  undo?.();
}

function dismiss(id: number): void {
  const gone = toasts.get().find((toast) => toast.id === id);
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
  gone?.settle?.();
}

/**
 * Displays the messages of `say`. Used once per application; the region exists before its first text, so that it is
 * announced.
 */
export function Toasts(): ReactNode {
  const shown = toasts.use();
  return (
    <section className="toasts" aria-label="Notices" aria-live="polite">
      {shown.map((toast) => {
        const { id, text, isBad, undo } = toast;
        return (
          <div key={id} className={isBad === true ? 'toast bad' : 'toast'}>
            <span>
              {isBad === true ? '✗' : '✓'} {text}
            </span>
            {undo === undefined ? null : (
              <button type="button" onClick={() => undoOf(toast)}>
                Undo
              </button>
            )}
            <button type="button" className="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
              ×
            </button>
          </div>
        );
      })}
    </section>
  );
}
