import { type SuspendTerminal, useApp } from 'ink';
import { useEffect, useState } from 'react';

/**
 * Ctrl-Z, which the terminal leaves to a program that reads single keys: gives the terminal back as it was, stops, and
 * draws everything anew when the shell lets the program go on. So do SIGTSTP from elsewhere, and SIGCONT after SIGSTOP.
 * Returns what the key does.
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

/** Time to be stopped in. Nothing runs while stopped, so it is over right after that, however long it took. */
const MOMENT = 100;

class Suspension {
  readonly #suspendTerminal: SuspendTerminal;
  #isSuspended = false;

  constructor(suspendTerminal: SuspendTerminal) {
    this.#suspendTerminal = suspendTerminal;
  }

  /** Stops the whole job, as the terminal does. Goes on at once where nobody could let it go on. */
  readonly stop = (): void => {
    this.#while(async () => {
      // Without a handler the signal stops the process.
      process.off('SIGTSTP', this.stop);
      process.kill(0, 'SIGTSTP');
      await new Promise((resolve) => setTimeout(resolve, MOMENT));
      process.on('SIGTSTP', this.stop);
    });
  };

  readonly redraw = (): void => this.#while(() => Promise.resolve());

  #while(act: () => Promise<void>): void {
    if (this.#isSuspended) return;
    this.#isSuspended = true;
    this.#suspendTerminal(act)
      // A terminal that has gone cannot be given back; the screen ends by other ways then.
      .catch(() => undefined)
      .finally(() => {
        this.#isSuspended = false;
      });
  }
}
