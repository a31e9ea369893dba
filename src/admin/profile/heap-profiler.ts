import { type HeapProfiler as Inspector, Session } from 'node:inspector/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LIMITS } from '../../core/limits.ts';
import { type MeasureTime, measured } from './duration.ts';
import { type CallFrame, PprofBuilder, type Stack } from './pprof.ts';

let isRunning = false;

/**
 * Profiles memory that is allocated during the measurement and still in use at its end: one allocation per
 * `LIMITS.heapSampleBytes` bytes is sampled, and garbage is collected first, which pauses the process for some
 * milliseconds. Resolves to a gzipped profile, or to undefined if another measurement is running, because V8 has a
 * single sampler.
 *
 * Sampling runs only on request: an open inspector session alone increased the CPU time of a request by a quarter
 * (docs/decisions/0023). There is no `alloc_space`: the sampler reports either memory in use or all allocated memory.
 */
export async function profileHeap(options: MeasureTime): Promise<Uint8Array | undefined> {
  if (isRunning) return undefined;
  isRunning = true;
  const session = new Session();
  const startedAt = Date.now();
  try {
    session.connect();
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: LIMITS.heapSampleBytes,
      stackDepth: LIMITS.heapSampleDepth,
    } as Inspector.StartSamplingParameterType);
    await measured(options);
    await session.post('HeapProfiler.collectGarbage');
    const { profile } = await session.post('HeapProfiler.stopSampling');
    return await encode(profile as unknown as SamplingProfile, startedAt);
  } finally {
    session.disconnect();
    isRunning = false;
  }
}

async function encode(profile: SamplingProfile, startedAt: number): Promise<Uint8Array> {
  const builder = new PprofBuilder();
  addNode(builder, profile.head, countsOf(profile));
  const encoded = await builder.encode({
    values: [
      { type: 'samples', unit: 'count' },
      { type: 'inuse_space', unit: 'bytes' },
    ],
    period: { type: 'space', unit: 'bytes', every: LIMITS.heapSampleBytes },
    startedAt,
    duration: Date.now() - startedAt,
  });
  return promisify(gzip)(encoded);
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

/** Not recursive, because a stack may be deeper than ours. */
function addNode(builder: PprofBuilder, head: SamplingNode, counts: Counts): void {
  const pending: { node: SamplingNode; above: Stack }[] = [{ node: head, above: [] }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, above } = next;
    const stack = node === head ? [] : [node.callFrame, ...above];
    // V8 reports sizes scaled up to all allocations, but not the number of objects.
    if (node.selfSize > 0 && stack.length > 0) builder.add(stack, [counts.get(node.id) ?? 1, node.selfSize]);
    for (const child of node.children) pending.push({ node: child, above: stack });
  }
}

type Counts = ReadonlyMap<number, number>;

function countsOf({ samples }: SamplingProfile): Counts {
  const counts = new Map<number, number>();
  for (const { nodeId } of samples) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  return counts;
}
