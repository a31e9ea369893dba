import { Session } from 'node:inspector/promises';
import { LIMITS } from '../../../core/limits.ts';
import { type CallFrame, measured, type Samples, type Stack } from './samples.ts';

let isRunning = false;

/**
 * Samples memory that is allocated during the measurement and still in use at its end: one allocation per
 * `LIMITS.heapSampleBytes` bytes is sampled, and garbage is collected first, which pauses the process for some
 * milliseconds. Resolves to undefined if another measurement is running, because V8 has a single sampler.
 *
 * Sampling runs only on request: an open inspector session alone increased the CPU time of a request by a quarter
 * (docs/decisions/0023). There is no `alloc_space`: the sampler reports either memory in use or all allocated memory.
 */
export async function sampleHeap(seconds: number, signal: AbortSignal): Promise<Samples | undefined> {
  if (isRunning) return undefined;
  isRunning = true;
  const session = new Session();
  const startedAt = Date.now();
  try {
    session.connect();
    // The types of Node.js lack the depth.
    const settings = { samplingInterval: LIMITS.heapSampleBytes, stackDepth: LIMITS.heapSampleDepth };
    await session.post('HeapProfiler.startSampling', settings);
    await measured(seconds, signal);
    await session.post('HeapProfiler.collectGarbage');
    const { profile } = await session.post('HeapProfiler.stopSampling');
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of Node.js have fewer members
    const stacks = stacksOf(profile as unknown as SamplingProfile);
    return { startedAt, duration: Date.now() - startedAt, stacks };
  } finally {
    session.disconnect();
    isRunning = false;
  }
}

/** The format of V8; the types of Node.js have fewer members. */
interface SamplingProfile {
  readonly head: SamplingNode;
  readonly samples: readonly { readonly nodeId: number; readonly size: number }[];
}

interface SamplingNode {
  readonly id: number;
  readonly callFrame: CallFrame;
  readonly selfSize: number;
  readonly children: readonly SamplingNode[];
}

/** Each node with the number of its samples and its bytes in use. Not recursive: a stack may be deeper than ours. */
function stacksOf(profile: SamplingProfile): Samples['stacks'] {
  const counts = countsOf(profile);
  const stacks: (readonly [Stack, readonly [number, number]])[] = [];
  const pending: { node: SamplingNode; above: Stack }[] = [{ node: profile.head, above: [] }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, above } = next;
    const stack = node === profile.head ? [] : [node.callFrame, ...above];
    // V8 reports sizes scaled up to all allocations, but not the number of objects.
    if (node.selfSize > 0 && stack.length > 0)
      stacks.push([stack, [counts.get(node.id) ?? 1, node.selfSize]]);
    for (const child of node.children) pending.push({ node: child, above: stack });
  }
  return stacks;
}

type Counts = ReadonlyMap<number, number>;

function countsOf({ samples }: SamplingProfile): Counts {
  const counts = new Map<number, number>();
  for (const { nodeId } of samples) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  return counts;
}
