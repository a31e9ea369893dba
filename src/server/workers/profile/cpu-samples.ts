import { type Profiler, Session } from 'node:inspector/promises';
import { measured, type Samples, type Stack } from './samples.ts';

let isRunning = false;

/**
 * Measures for some seconds where this process spends CPU time, with `frequency` samples per second. Returns undefined if
 * a measurement is already running, because V8 has a single profiler. `signal` ends it early.
 */
export async function sampleCpu(
  seconds: number,
  frequency: number,
  signal: AbortSignal,
): Promise<Samples | undefined> {
  if (isRunning) return undefined;
  isRunning = true;
  const session = new Session();
  try {
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: Math.round(1e6 / frequency) });
    const startedAt = Date.now();
    await session.post('Profiler.start');
    await measured(seconds, signal);
    const { profile } = await session.post('Profiler.stop');
    const duration = (profile.endTime - profile.startTime) / 1000;
    return { startedAt, duration, stacks: samplesOf(profile, frequency) };
  } finally {
    session.disconnect();
    isRunning = false;
  }
}

/** Pseudo-functions of the profiler; idle time is not CPU time. */
const NOT_RUNNING = new Set(['(idle)', '(root)']);

/** One entry per node of the profile, with the number of its samples and their time in ns. */
function samplesOf(profile: Profiler.Profile, frequency: number): Samples['stacks'] {
  const totals = new Map<number, [count: number, nanoseconds: number]>();
  const { samples = [], timeDeltas = [] } = profile;
  for (const [index, id] of samples.entries()) {
    // A sample represents the time until the next one. Clocks of two cores can differ slightly.
    const micros = Math.max(0, timeDeltas[index + 1] ?? 1e6 / frequency);
    const total = totals.get(id) ?? [0, 0];
    totals.set(id, [total[0] + 1, total[1] + Math.round(micros * 1000)]);
  }
  const stacks = stacksOf(profile);
  return [...totals].flatMap(([id, values]) => {
    const stack = stacks.get(id) ?? [];
    const [innermost] = stack;
    return innermost === undefined || NOT_RUNNING.has(innermost.functionName)
      ? []
      : [[stack, values] as const];
  });
}

/** The stack of each node, from itself outwards, without the root. */
function stacksOf({ nodes }: Profiler.Profile): Map<number, Stack> {
  const stacks = new Map<number, Stack>();
  const parents = new Map<number, number>();
  for (const { id, children } of nodes) for (const child of children ?? []) parents.set(child, id);
  // Parents precede their children in the list.
  for (const { id, callFrame } of nodes) {
    const parent = parents.get(id);
    stacks.set(id, parent === undefined ? [] : [callFrame, ...(stacks.get(parent) ?? [])]);
  }
  return stacks;
}
