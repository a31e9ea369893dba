import { useApp, useInput, useWindowSize } from 'ink';
import { type Key, keysOf } from './keys.ts';
import type { Size } from './screen.ts';
import { useSuspend } from './suspend.ts';
import { INTERRUPTED } from './terminal-screen.ts';

/** Passes keys to `handle`, except Ctrl-C and Ctrl-Z; returns the size of the terminal. */
export function useScreenInput(handle: (key: Key) => void): Size {
  const { exit } = useApp();
  const suspend = useSuspend();
  useInput((input, key) => {
    if (key.ctrl && input === 'c') exit(INTERRUPTED);
    else if (key.ctrl && input === 'z') suspend();
    else for (const one of keysOf(input, key)) handle(one);
  });
  const { columns, rows } = useWindowSize();
  // A pseudo-terminal without a size reports 0.
  return { columns: columns || 80, rows: rows || 24 };
}
