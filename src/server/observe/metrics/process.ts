import { readdirSync } from 'node:fs';
import type { SampledMetric } from './exposition.ts';

/** Metrics of the process, sampled at each scrape. A value that the platform does not provide is omitted. */
export function processMetrics(): SampledMetric[] {
  let last = performance.eventLoopUtilization();
  return [
    {
      name: 'process_cpu_seconds',
      help: 'CPU time of the process, user and system',
      type: 'counter',
      read: () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      },
    },
    {
      name: 'process_resident_memory_bytes',
      help: 'Resident memory of the process',
      read: () => process.memoryUsage.rss(),
    },
    { name: 'process_heap_used_bytes', help: 'Heap in use', read: () => process.memoryUsage().heapUsed },
    {
      name: 'process_start_time_seconds',
      help: 'Start time of the process as Unix time',
      ofSeveral: 'first',
      read: () => Math.round(performance.timeOrigin) / 1000,
    },
    { name: 'process_open_fds', help: 'Open file descriptors', read: openFiles },
    {
      name: 'process_event_loop_utilization_ratio',
      help: 'Share of time the event loop was busy since the last scrape',
      ofSeveral: 'max',
      read: () => {
        const now = performance.eventLoopUtilization();
        const { utilization } = performance.eventLoopUtilization(now, last);
        last = now;
        return utilization;
      },
    },
  ];
}

/** Only Linux provides this cheaply, through `/proc`. */
function openFiles(): number | undefined {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return undefined;
  }
}
