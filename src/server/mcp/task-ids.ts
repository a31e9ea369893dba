import { type Edit, edit, valueAt } from '../kernel/json-text.ts';
import type { Addressed } from './names.ts';

/**
 * Ids of tasks (MCP 2025-11-25, "Tasks") when several targets share one endpoint: `target+id` in every prefix mode, so that
 * requests about a task reach its target, also after a restart of the gateway.
 */

/** Path of the id of the task that a message belongs to. */
const RELATED_TASK = ['_meta', 'io.modelcontextprotocol/related-task', 'taskId'] as const;

/** Methods about one task, which `params.taskId` names. */
export const TASK_METHODS: ReadonlySet<string> = new Set([
  'tasks/get',
  'tasks/result',
  'tasks/update',
  'tasks/cancel',
]);

const STATUS = 'notifications/tasks/status';

/** Converts a target's id of a task to the client's. */
export const outwardTask = (target: string, id: string): string => `${target}+${id}`;

/** Reverses `outwardTask`. Returns undefined for an id without a target. */
export function inwardTask(outward: string): Addressed | undefined {
  const at = outward.indexOf('+');
  return at <= 0 ? undefined : { target: outward.slice(0, at), name: outward.slice(at + 1) };
}

/** Converts task ids in a response to the client's. `isTask`: the result may be a new task. */
export function outwardResult(text: string, target: string, method: string, isTask: boolean): string {
  const paths: string[][] = [['result', ...RELATED_TASK]];
  if (isTask) paths.push(['result', 'task', 'taskId']);
  // The result of `tasks/result` is that of the tool, whose own member may have this name.
  if (TASK_METHODS.has(method) && method !== 'tasks/result') paths.push(['result', 'taskId']);
  return renameTasks(text, paths, (id) => outwardTask(target, id));
}

/** Converts task ids in a notification or request of a server to the client's. */
export function outwardMessage(text: string, target: string, method: string): string {
  const paths: string[][] = [['params', ...RELATED_TASK]];
  if (method === STATUS) paths.push(['params', 'taskId']);
  return renameTasks(text, paths, (id) => outwardTask(target, id));
}

/** Converts task ids in a request or response of the client to those of the target. */
export function inwardMessage(text: string, target: string, method = ''): string {
  const paths: string[][] = [
    ['params', ...RELATED_TASK],
    ['result', ...RELATED_TASK],
  ];
  if (TASK_METHODS.has(method)) paths.push(['params', 'taskId']);
  return renameTasks(text, paths, (id) => {
    const addressed = inwardTask(id);
    // Any other id is that of a task at the client.
    return addressed?.target === target ? addressed.name : id;
  });
}

function renameTasks(text: string, paths: readonly string[][], rename: (id: string) => string): string {
  // Few messages contain a task id, and a search is cheaper than parsing.
  if (!text.includes('"taskId"')) return text;
  const edits = paths.flatMap((path): Edit[] => {
    const span = valueAt(text, path);
    if (span === undefined || text[span.start] !== '"') return [];
    const id = JSON.parse(text.slice(span.start, span.end)) as string;
    return [{ ...span, text: JSON.stringify(rename(id)) }];
  });
  return edit(text, edits);
}
