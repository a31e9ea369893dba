import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { LIMITS } from '../../../core/limits.ts';

type Shell = ChildProcessByStdio<Writable, null, null>;

/**
 * Reads the process groups that live, and ends those once its input has ended. It is told `+ 123` and `- 123`. Terminated
 * first and killed two seconds later, as the gateway would. Only what every POSIX shell has.
 */
const SCRIPT = `
trap '' INT TERM HUP
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
done
end() { for group in $groups; do kill -s "$1" -- "-$group" && left=1; done 2>/dev/null; }
for wait in 1 1 0; do
  left=
  [ $wait = 0 ] && end KILL || end TERM
  [ -z "$left" ] && exit
  sleep $wait
done
`;

/**
 * A shell that outlives the gateway by a moment: when the gateway is killed, nothing else can end children that ignore
 * the end of their input (docs/decisions/0021). Started with the first child, and ended when there is none any more;
 * without `/bin/sh` there is no such shell.
 */
class Watchdog {
  readonly #groups = new Set<number>();
  #shell: Shell | undefined;

  add(group: number): void {
    this.#groups.add(group);
    if (this.#shell === undefined) this.#start();
    else this.#tell(`+ ${group}\n`);
  }

  delete(group: number): void {
    this.#groups.delete(group);
    this.#tell(`- ${group}\n`);
    // Sessions come and go: not a shell for each.
    if (this.#groups.size === 0) setTimeout(() => this.#endIfIdle(), LIMITS.watchdogIdle).unref();
  }

  /** With no group on its list, the end of its input is the end of the shell alone. */
  #endIfIdle(): void {
    if (this.#groups.size > 0) return;
    this.#shell?.stdin.end();
    this.#shell = undefined;
  }

  #tell(line: string): void {
    const shell = this.#shell;
    if (shell === undefined) return;
    // Stopped by somebody. Killed, not closed: the end of its input would mean that of the children.
    if (shell.stdin.writableLength > LIMITS.watchdogInputBytes) shell.kill('SIGKILL');
    else shell.stdin.write(line);
  }

  #start(): void {
    // No process groups there.
    if (process.platform === 'win32') return;
    let shell: Shell;
    try {
      shell = spawn('/bin/sh', ['-c', SCRIPT, 'agctl-watchdog'], {
        // A session of its own: Ctrl-C at the terminal is for the gateway.
        detached: true,
        cwd: '/',
        env: { PATH: '/usr/bin:/bin' },
        stdio: ['pipe', 'ignore', 'ignore'],
      });
    } catch {
      return;
    }
    // The gateway ends without waiting for it.
    shell.unref();
    (shell.stdin as Writable & { unref?(): void }).unref?.();
    shell.on('error', () => undefined);
    shell.stdin.on('error', () => undefined);
    shell.on('exit', () => {
      // The next child brings another one.
      if (this.#shell === shell) this.#shell = undefined;
    });
    this.#shell = shell;
    for (const group of this.#groups) this.#tell(`+ ${group}\n`);
  }
}

export const watchdog = new Watchdog();
