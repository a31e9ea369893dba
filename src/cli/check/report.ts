import { styleText } from 'node:util';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls } from '../../core/log.ts';
import { githubAnnotation } from '../../core/render/machine.ts';
import type { Context } from '../context.ts';
import { asCalled } from '../invocation.ts';
import type { Progress } from '../progress.ts';
import type { Check, CheckResult } from './check.ts';

/** A running check under the title of its group. */
export interface Started {
  readonly group: string;
  readonly title: string;
  readonly check: Check;
}

/** A completed check with its result. */
export interface Outcome extends Started {
  readonly results: readonly CheckResult[];
}

/**
 * Waits for all checks and passes their outcomes to `print`, group by group, so that each title is printed once. A group
 * is printed when it is complete and the preceding ones are printed; after `LIMITS.progressIntervalTerminal`, complete
 * groups come first, then the outcomes of an incomplete one as they arrive.
 */
export async function gather(
  all: readonly Started[],
  progress: Progress,
  print: (outcome: Outcome) => void,
): Promise<readonly Outcome[]> {
  const outcomes = new Map<Started, Outcome>();
  const groups = [...Map.groupBy(all, ({ group }) => group).values()].map((members) => new Set(members));
  let current: Set<Started> | undefined;
  const isReady = (started: Started): boolean => outcomes.has(started);
  const nextGroup = (mayOvertake: boolean): Set<Started> | undefined => {
    const waiting = groups.filter(({ size }) => size > 0);
    if (!mayOvertake) return waiting.slice(0, 1).find((group) => [...group].every(isReady));
    return (
      waiting.find((group) => [...group].every(isReady)) ?? waiting.find((group) => [...group].some(isReady))
    );
  };
  const printReady = (mayOvertake: boolean): void => {
    for (;;) {
      current ??= nextGroup(mayOvertake);
      if (current === undefined) return;
      for (const started of current) {
        const outcome = outcomes.get(started);
        if (outcome === undefined) continue;
        current.delete(started);
        progress.clear();
        print(outcome);
      }
      if (current.size > 0) return;
      current = undefined;
    }
  };
  const began = performance.now();
  const tick = setInterval(() => {
    printReady(true);
    const waiting = all.filter((started) => !outcomes.has(started)).map(({ check }) => check.name);
    const seconds = Math.round((performance.now() - began) / 1000);
    progress.show(`still waiting for ${named(waiting)} (${seconds} s)`);
  }, LIMITS.progressIntervalTerminal);
  try {
    await Promise.all(
      all.map(async (started) => {
        outcomes.set(started, { ...started, results: await started.check.results });
        printReady(false);
      }),
    );
  } finally {
    clearInterval(tick);
    progress.clear();
  }
  return all.flatMap((started) => outcomes.get(started) ?? []);
}

const MOST_NAMES = 3;

function named(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return names.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

const MARKS = { ok: ['✓', 'green'], warn: ['!', 'yellow'], fail: ['✗', 'red'], skip: ['–', 'gray'] } as const;

/** Prints outcomes as text: a title whenever the group changes, then one line per result. */
export function textPrinter(context: Context, color: boolean): (outcome: Outcome) => void {
  const write = (text: string): void => void context.stdout.write(text);
  let last: string | undefined;
  return ({ group, title, results }) => {
    if (results.length === 0) return;
    if (group !== last) write(`${title}\n`);
    last = group;
    write(results.map((result) => resultLine(result, color, context)).join(''));
  };
}

function resultLine(
  { status, message, details = [], fix }: CheckResult,
  color: boolean,
  context: Context,
): string {
  const [mark, style] = MARKS[status];
  const shown = color ? styleText(style, mark, { validateStream: false }) : mark;
  const text = (each: string): string => asCalled(escapeControls(each), context);
  const more = details.map((line) => `      ${escapeControls(line)}\n`).join('');
  return `  ${shown} ${text(message)}\n${more}${fix === undefined ? '' : `      fix: ${text(fix)}\n`}`;
}

/** Prints what needs attention as annotations of GitHub Actions: at its line, or else at the file. */
export const githubPrinter =
  (file: string, context: Context): ((outcome: Outcome) => void) =>
  ({ group, results }) => {
    for (const { status, message, details = [], fix, range } of results)
      if (status === 'fail' || status === 'warn')
        context.stdout.write(
          `${githubAnnotation({
            file,
            range,
            severity: status === 'fail' ? 'error' : 'warning',
            title: `agctl check: ${group}`,
            lines: [message, ...details, ...(fix === undefined ? [] : [`fix: ${fix}`])],
          })}\n`,
        );
  };
