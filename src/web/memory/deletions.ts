import { type MouseEvent, useEffect, useRef } from 'react';
import { ask } from '../shared/api.ts';
import { createStore } from '../shared/store.ts';
import { say } from '../shared/toasts.tsx';

/** Something to delete: the page hides it at once, and the request is sent when it can no longer be undone. */
interface Deletion {
  /** Names what disappears from the page. */
  readonly key: string;
  /** What disappears, for the notice. */
  readonly what: string;
  readonly path: string;
  readonly method?: 'DELETE' | 'POST';
  readonly body?: unknown;
  /** Called when it is deleted. */
  readonly done?: () => void;
}

interface State {
  /** Keys of what is being deleted, or has just been. */
  readonly hidden: ReadonlySet<string>;
  /** Those of them that the backend has deleted. */
  readonly gone: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();
const store = createStore<State>({ hidden: NONE, gone: NONE });

const change = (next: Partial<State>): void => store.set({ ...store.get(), ...next });

const without = (keys: ReadonlySet<string>, removed: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...keys].filter((key) => !removed.has(key)));

/** Deletes after the time to undo it, which a notice shows. A failure brings back what was hidden, and says why. */
export function deleteLater({ key, what, path, method = 'DELETE', body, done }: Deletion): void {
  const restore = (): void => change({ hidden: without(store.get().hidden, new Set([key])) });
  change({ hidden: new Set([...store.get().hidden, key]) });
  say({
    text: `Deleted: ${what}`,
    undo: restore,
    settle: () =>
      void ask(path, { method, body, keepalive: true }).then(
        () => {
          change({ gone: new Set([...store.get().gone, key]) });
          done?.();
        },
        (problem: Error) => {
          restore();
          say({ text: `Not deleted: ${what}. ${problem.message}`, isBad: true });
        },
      ),
  });
}

/** Deletes an item of a list that is clicked. The second click of a double click hits the next item, which has moved up. */
export const deleteOnClick =
  (deletion: Deletion) =>
  ({ detail }: MouseEvent): void => {
    if (detail < 2) deleteLater(deletion);
  };

/**
 * Keys of what a page hides.
 *
 * @param data what the page shows; after a deletion it is loaded again with `reload`
 */
export function useDeletions(data: unknown, reload: () => void): ReadonlySet<string> {
  const { hidden, gone } = store.use();
  const latest = useRef(reload);
  latest.current = reload;
  useEffect(() => {
    if (gone.size > 0) latest.current();
  }, [gone]);
  // The new data lacks what was deleted, unless somebody has stored it again.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs for each new data.
  useEffect(() => {
    const { hidden: all, gone: deleted } = store.get();
    if (deleted.size > 0) change({ hidden: without(all, deleted), gone: NONE });
  }, [data]);
  return hidden;
}

/** The key of a session, which the list of sessions and the session itself hide. */
export const sessionKey = (session: string): string => `session ${session}`;
