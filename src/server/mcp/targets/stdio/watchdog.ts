import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { LIMITS } from '../../../../core/limits.ts';

type Shell = ChildProcessByStdio<Writable, null, null>;

/**
 * Reads the running process groups from its input (`+ 123` and `- 123`). When the input ends, it terminates them, and kills
 * them two seconds later, as the gateway would. POSIX shell only.
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
 * A shell that outlives the gateway: if the gateway is killed, nothing else ends children that ignore the end of their input
 * (docs/decisions/0021). It is started with the first child and stopped `LIMITS.watchdogIdle` ms after the last one exited.
 * Without `/bin/sh` there is no watchdog.
 */
class Watchdog {
  readonly #groups = new Set<number>();
  #shell: Shell | undefined;

  add(group: number): void {
    this.#groups.add(group);
    if (this.#shell === undefined) this.#start();
    else this.#send(`+ ${group}\n`);
  }

  delete(group: number): void {
    this.#groups.delete(group);
    this.#send(`- ${group}\n`);
    // Delayed, so that short sessions do not start a shell each.
    if (this.#groups.size === 0) setTimeout(() => this.#endIfIdle(), LIMITS.watchdogIdle).unref();
  }

  /** Ends the shell's input. With no group on its list, it just exits. */
  #endIfIdle(): void {
    if (this.#groups.size > 0) return;
    this.#shell?.stdin.end();
    this.#shell = undefined;
  }

  #send(line: string): void {
    const shell = this.#shell;
    if (shell === undefined) return;
    // The shell is stopped (SIGSTOP). It is killed, because the end of its input would make it end the children.
    if (shell.stdin.writableLength > LIMITS.watchdogInputBytes) shell.kill('SIGKILL');
    else shell.stdin.write(line);
  }

  #start(): void {
    // Windows has no process groups.
    if (process.platform === 'win32') return;
    let shell: Shell;
    try {
      shell = spawn('/bin/sh', ['-c', SCRIPT, 'agctl-watchdog'], {
        // In its own session, so that Ctrl-C at the terminal reaches the gateway only.
        detached: true,
        cwd: '/',
        env: { PATH: '/usr/bin:/bin' },
        stdio: ['pipe', 'ignore', 'ignore'],
      });
    } catch {
      return;
    }
    // The gateway can exit without waiting for the shell.
    shell.unref();
    (shell.stdin as Writable & { unref?(): void }).unref?.();
    shell.on('error', () => undefined);
    shell.stdin.on('error', () => undefined);
    shell.on('exit', () => {
      // The next child starts another one.
      if (this.#shell === shell) this.#shell = undefined;
    });
    this.#shell = shell;
    for (const group of this.#groups) this.#send(`+ ${group}\n`);
  }
}

export const watchdog = new Watchdog();
