import type { RecentRequests } from '../observe/recent-requests.ts';
import type { TraceSubscribers } from '../observe/trace-subscribers.ts';
import type { Gateway } from '../runtime/gateway.ts';
import type { ProcessView } from './process-view.ts';

/** The last finished requests of all processes. */
export interface RequestHistory extends Pick<RecentRequests, 'length' | 'size' | 'watch' | 'list'> {
  /** Resolves when `list` has every request that has finished so far. */
  update(): Promise<void>;
}

/** A running gateway as the admin server sees it, whether this process or several workers handle its requests. */
export interface Serving extends Pick<Gateway, 'listeners'> {
  /** The processes that handle requests. */
  readonly processes: readonly ProcessView[];
  readonly traceSubscribers: Pick<TraceSubscribers, 'subscribe' | 'size'>;
  readonly requests: RequestHistory;
  /** Starts keeping the last requests; returns a function that stops it. */
  recordRequests(): () => void;
  /** All metrics as OpenMetrics text. */
  renderMetrics(): Promise<string>;
}
