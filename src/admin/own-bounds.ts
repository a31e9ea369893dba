import { LIMITS } from '../core/limits.ts';
import type { ShownBound } from '../core/overview.ts';
import { auditOf } from '../server/audit/audit.ts';
import type { Admin } from './sources.ts';

const NONE = { used: 0, max: LIMITS.auditRecent };
const LATEST = { keepsLatest: true } as const;

/** Bounds of the admin server. For a bound per stream, the fullest stream counts. */
export async function ownBounds({ gateway, streams, connections, served }: Admin): Promise<ShownBound[]> {
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
    { name: 'admin.recentRequests', used: gateway.requests.length, max: LIMITS.recentRequests, ...LATEST },
    {
      name: 'admin.recentRequestBytes',
      used: gateway.requests.size,
      max: LIMITS.recentRequestBytes,
      ...LATEST,
    },
    { name: 'admin.auditEvents', ...(auditOf.get(served().runtime.settings)?.kept ?? NONE), ...LATEST },
  ];
}
