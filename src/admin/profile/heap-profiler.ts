import { type HeapProfiler as Inspector, Session } from 'node:inspector/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { LIMITS } from '../../core/limits.ts';
import { type CallFrame, PprofBuilder, type Stack } from './pprof.ts';

/**
 * Watches where memory that is still in use was allocated, by sampling one allocation in `LIMITS.heapSampleBytes`
 * bytes. It must run all the time to know of what was allocated before somebody asks; a profile then takes
 * milliseconds, where a snapshot of the heap would stop the process for seconds.
 *
 * There is no `alloc_space`: sessions share one sampler, which knows either what is in use or what was ever allocated,
 * and for the latter keeps every sample for ever (docs/admin.md).
 */
export class HeapProfiler {
  #session: Session | undefined;
  #startedAt = 0;

  async start(): Promise<void> {
    const session = new Session();
    this.#session = session;
    this.#startedAt = Date.now();
    session.connect();
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: LIMITS.heapSampleBytes,
      stackDepth: LIMITS.heapSampleDepth,
    } as Inspector.StartSamplingParameterType);
  }

  /** The profile of now, gzipped. Undefined when nothing is watched. */
  async profile(): Promise<Uint8Array | undefined> {
    if (this.#session === undefined) return undefined;
    const answer = await this.#session.post('HeapProfiler.getSamplingProfile');
    const profile = answer.profile as unknown as SamplingProfile;
    const builder = new PprofBuilder();
    addNode(builder, profile.head, countsOf(profile));
    const encoded = await builder.encode({
      values: [
        { type: 'samples', unit: 'count' },
        { type: 'inuse_space', unit: 'bytes' },
      ],
      period: { type: 'space', unit: 'bytes', every: LIMITS.heapSampleBytes },
      startedAt: this.#startedAt,
      duration: Date.now() - this.#startedAt,
    });
    return promisify(gzip)(encoded);
  }

  stop(): void {
    this.#session?.disconnect();
    this.#session = undefined;
  }
}

/** As V8 gives it; the types of Node know fewer members. */
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

/** Not recursive: a stack may be deeper than ours. */
function addNode(builder: PprofBuilder, head: SamplingNode, counts: Counts): void {
  const pending: { node: SamplingNode; above: Stack }[] = [{ node: head, above: [] }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node, above } = next;
    const stack = node === head ? [] : [node.callFrame, ...above];
    // V8 reports sizes already scaled up to all allocations; how many objects they were it does not tell.
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
