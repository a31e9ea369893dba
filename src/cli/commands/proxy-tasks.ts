import { escapeControls } from '../../core/log.ts';
import type { Run } from '../context.ts';
import { isObject } from '../proxy/dump-parts.ts';
import { type ShowOptions, showJson } from '../proxy/show-json.ts';

export const run: Run<ShowOptions> = (options, context) => showJson('/debug/tasks', textOf, options, context);

/** The groups of tasks; a task is a text of one or more lines. */
function textOf(value: unknown): string {
  const groups = isObject(value) ? Object.entries(value) : [];
  return groups
    .flatMap(([name, tasks]) => {
      const lines = (Array.isArray(tasks) ? tasks : []).flatMap((task) =>
        (typeof task === 'string' ? task : JSON.stringify(task)).split('\n'),
      );
      return [`${name}: ${lines.length === 0 ? 'none' : ''}`.trim(), ...lines.map((line) => `  ${line}`)];
    })
    .map((line) => `${escapeControls(line)}\n`)
    .join('');
}
