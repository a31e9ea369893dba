import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Runs `work` and returns how long the event loop of this process was blocked at most meanwhile, in ms. */
export async function worstLoopDelay(work: () => Promise<unknown>): Promise<number> {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  await work();
  // A block at the very end shows only once the timer of the histogram has run again.
  await new Promise((resolve) => setTimeout(resolve, 5));
  histogram.disable();
  return histogram.max / 1e6;
}
