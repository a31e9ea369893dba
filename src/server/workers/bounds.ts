import { LIMITS } from '../../core/limits.ts';
import type { LineSink } from '../../core/log.ts';
import type { ShownBound } from '../../core/overview.ts';
import { cachedPatternCount } from '../expressions/cel/functions/regex.ts';
import { CEL_LIMITS } from '../expressions/cel/limits.ts';
import type { Bound } from '../kernel/inspection.ts';
import type { Gateway } from '../runtime/gateway.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { hostLookup } from '../transport/upstream/host-lookup.ts';

/** All bounds of a process that handles requests, with their maximum, and their use if it outlasts a single request. */
export async function processBounds({ gateway, runtime, sinks }: BoundSources): Promise<ShownBound[]> {
  const connections = await gateway.connections();
  return [
    ...connections.map(({ name, count }) => ({
      name: 'connections',
      at: name,
      used: count,
      max: LIMITS.connections,
    })),
    ...[...runtime.inspection.bounds, ...PROCESS, ...gateway.metrics.bounds()].map(shown),
    ...Object.entries(sinks).map(([name, sink]) => ({
      name: 'log.queueBytes',
      at: name,
      ...(sink.queued === undefined ? {} : { used: sink.queued }),
      max: LIMITS.logQueueBytes,
      dropped: sink.dropped,
    })),
    ...EACH,
  ];
}

/** Where the bounds are. */
export interface BoundSources {
  readonly gateway: Pick<Gateway, 'connections' | 'metrics'>;
  readonly runtime: Pick<Runtime, 'inspection'>;
  /** Log outputs by name. */
  readonly sinks: Readonly<Record<string, LineSink>>;
}

const shown = ({ used, ...bound }: Bound): ShownBound => ({ ...bound, used: used() });

/** Bounds that all configurations of the process share. */
const PROCESS: readonly Bound[] = [
  {
    name: 'upstream.hosts',
    max: LIMITS.cachedHostLookups,
    keepsLatest: true,
    used: () => hostLookup.remembered,
  },
  { name: 'cel.patterns', max: CEL_LIMITS.patterns, keepsLatest: true, used: cachedPatternCount },
];

/** Buffers that live only as long as a request or message. Counting them would cost every request. */
const EACH: readonly ShownBound[] = [
  { name: 'request.headerBytes', at: 'each request', max: LIMITS.headerBytes },
  { name: 'request.bodyBytes', at: 'each request', max: LIMITS.requestBodyBytes },
  { name: 'llm.requestBytes', at: 'each request', max: LIMITS.llmRequestBytes },
  { name: 'request.spans', at: 'each request', max: LIMITS.spansPerRequest },
  { name: 'response.waitingBytes', at: 'each response', max: LIMITS.streamHighWaterBytes },
  { name: 'llm.responseBodyBytes', at: 'each response', max: LIMITS.responseBodyBytes },
  { name: 'llm.batchLineBytes', at: 'each response', max: LIMITS.batchLineBytes },
  { name: 'llm.streamFrameBytes', at: 'each response', max: LIMITS.streamFrameBytes },
  { name: 'guardrail.heldBytes', at: 'each response', max: LIMITS.guardrailHeldBytes },
  { name: 'guardrail.answerBytes', at: 'each call', max: LIMITS.guardrailBody },
  { name: 'extAuthz.answerBytes', at: 'each call', max: LIMITS.authorizationBody },
  { name: 'extProc.answerBytes', at: 'each answer, besides a body', max: LIMITS.processorAnswer },
  { name: 'mcpAuthentication.keySetBytes', at: 'each answer', max: LIMITS.keySetBytes },
  { name: 'mcpAuthentication.metadataBytes', at: 'each answer', max: LIMITS.metadataBytes },
  { name: 'mcpAuthentication.registrationBytes', at: 'each answer', max: LIMITS.registrationBytes },
  { name: 'mcp.messageBytes', at: 'each message of a target', max: LIMITS.targetMessageBytes },
  { name: 'mcp.child.inputBytes', at: 'each child', max: LIMITS.childInputBytes },
  { name: 'mcp.child.errorBytes', at: 'each child', max: LIMITS.childErrorBytes },
  { name: 'trace.followed', at: 'each trace', max: LIMITS.traceFollowed },
  { name: 'trace.bodyBytes', at: 'each traced body', max: LIMITS.traceBodyBytes },
  { name: 'admin.bodyBytes', at: 'each admin request', max: LIMITS.adminBody },
  { name: 'playground.replyBytes', at: 'each playground request', max: LIMITS.playgroundReplyBytes },
];
