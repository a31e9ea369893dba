import type { ReactNode } from 'react';

/** Buttons that send a form, or stop its call while it is running. */
export function SendOrStop({
  verb,
  isRunning,
  stop,
  shortcut,
}: {
  readonly verb: string;
  readonly isRunning: boolean;
  readonly stop: () => void;
  /** Keyboard shortcut that also sends; only one call can run at a time then. */
  readonly shortcut?: string;
}): ReactNode {
  return (
    <>
      <button
        type="submit"
        className="primary"
        disabled={shortcut !== undefined && isRunning}
        aria-keyshortcuts={shortcut}
        onClick={(event) => {
          // The second click of a double click: it would call a second time.
          if (event.detail > 1) event.preventDefault();
        }}
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
