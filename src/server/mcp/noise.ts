import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Target } from './target.ts';

/** Targets that sent noise within the last minute, and how often since it was logged. */
const NOISY = new WeakMap<object, { count: number }>();

/**
 * Tells the log of something from a target that is not a message, and was dropped: at once, and then once a minute with
 * how much came since. A server that prints on its stdout may do so with every call.
 */
export function noteNoise(
  target: Pick<Target, 'name'>,
  log: Log,
  problem: string,
  start: () => string | undefined = () => undefined,
): void {
  const noisy = NOISY.get(target);
  if (noisy !== undefined) {
    noisy.count += 1;
    return;
  }
  log.warn('mcp', 'target sent something that is not a JSON-RPC message; it was dropped', {
    target: target.name,
    problem,
    start: start(),
  });
  NOISY.set(target, { count: 0 });
  setTimeout(summarize, LIMITS.noiseInterval, target, log).unref();
}

function summarize(target: Pick<Target, 'name'>, log: Log): void {
  const noisy = NOISY.get(target);
  if (noisy === undefined || noisy.count === 0) {
    NOISY.delete(target);
    return;
  }
  log.warn('mcp', 'target sent more that is not a JSON-RPC message; all of it was dropped', {
    target: target.name,
    count: noisy.count,
  });
  noisy.count = 0;
  setTimeout(summarize, LIMITS.noiseInterval, target, log).unref();
}
