import type { ReactNode } from 'react';

/** Sends a form; while its call runs, it can be stopped. */
export function SendOrStop({
  verb,
  isRunning,
  stop,
  shortcut,
}: {
  readonly verb: string;
  readonly isRunning: boolean;
  readonly stop: () => void;
  /** Keys that send as well: only one call at a time then. */
  readonly shortcut?: string;
}): ReactNode {
  return (
    <>
      <button
        type="submit"
        className="primary"
        disabled={shortcut !== undefined && isRunning}
        aria-keyshortcuts={shortcut}
      >
        {verb}
      </button>
      {isRunning ? (
        <button type="button" onClick={stop}>
          Stop
        </button>
      ) : null}
    </>
  );
}
