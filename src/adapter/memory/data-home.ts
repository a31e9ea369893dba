import { homedir } from 'node:os';
import { join } from 'node:path';

/** The folder of this user's data: `~/.local/share/agctl`, or where XDG_DATA_HOME says. */
export function dataHome(env: Readonly<Record<string, string | undefined>>): string {
  return join(env['XDG_DATA_HOME'] || join(env['HOME'] || homedir(), '.local', 'share'), 'agctl');
}
