import { type Profiler, Session } from 'node:inspector/promises';
import { type MeasureTime, measured } from './duration.ts';
import { PprofBuilder, type Stack } from './pprof.ts';

export interface CpuProfileOptions extends MeasureTime {
  /** Samples per second. */
  readonly frequency: number;
}

let isRunning = false;

/**
 * Measures where this process spends CPU time. Returns undefined if a measurement is already running, because V8 has a
 * single profiler.
 */
export async function profileCpu(options: CpuProfileOptions): Promise<Uint8Array | undefined> {
  if (isRunning) return undefined;
  isRunning = true;
  const session = new Session();
  try {
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.setSamplingInterval', { interval: Math.round(1e6 / options.frequency) });
    const startedAt = Date.now();
    await session.post('Profiler.start');
    await measured(options);
    const { profile } = await session.post('Profiler.stop');
    return await encode(profile, startedAt, options.frequency);
  } finally {
    session.disconnect();
    isRunning = false;
  }
}

/** Pseudo-functions of the profiler; idle time is not CPU time. */
const NOT_RUNNING = new Set(['(idle)', '(root)']);

function encode(profile: Profiler.Profile, startedAt: number, frequency: number): Promise<Uint8Array> {
  const stacks = stacksOf(profile);
  const builder = new PprofBuilder();
  const { samples = [], timeDeltas = [] } = profile;
  for (const [index, id] of samples.entries()) {
    const stack = stacks.get(id);
    const name = stack?.[0]?.functionName;
    if (stack === undefined || stack.length === 0 || NOT_RUNNING.has(name ?? '')) continue;
    // A sample represents the time until the next one. Clocks of two cores can differ slightly.
    const micros = Math.max(0, timeDeltas[index + 1] ?? 1e6 / frequency);
    builder.add(stack, [1, Math.round(micros * 1000)]);
  }
  return builder.encode({
    values: [
      { type: 'samples', unit: 'count' },
      { type: 'cpu', unit: 'nanoseconds' },
    ],
    period: { type: 'cpu', unit: 'nanoseconds', every: Math.round(1e9 / frequency) },
    startedAt,
    duration: (profile.endTime - profile.startTime) / 1000,
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
