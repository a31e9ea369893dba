import type { Log } from '../../core/log.ts';
import type { Target } from './target.ts';

/** "Tool Names" of MCP 2025-11-25: 1 to 128 of these characters, unique within a server. */
const USUAL = /^[A-Za-z0-9_.-]*$/;
const LONGEST = 128;
/** Characters of a name in the log. */
const SHOWN = 64;

/** What the log has been told of each target: a problem is told once, not with every list. */
const told = new WeakMap<Target, Set<string>>();

/** Warns of tool names that clients, models or people who read them may take for something else. */
export function warnOfToolNames(log: Log, target: Target, names: readonly unknown[]): void {
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
    `is longer than ${LONGEST} characters`,
    texts.filter((name) => name.length > LONGEST),
  );
  warn(
    log,
    target,
    'has other characters than letters, digits, `_`, `-` and `.`',
    texts.filter((name) => !USUAL.test(name)),
  );
  warn(log, target, 'is used twice', [...repeated]);
}

function warn(log: Log, target: Target, problem: string, names: readonly unknown[]): void {
  if (names.length === 0) return;
  const known = told.get(target) ?? new Set();
  if (known.has(problem)) return;
  told.set(target, known.add(problem));
  log.warn('mcp', `target lists a tool whose name ${problem}`, {
    target: target.name,
    name: String(names[0]).slice(0, SHOWN),
    count: names.length,
  });
}
