import { type SuspendTerminal, useApp } from 'ink';
import { useEffect, useState } from 'react';

/**
 * Handles Ctrl-Z, which a terminal in raw mode does not: restores the terminal, stops the process, and redraws
 * everything when the shell resumes it. Also handles SIGTSTP from elsewhere, and SIGCONT after SIGSTOP. Returns the
 * handler for the key.
 */
export function useSuspend(): () => void {
  const { suspendTerminal } = useApp();
  const [{ stop, redraw }] = useState(() => new Suspension(suspendTerminal));
  useEffect(() => {
    process.on('SIGTSTP', stop);
    process.on('SIGCONT', redraw);
    return () => {
      process.off('SIGTSTP', stop);
      process.off('SIGCONT', redraw);
    };
  }, [stop, redraw]);
  return stop;
}

/**
 * Time within which the process is stopped. Timers do not run while it is stopped, so this expires right after it
 * resumes.
 */
const STOP_DELAY = 100;

class Suspension {
  readonly #suspendTerminal: SuspendTerminal;
  #isSuspended = false;

  constructor(suspendTerminal: SuspendTerminal) {
    this.#suspendTerminal = suspendTerminal;
  }

  /** Stops the whole job, as the terminal does. Resumes immediately if no shell could resume it. */
  readonly stop = (): void => {
    this.#while(async () => {
      // Without a handler, the signal stops the process.
      process.off('SIGTSTP', this.stop);
      process.kill(0, 'SIGTSTP');
      await new Promise((resolve) => setTimeout(resolve, STOP_DELAY));
      process.on('SIGTSTP', this.stop);
    });
  };

  readonly redraw = (): void => this.#while(() => Promise.resolve());

  #while(act: () => Promise<void>): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#suspendTerminal(act)
      // A closed terminal cannot be restored; the screen then ends by other means.
      .catch(() => undefined)
      .finally(() => {
        this.#isSuspended = false;
      });
  }
}
