import type { Writable } from 'node:stream';

/** Everything outside that a command may touch, passed in so that tests can stand in for it. */
export interface Context {
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** Whether to colour a stream: `--color` decides, then NO_COLOR (if not empty), then whether it is a terminal. */
export function wantsColor(
  stream: { readonly isTTY?: boolean },
  choice: string,
  env: Context['env'],
): boolean {
  if (choice !== 'auto') return choice === 'always';
  if ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return false;
  return stream.isTTY === true;
}
