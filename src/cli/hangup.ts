import { closeSync, openSync } from 'node:fs';
import type { Context } from './context.ts';

/**
 * SIGHUP asks for a reload, as of servers in general. A terminal that closes sends it as well, to everything that was
 * started in it: then nobody wants the gateway any more.
 */
export function onHangup({ stderr }: Context, actions: { reload(): void; stop(): void }): void {
  const hasTerminal = stderr.isTTY === true;
  process.on('SIGHUP', () => {
    if (hasTerminal && !isTerminalThere()) actions.stop();
    else actions.reload();
  });
}

function isTerminalThere(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
