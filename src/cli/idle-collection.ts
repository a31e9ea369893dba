import { performance } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LIMITS } from '../core/limits.ts';

interface Bounds {
  /** How often the process is checked, and how long it must have been idle; ms. */
  readonly idleCheckInterval: number;
  /** Share of that time in which an idle event loop may have run. */
  readonly idleUtilization: number;
  /** Growth of the old generation since its last collection; bytes. */
  readonly idleHeapGrowth: number;
  /** Connections that were open at the last collection or a later check, and are closed now. */
  readonly idleClosedResources: number;
}

/**
 * Collects garbage once after a busy time, while the process is idle. V8 collects the old generation only when allocations
 * reach a limit, so a process without requests keeps everything that its clients left behind. Closing connections makes
 * garbage of what was in use and allocates nearly nothing, so they are counted beside the growth. One collection is enough:
 * V8's memory reducer then returns the free pages to the system (measured: 8 s later). Returns a function that stops it.
 */
export function collectWhileIdle(bounds: Bounds = LIMITS): () => void {
  let lowest = oldGeneration();
  let most = openResources();
  let last = performance.eventLoopUtilization();
  let collect: (() => void) | undefined;
  const check = (): void => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const size = oldGeneration();
    // V8 collects by itself, too.
    lowest = Math.min(lowest, size);
    const open = openResources();
    most = Math.max(most, open);
    const isDue = size - lowest >= bounds.idleHeapGrowth || most - open >= bounds.idleClosedResources;
    if (!isDue || utilization > bounds.idleUtilization) return;
    collect ??= collector();
    collect();
    lowest = oldGeneration();
    most = open;
  };
  const timer = setInterval(check, bounds.idleCheckInterval).unref();
  return () => clearInterval(timer);
}

const openResources = (): number => process.getActiveResourcesInfo().length;

/** Bytes of all spaces but the young generation, which V8 empties by itself, and what it never collects. */
function oldGeneration(): number {
  return getHeapSpaceStatistics()
    .filter(({ space_name: name }) => !/^(?:new|read_only)_/.test(name))
    .reduce((sum, { space_used_size: used }) => sum + used, 0);
}

/** V8's `gc`, which a new context has while the flag is set. */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a function of V8
  const gc = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  return gc;
}
