import type { Log } from '../../../core/log.ts';
import type { Target } from './target.ts';

// Warnings about what targets send, each logged once and not with every message.

/** Targets that sent invalid messages within `LIMITS.invalidMessageLogInterval`, with the number since the last log line. */
const REPORTED = new WeakMap<object, { count: number }>();

/**
 * Logs that a target sent something that is not a JSON-RPC message and was dropped: the first time at once, then at most
 * once per `LIMITS.invalidMessageLogInterval` with the number since. A server that prints to stdout may do so on every call.
 * `start` returns the beginning of the text, without secrets; it is only called for the first one.
 */
export function logInvalidMessage(
  target: Pick<Target, 'name' | 'limits'>,
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
  setTimeout(summarize, target.limits.invalidMessageLogInterval, target, log).unref();
}

function summarize(target: Pick<Target, 'name' | 'limits'>, log: Log): void {
  const reported = REPORTED.get(target);
  if (reported === undefined || reported.count === 0) {
    REPORTED.delete(target);
    return;
  }
  log.warn('mcp', 'target sent more messages that are not JSON-RPC; they were dropped', {
    target: target.name,
    count: reported.count,
  });
  reported.count = 0;
  setTimeout(summarize, target.limits.invalidMessageLogInterval, target, log).unref();
}

/** Targets that answered with an id which no request had. */
const ANSWERED_OTHERS = new WeakSet<object>();

/** Logs a response to a request that was not sent, once per target: its calls get no answer and time out. `id`: as JSON text. */
export function logUnknownResponse(target: Pick<Target, 'name'>, log: Log, id: string | undefined): void {
  if (ANSWERED_OTHERS.has(target)) return;
  ANSWERED_OTHERS.add(target);
  log.warn('mcp', 'target sent a response whose id is none of a request; such responses are dropped', {
    target: target.name,
    id: (id ?? 'none').slice(0, LOGGED_LENGTH),
  });
}

/** "Tool Names" of MCP 2025-11-25: 1 to 128 of these characters, unique within a server. */
const VALID = /^[A-Za-z0-9_.-]*$/;
const MAX_LENGTH = 128;
/** Maximum length of a name in the log, in characters. */
const LOGGED_LENGTH = 64;

/** Problems that were logged, by target: each one is logged once, not with every list. */
const logged = new WeakMap<Target, Set<string>>();

/** Logs tool names that clients or models may reject or confuse. Each problem is logged once per target. */
export function warnAboutToolNames(log: Log, target: Target, names: readonly unknown[]): void {
  const seen = new Set<unknown>();
  const repeated = new Set<unknown>();
  for (const name of names) (seen.has(name) ? repeated : seen).add(name);
  const texts = [...seen].filter((name) => typeof name === 'string');
  warn(
    log,
    target,
    'is empty',
    texts.filter((name) => name === ''),
  );
  warn(
    log,
    target,
    `is longer than ${MAX_LENGTH} characters`,
    texts.filter((name) => name.length > MAX_LENGTH),
  );
  warn(
    log,
    target,
    'has other characters than letters, digits, `_`, `-` and `.`',
    texts.filter((name) => !VALID.test(name)),
  );
  warn(log, target, 'is used twice', [...repeated]);
}

/** Logs a tool that is left out, since clients would refuse all tools with it. Logged once per target. */
export function warnAboutUnreadableTool(log: Log, target: Target, name: string): void {
  if (isFirst(target, 'inputSchema'))
    log.warn(
      'mcp',
      'target lists a tool whose inputSchema accepts no object; clients cannot call it, so it is left out',
      {
        target: target.name,
        name: name.slice(0, LOGGED_LENGTH),
      },
    );
}

function warn(log: Log, target: Target, problem: string, names: readonly unknown[]): void {
  if (names.length === 0 || !isFirst(target, problem)) return;
  log.warn('mcp', `target lists a tool whose name ${problem}`, {
    target: target.name,
    name: String(names[0]).slice(0, LOGGED_LENGTH),
    count: names.length,
  });
}

function isFirst(target: Target, problem: string): boolean {
  const known = logged.get(target) ?? new Set();
  if (known.has(problem)) return false;
  logged.set(target, known.add(problem));
  return true;
}
