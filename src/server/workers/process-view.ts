import type { ShownBound } from '../../core/overview.ts';
import type { BackendState, CertificateState, Outage } from '../kernel/inspection.ts';
import type { MetricValues } from '../observe/metrics/family.ts';
import type { OpenRequest } from '../observe/open-request.ts';
import type { RecentRequest } from '../observe/recent-requests.ts';
import type { CountedServices, ServiceStep } from '../observe/service-history.ts';
import type { MemoryUsage } from './memory-usage.ts';
import type { Samples } from './profile/samples.ts';

/** What requests and backends are doing. */
export interface Activity {
  /** Requests whose response has not ended. */
  readonly openRequests: number;
  /** State of the backends, by their path in the configuration. */
  readonly backends: Readonly<Record<string, BackendState>>;
  /** Services of the gateway itself that do not answer this process. */
  readonly outages: readonly Outage[];
  /** Those in use. A file is named several times if several listeners, or processes, have read it. */
  readonly certificates: readonly CertificateState[];
}

/** The requests of one process whose responses have not ended, oldest first. */
export interface OpenRequests {
  readonly total: number;
  /** At most `LIMITS.listedTasks` of them. */
  readonly requests: readonly OpenRequest[];
}

/** One process that handles requests, as the admin server sees it. All results are JSON values. */
export interface ProcessView {
  /** `worker 1`; undefined if there is only one process. */
  readonly name: string | undefined;
  activity(): Promise<Activity>;
  /** Its bounded buffers, queues, caches and counts. */
  bounds(): Promise<readonly ShownBound[]>;
  memory(): Promise<MemoryUsage>;
  /** Gateways with their open requests, and MCP targets, as indented lines. */
  tasks(): Promise<readonly string[]>;
  metrics(): Promise<readonly MetricValues[]>;
  openRequests(): Promise<OpenRequests>;
  /** The requests that finished after the one with this id, oldest first. */
  recentRequests(afterId: number): Promise<readonly RecentRequest[]>;
  /** What it has counted of MCP targets and providers in a period in ms since 1970. */
  services(step: ServiceStep, from: number, to: number): Promise<CountedServices>;
  /**
   * Samples of the CPU time of the next `seconds`, `frequency` per second, or of the memory that is allocated then.
   * Undefined if the process is being sampled already.
   */
  cpuSamples(seconds: number, frequency: number): Promise<Samples | undefined>;
  heapSamples(seconds: number): Promise<Samples | undefined>;
  /** Ends sampling early: nobody waits for its result. */
  stopSampling(): void;
}

/** What each of several processes answers. One that does not, because it is blocked or has just ended, is left out. */
export async function answersOf<T>(
  processes: readonly ProcessView[],
  ask: (process: ProcessView) => Promise<T>,
): Promise<T[]> {
  const settled = await Promise.allSettled(processes.map(ask));
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
}
