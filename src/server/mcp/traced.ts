import type { RequestObserver } from '../kernel/observer.ts';
import type { Target } from './target.ts';

/** How a trace names a target: `host:port`, or `stdio:<name>` for a child process. */
export const traceName = ({ name, endpoint }: Target): string => endpoint ?? `stdio:${name}`;

/** A result came over HTTP with 200; a child process has no statuses. */
export const statusOf = ({ endpoint }: Target): number | null => (endpoint === undefined ? null : 200);

/** Tells who watches of something that is asked of a target, at its begin and its end. */
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
