import type { RequestObserver } from '../kernel/observer.ts';
import type { Target } from './target.ts';

/** How a trace names a target: `host:port`, or `stdio:<name>` for a child process. */
export const traceName = ({ name, endpoint }: Target): string => endpoint ?? `stdio:${name}`;

/** Status of a successful call for traces: 200 over HTTP, null for a child process. */
export const statusOf = ({ endpoint }: Target): number | null => (endpoint === undefined ? null : 200);

/** Reports start, end and failure of a call to a target to the observer. Settles like `work`. */
export async function traced<T>(observer: RequestObserver, target: Target, work: Promise<T>): Promise<T> {
  const since = observer.callStarted(traceName(target), 'mcp');
  try {
    const result = await work;
    observer.callEnded(traceName(target), since, statusOf(target), 'mcp');
    return result;
  } catch (error) {
    observer.callFailed(traceName(target), since, error, 'mcp');
    throw error;
  }
}
