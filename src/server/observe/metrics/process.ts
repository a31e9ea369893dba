import { readdirSync } from 'node:fs';
import { Gauge } from './family.ts';

/** Figures of the process, read when they are printed. Those that the machine cannot tell are left out. */
export function processFamilies(): Gauge[] {
  const gauge = (name: string, help: string, read: () => number | undefined): Gauge =>
    new Gauge({ name: `gw_process_${name}`, help }, read);
  let last = performance.eventLoopUtilization();
  return [
    new Gauge(
      { name: 'gw_process_cpu_seconds', help: 'CPU time of the process, user and system' },
      () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
      { type: 'counter' },
    ),
    gauge('resident_memory_bytes', 'Resident memory of the process', () => process.memoryUsage.rss()),
    gauge('heap_used_bytes', 'Heap in use', () => process.memoryUsage().heapUsed),
    gauge(
      'start_time_seconds',
      'Start of the process since 1970',
      () => Math.round(performance.timeOrigin) / 1000,
    ),
    gauge('open_fds', 'Open file descriptors', openFiles),
    gauge(
      'event_loop_utilization_ratio',
      'Share of time in which the event loop was busy, since the last scrape',
      () => {
        const now = performance.eventLoopUtilization();
        const { utilization } = performance.eventLoopUtilization(now, last);
        last = now;
        return utilization;
      },
    ),
  ];
}

/** Linux tells; elsewhere there is no cheap way. */
function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return undefined;
  }
}
