import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Target } from './target.ts';

/** Targets that sent invalid messages within `LIMITS.noiseInterval`, with the number since the last log line. */
const REPORTED = new WeakMap<object, { count: number }>();

/**
 * Logs that a target sent something that is not a JSON-RPC message and was dropped: the first time at once, then at most
 * once per `LIMITS.noiseInterval` with the number since. A server that prints to stdout may do so on every call.
 * `start` returns the beginning of the text, without secrets; it is only called for the first one.
 */
export function logInvalidMessage(
  target: Pick<Target, 'name'>,
  log: Log,
  problem: string,
  start: () => string | undefined = () => undefined,
): void {
  const reported = REPORTED.get(target);
  if (reported !== undefined) {
    reported.count += 1;
    return;
  }
  log.warn('mcp', 'target sent something that is not a JSON-RPC message; it was dropped', {
    target: target.name,
    problem,
    start: start(),
  });
  REPORTED.set(target, { count: 0 });
  setTimeout(summarize, LIMITS.noiseInterval, target, log).unref();
}

function summarize(target: Pick<Target, 'name'>, log: Log): void {
  const reported = REPORTED.get(target);
  if (reported === undefined || reported.count === 0) {
    REPORTED.delete(target);
    return;
  }
  log.warn('mcp', 'target sent more that is not a JSON-RPC message; all of it was dropped', {
    target: target.name,
    count: reported.count,
  });
  reported.count = 0;
  setTimeout(summarize, LIMITS.noiseInterval, target, log).unref();
}
