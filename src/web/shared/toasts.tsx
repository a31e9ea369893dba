import { type ReactNode, useSyncExternalStore } from 'react';
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

let toasts: readonly Shown[] = [];
let count = 0;
const listeners = new Set<() => void>();

export function say(toast: Toast): void {
  count += 1;
  const id = count;
  for (const { id: oldest } of toasts.slice(0, -(MOST - 1))) dismiss(oldest);
  change([...toasts, { ...toast, id }]);
  setTimeout(() => dismiss(id), SHOWN_FOR);
}

/** Ends the time to undo of all messages that have one. */
export function settleToasts(): void {
  for (const { id, settle } of toasts) if (settle !== undefined) dismiss(id);
}

/** Undoes the action of the latest message that can be undone. */
export function undoLatest(): void {
  const latest = toasts.findLast(({ undo }) => undo !== undefined);
  if (latest !== undefined) undoOf(latest);
}

function undoOf({ id, undo }: Shown): void {
  change(toasts.filter((toast) => toast.id !== id));
  undo?.();
}

function dismiss(id: number): void {
  const gone = toasts.find((toast) => toast.id === id);
  change(toasts.filter((toast) => toast.id !== id));
  gone?.settle?.();
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
