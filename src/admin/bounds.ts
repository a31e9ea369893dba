import { LIMITS } from '../core/limits.ts';
import { cachedPatternCount } from '../server/expressions/cel/functions/regex.ts';
import { CEL_LIMITS } from '../server/expressions/cel/limits.ts';
import type { Bound } from '../server/kernel/inspection.ts';
import { hostLookup } from '../server/transport/host-lookup.ts';
import type { Admin } from './sources.ts';

/** A bounded buffer, queue, cache or count, as listed by `/memory`. */
export interface ShownBound {
  readonly name: string;
  /** Identifies one of several; `each …` if every request, message or stream has its own. */
  readonly at?: string;
  /** Absent if it is not counted. */
  readonly used?: number;
  readonly max: number;
  /** Items dropped at the bound. */
  readonly dropped?: number;
}

/** All bounds, with their maximum, and their current use if it outlasts a single request. */
export async function boundsOf(admin: Admin): Promise<ShownBound[]> {
  const { gateway, sinks } = admin;
  const connections = await gateway.connections();
  return [
    ...connections.map(({ name, count }) => ({
      name: 'connections',
      at: name,
      used: count,
      max: LIMITS.connections,
    })),
    ...[...admin.served().runtime.inspection.bounds, ...PROCESS, ...gateway.metrics.bounds()].map(shown),
    ...(await ownBounds(admin)),
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

const shown = ({ name, at, max, used }: Bound): ShownBound => ({
  name,
  ...(at === undefined ? {} : { at }),
  used: used(),
  max,
});

/** Bounds that all configurations of the process share. */
const PROCESS: readonly Bound[] = [
  { name: 'upstream.hosts', max: LIMITS.cachedHostLookups, used: () => hostLookup.remembered },
  { name: 'cel.patterns', max: CEL_LIMITS.patterns, used: cachedPatternCount },
];

/** Bounds of the admin server. For a bound per stream, the fullest stream counts. */
async function ownBounds({ gateway, requests, streams, connections }: Admin): Promise<ShownBound[]> {
  const queued = [...streams].flatMap((stream) => stream.queued?.() ?? []);
  return [
    { name: 'trace.watchers', used: gateway.traceSubscribers.size, max: LIMITS.traceWatchers },
    {
      name: 'trace.queueEvents',
      used: Math.max(0, ...queued.map(({ events }) => events)),
      max: LIMITS.traceQueueEvents,
    },
    {
      name: 'trace.queueBytes',
      used: Math.max(0, ...queued.map(({ bytes }) => bytes)),
      max: LIMITS.traceQueueBytes,
    },
    { name: 'admin.connections', used: await connections(), max: LIMITS.operatorServerConnections },
    { name: 'admin.streams', used: streams.size, max: LIMITS.adminStreams },
    { name: 'admin.recentRequests', used: requests.length, max: LIMITS.recentRequests },
    { name: 'admin.recentRequestBytes', used: requests.size, max: LIMITS.recentRequestBytes },
  ];
}

/** Buffers that live only as long as a request or message. Counting them would cost every request. */
const EACH: readonly ShownBound[] = [
  { name: 'request.headerBytes', at: 'each request', max: LIMITS.headerBytes },
  { name: 'request.bodyBytes', at: 'each request', max: LIMITS.requestBodyBytes },
  { name: 'request.spans', at: 'each request', max: LIMITS.spansPerRequest },
  { name: 'response.waitingBytes', at: 'each response', max: LIMITS.streamHighWaterBytes },
  { name: 'llm.responseBodyBytes', at: 'each response', max: LIMITS.responseBodyBytes },
  { name: 'llm.streamFrameBytes', at: 'each response', max: LIMITS.streamFrameBytes },
  { name: 'guardrail.heldBytes', at: 'each response', max: LIMITS.guardrailHeldBytes },
  { name: 'guardrail.answerBytes', at: 'each call', max: LIMITS.guardrailBody },
  { name: 'extAuthz.answerBytes', at: 'each call', max: LIMITS.authorizationBody },
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
