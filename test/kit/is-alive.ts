import { existsSync, readFileSync } from 'node:fs';

/** Whether a process runs. One that has ended, and that its parent has not collected yet, does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The ids that processes have written to a file, each with a line of its own. None if there is no file yet. */
export const pidsIn = (file: string): number[] =>
  existsSync(file) ? (readFileSync(file, 'utf8').match(/\d+(?=\n)/g) ?? []).map(Number) : [];
