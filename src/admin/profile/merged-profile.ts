import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LIMITS } from '../../core/limits.ts';
import type { ProcessView } from '../../server/workers/process-view.ts';
import type { CallFrame, Samples } from '../../server/workers/profile/samples.ts';
import { PprofBuilder } from './pprof.ts';

/** Processes to sample, and a signal that ends sampling early. */
export interface Measurement {
  readonly processes: readonly ProcessView[];
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/** CPU time of all processes as raw pprof. Undefined if a profile is running already. */
export async function profileCpu(
  measurement: Measurement,
  frequency: number,
): Promise<Uint8Array | undefined> {
  const merged = await sampled(measurement, (each) => each.cpuSamples(measurement.seconds, frequency));
  return merged?.builder.encode({
    ...merged,
    values: [
      { type: 'samples', unit: 'count' },
      { type: 'cpu', unit: 'nanoseconds' },
    ],
    period: { type: 'cpu', unit: 'nanoseconds', every: Math.round(1e9 / frequency) },
  });
}

/** Memory of all processes that was allocated during the measurement and is still in use, as gzipped pprof. */
export async function profileHeap(measurement: Measurement): Promise<Uint8Array | undefined> {
  const merged = await sampled(measurement, (each) => each.heapSamples(measurement.seconds));
  if (merged === undefined) return undefined;
  const encoded = await merged.builder.encode({
    ...merged,
    values: [
      { type: 'samples', unit: 'count' },
      { type: 'inuse_space', unit: 'bytes' },
    ],
    period: { type: 'space', unit: 'bytes', every: LIMITS.heapSampleBytes },
  });
  return promisify(gzip)(encoded);
}

/** Samples all processes at the same time. With several, the outermost frame of a stack is the name of its process. */
async function sampled(
  { processes, signal }: Measurement,
  sample: (each: ProcessView) => Promise<Samples | undefined>,
): Promise<({ builder: PprofBuilder } & Pick<Samples, 'startedAt' | 'duration'>) | undefined> {
  const stop = (): void => {
    for (const each of processes) each.stopSampling();
  };
  signal.addEventListener('abort', stop, { once: true });
  const all = await Promise.all(
    // A worker that ends meanwhile has no samples.
    processes.map(async (each) => ({ name: each.name, samples: await sample(each).catch(() => NONE) })),
  );
  signal.removeEventListener('abort', stop);
  const builder = new PprofBuilder();
  let startedAt = Number.POSITIVE_INFINITY;
  let duration = 0;
  for (const { name, samples } of all) {
    if (samples === undefined) return undefined;
    if (samples === NONE) continue;
    const outermost = name === undefined ? [] : [processFrame(name)];
    for (const [stack, values] of samples.stacks) builder.add([...stack, ...outermost], values);
    startedAt = Math.min(startedAt, samples.startedAt);
    duration = Math.max(duration, samples.duration);
  }
  return { builder, startedAt: Number.isFinite(startedAt) ? startedAt : Date.now(), duration };
}

const NONE: Samples = { startedAt: 0, duration: 0, stacks: [] };

const processFrame = (name: string): CallFrame => ({
  functionName: name,
  scriptId: name,
  url: '',
  lineNumber: 0,
});
