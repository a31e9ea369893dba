import { type Edit, edit, valueAt } from '../kernel/json-text.ts';
import type { Addressed } from './names.ts';

/**
 * Ids of tasks (MCP 2025-11-25, "Tasks") where several targets share one endpoint: `target+id`, whatever the prefix mode,
 * so that each request about a task finds the target that owns it, also after a restart of the gateway.
 */

/** In `_meta`: the task that a message belongs to. */
const RELATED_TASK = ['_meta', 'io.modelcontextprotocol/related-task', 'taskId'] as const;

/** Methods about one task, which `params.taskId` names. */
export const TASK_METHODS: ReadonlySet<string> = new Set([
  'tasks/get',
  'tasks/result',
  'tasks/update',
  'tasks/cancel',
]);

const STATUS = 'notifications/tasks/status';

/** A task's id as the client sees it. */
export const outwardTask = (target: string, id: string): string => `${target}+${id}`;

/** The reverse of `outwardTask`; undefined for an id without a target. */
export function inwardTask(outward: string): Addressed | undefined {
  const at = outward.indexOf('+');
  return at <= 0 ? undefined : { target: outward.slice(0, at), name: outward.slice(at + 1) };
}

/** The response to a request of the client, with ids as the client sees them. `isTask`: its result may be a new task. */
export function outwardResult(text: string, target: string, method: string, isTask: boolean): string {
  const paths: string[][] = [['result', ...RELATED_TASK]];
  if (isTask) paths.push(['result', 'task', 'taskId']);
  // The result of a task is that of its tool, where a member of this name would be the tool's own.
  if (TASK_METHODS.has(method) && method !== 'tasks/result') paths.push(['result', 'taskId']);
  return renamed(text, paths, (id) => outwardTask(target, id));
}

/** A notification or request of a server, with ids as the client sees them. */
export function outwardMessage(text: string, target: string, method: string): string {
  const paths: string[][] = [['params', ...RELATED_TASK]];
  if (method === STATUS) paths.push(['params', 'taskId']);
  return renamed(text, paths, (id) => outwardTask(target, id));
}

/** A request or an answer of the client on its way to a target, with ids as that target knows them. */
export function inwardMessage(text: string, target: string, method = ''): string {
  const paths: string[][] = [
    ['params', ...RELATED_TASK],
    ['result', ...RELATED_TASK],
  ];
  if (TASK_METHODS.has(method)) paths.push(['params', 'taskId']);
  return renamed(text, paths, (id) => {
    const addressed = inwardTask(id);
    // Another id is a task of the client's own.
    return addressed?.target === target ? addressed.name : id;
  });
}

function renamed(text: string, paths: readonly string[][], rename: (id: string) => string): string {
  // Hardly any message holds one; looking costs less than walking.
  if (!text.includes('"taskId"')) return text;
  const edits = paths.flatMap((path): Edit[] => {
    const span = valueAt(text, path);
    if (span === undefined || text[span.start] !== '"') return [];
    const id = JSON.parse(text.slice(span.start, span.end)) as string;
    return [{ ...span, text: JSON.stringify(rename(id)) }];
  });
  return edit(text, edits);
}
