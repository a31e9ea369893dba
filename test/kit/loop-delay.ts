import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Runs `work` and returns how long the event loop of this process was blocked at most meanwhile, in ms. */
export async function worstLoopDelay(work: () => Promise<unknown>): Promise<number> {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  // The histogram measures from one of its ticks to the next: a block before the first would not count.
  await ticks();
  await work();
  await ticks();
  histogram.disable();
  return histogram.max / 1e6;
}

function ticks(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
