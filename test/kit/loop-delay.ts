/**
 * Runs `work` and returns for how long the event loop of this process was blocked at most meanwhile, in ms of CPU time:
 * a machine that gives the core to others for a while blocks nothing.
 */
export async function worstLoopDelay(work: () => Promise<unknown>): Promise<number> {
  let worst = 0;
  let before = process.threadCpuUsage();
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(before);
    worst = Math.max(worst, (user + system) / 1000);
    before = process.threadCpuUsage();
  };
  const looking = setInterval(look, 1);
  // What blocks before the first look counts from then on; what blocks last is seen after it.
  await turn();
  await work();
  await turn();
  clearInterval(looking);
  return worst;
}

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
