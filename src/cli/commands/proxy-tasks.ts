import { elementsOf, shownValue } from '../../core/foreign.ts';
import { escapeControls } from '../../core/log.ts';
import type { Run } from '../context.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/debug/tasks', textOf, options, context);

/** The groups of tasks; a task is a text of one or more lines. */
function textOf(groups: Readonly<Record<string, unknown>>): string {
  return Object.entries(groups)
    .flatMap(([name, tasks]) => {
      const lines = elementsOf(tasks).flatMap((task) => shownValue(task).split('\n'));
      return [`${name}: ${lines.length === 0 ? 'none' : ''}`.trim(), ...lines.map((line) => `  ${line}`)];
    })
    .map((line) => `${escapeControls(line)}\n`)
    .join('');
}
