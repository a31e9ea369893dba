// CPU time of processes, from /proc.
import { readFileSync } from 'node:fs';

// Linux counts in ticks of 10 ms (proc(5)).
const TICK_MICROS = 10_000;

/** Fields of /proc/PID/stat after the name of the command. Undefined if the process has ended. */
function stat(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

/** CPU time of a process in µs, user and system; children are not in it. 0 if it has ended. */
export function cpuMicros(pid) {
  const fields = stat(pid);
  return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) * TICK_MICROS;
}

/** CPU time in µs of this process and of those of its children that have ended. */
export function ownCpuMicros() {
  const [, , , , , , , , , , , ...times] = stat('self');
  return times.slice(0, 4).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MICROS;
}

/** Ids of the processes that a process has started, and that those have started, and so on. */
export function descendants(pid) {
  let children;
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  } catch {
    return [];
  }
  return children.map(Number).flatMap((child) => [child, ...descendants(child)]);
}

/** Command line of a process; empty if it has ended. */
export function commandLine(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}
