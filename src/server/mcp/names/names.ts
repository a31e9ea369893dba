import { isRecord, membersOf } from '../../../core/foreign.ts';
import { type Edit, edit, elements, stringOf, valueAt } from '../../kernel/json/json-text.ts';
import { RPC, RpcError } from '../protocol/protocol.ts';

/**
 * Names of items when several targets share one endpoint. Tools and prompts become `target_name`, resources
 * `target+uri`. Names of targets contain neither `_` nor `+`, so the first one is the separator.
 *
 * Ids of tasks (MCP 2025-11-25, "Tasks") become `target+id` in every prefix mode, so that requests about a task reach its
 * target, also after a restart of the gateway.
 */

export type ItemKind = 'tool' | 'prompt' | 'resource' | 'template' | 'task';

/** A name that the client uses, split into target and name. */
interface Addressed {
  readonly target: string;
  readonly name: string;
}

/** Scheme of MCP Apps resources. It is kept, because clients recognize resources that they may display by it. */
const APP_SCHEME = 'ui://';

/** Converts a target's name of an item to the client's. */
export function outwardName(kind: ItemKind, target: string, name: string): string {
  if (kind === 'tool' || kind === 'prompt') return `${target}_${name}`;
  return name.startsWith(APP_SCHEME)
    ? `${APP_SCHEME}${target}+${name.slice(APP_SCHEME.length)}`
    : `${target}+${name}`;
}

/** Reverses `outwardName`. Returns undefined for a name without a separator. */
export function inwardName(kind: ItemKind, outward: string): Addressed | undefined {
  const isApp = kind !== 'tool' && kind !== 'prompt' && outward.startsWith(APP_SCHEME);
  const rest = isApp ? outward.slice(APP_SCHEME.length) : outward;
  const at = rest.indexOf(kind === 'tool' || kind === 'prompt' ? '_' : '+');
  if (at <= 0) return undefined;
  const name = rest.slice(at + 1);
  return { target: rest.slice(0, at), name: isApp ? `${APP_SCHEME}${name}` : name };
}

/** Result of a list method: the member that holds the items, and the member of an item that names it. */
export interface ListMethod {
  readonly kind: ItemKind;
  readonly member: 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | 'tasks';
  readonly nameKey: 'name' | 'uri' | 'uriTemplate' | 'taskId';
}

/** The list of tools. */
export const TOOL_LIST: ListMethod = { kind: 'tool', member: 'tools', nameKey: 'name' };

/** List methods. Without a prototype, because clients may send the method `constructor`. */
export const LIST_METHODS: Readonly<Record<string, ListMethod>> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  'tools/list': TOOL_LIST,
  'prompts/list': { kind: 'prompt', member: 'prompts', nameKey: 'name' },
  'resources/list': { kind: 'resource', member: 'resources', nameKey: 'uri' },
  'resources/templates/list': { kind: 'template', member: 'resourceTemplates', nameKey: 'uriTemplate' },
  'tasks/list': { kind: 'task', member: 'tasks', nameKey: 'taskId' },
};

/** Methods that act on one named item, with the path of the name in their parameters. */
const ITEM_METHODS: Readonly<
  Record<string, { readonly kind: ItemKind; readonly namePath: readonly string[] }>
> = {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- no member, but the prototype
  __proto__: null as never,
  'tools/call': { kind: 'tool', namePath: ['name'] },
  'prompts/get': { kind: 'prompt', namePath: ['name'] },
  'resources/read': { kind: 'resource', namePath: ['uri'] },
  'resources/subscribe': { kind: 'resource', namePath: ['uri'] },
  'resources/unsubscribe': { kind: 'resource', namePath: ['uri'] },
  'tasks/get': { kind: 'task', namePath: ['taskId'] },
  'tasks/result': { kind: 'task', namePath: ['taskId'] },
  'tasks/update': { kind: 'task', namePath: ['taskId'] },
  'tasks/cancel': { kind: 'task', namePath: ['taskId'] },
};

/** The item that a request acts on, with the client's name for it. */
export interface NamedItem {
  readonly kind: ItemKind;
  readonly namePath: readonly string[];
  readonly name: string;
}

/**
 * Returns the item that a request acts on, or undefined for methods without one. Throws `RpcError` if the name is missing,
 * not a string, or a string that programs read differently, so that a rule would check another name than the target uses.
 */
export function namedItem(method: string, params: Readonly<Record<string, unknown>>): NamedItem | undefined {
  const item = itemOf(method, params);
  if (item === undefined) {
    if (method !== 'completion/complete') return undefined;
    throw new RpcError(RPC.invalidParams, 'expected params.ref.type to be "ref/prompt" or "ref/resource"');
  }
  const name = nameAt(params, item.namePath);
  const path = `params.${item.namePath.join('.')}`;
  if (name === undefined) throw new RpcError(RPC.invalidParams, `expected ${path} to be a string`);
  // Strings of C programs end at NUL. A lone surrogate has no UTF-8 encoding and becomes another character.
  if (name.includes('\0') || !name.isWellFormed())
    throw new RpcError(RPC.invalidParams, `expected ${path} to be a string without NUL and lone surrogates`);
  if (item.namePath[0] === 'name') checkArguments(params);
  return { ...item, name };
}

/**
 * Throws `RpcError` for arguments of a tool or prompt that are not an object. Servers differ in what they make of a text with JSON (python-sdk's FastMCP
 * parses it), which rules and guardrails would not have read. Null counts as absent.
 */
function checkArguments(params: Readonly<Record<string, unknown>>): void {
  const { arguments: args } = params;
  if (args !== undefined && args !== null && !isRecord(args))
    throw new RpcError(RPC.invalidParams, 'expected params.arguments to be an object');
}

/** An item does not exist, or the caller must not know of it. */
export class UnknownItemError extends RpcError {}

/** `name` is the client's. */
export function unknownItem(kind: ItemKind, name: string): UnknownItemError {
  return new UnknownItemError(
    RPC.invalidParams,
    `Unknown ${kind === 'template' ? 'resource' : kind}: ${name}`,
  );
}

/** Kind of the item and path of its name in the parameters. `completion/complete` names a prompt or a template in `ref`. */
export function itemOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
): { kind: ItemKind; namePath: readonly string[] } | undefined {
  if (method !== 'completion/complete') return ITEM_METHODS[method];
  switch (membersOf(params['ref'])['type']) {
    case 'ref/prompt':
      return { kind: 'prompt', namePath: ['ref', 'name'] };
    case 'ref/resource':
      return { kind: 'template', namePath: ['ref', 'uri'] };
    default:
      return undefined;
  }
}

/** Returns the string at a path inside the parameters, or undefined. */
export function nameAt(
  params: Readonly<Record<string, unknown>>,
  path: readonly string[],
): string | undefined {
  let value: unknown = params;
  for (const key of path) value = membersOf(value)[key];
  return typeof value === 'string' ? value : undefined;
}

/** Path of the id of the task that a message belongs to. */
const RELATED_TASK = ['_meta', 'io.modelcontextprotocol/related-task', 'taskId'] as const;

/** Methods about one task, which `params.taskId` names. */
const TASK_METHODS: ReadonlySet<string> = new Set([
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

/**
 * Converts task ids in a response to the client's. `mayBeTask`: the client of revision 2025-11-25 requested a task. `isTask`:
 * the result is a task of the extension of 2026-07-28 (SEP-2663).
 */
export function outwardResult(
  text: string,
  target: string,
  method: string,
  { mayBeTask, isTask }: { readonly mayBeTask: boolean; readonly isTask: boolean },
): string {
  const paths: string[][] = [['result', ...RELATED_TASK]];
  if (mayBeTask) paths.push(['result', 'task', 'taskId']);
  // The result of `tasks/result` is that of the tool, whose own member may have this name.
  if (isTask || (TASK_METHODS.has(method) && method !== 'tasks/result')) paths.push(['result', 'taskId']);
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
    const id = stringOf(text.slice(span.start, span.end));
    return [{ ...span, text: JSON.stringify(rename(id)) }];
  });
  return edit(text, edits);
}

/** Converts resource URIs in a result (contents, links, embedded resources) to those with which clients can read them. */
export function outwardUris(text: string, target: string): string {
  // Most results contain none, and a search is cheaper than parsing.
  if (!text.includes('"uri"')) return text;
  const edits: Edit[] = [];
  const rename = (path: readonly string[], base: { start: number; end: number }): void => {
    const item = text.slice(base.start, base.end);
    const span = valueAt(item, path);
    if (span === undefined || item[span.start] !== '"') return;
    const uri = stringOf(item.slice(span.start, span.end));
    edits.push({
      start: base.start + span.start,
      end: base.start + span.end,
      text: JSON.stringify(outwardName('resource', target, uri)),
    });
  };
  for (const item of itemsAt(text, ['result', 'contents'])) rename(['uri'], item);
  for (const item of itemsAt(text, ['result', 'content'])) renameContent(text, item, rename);
  for (const item of itemsAt(text, ['result', 'messages'])) {
    const content = valueAt(text.slice(item.start, item.end), ['content']);
    if (content !== undefined)
      renameContent(text, { start: item.start + content.start, end: item.start + content.end }, rename);
  }
  return edit(text, edits);
}

function renameContent(
  text: string,
  item: { start: number; end: number },
  rename: (path: readonly string[], base: typeof item) => void,
): void {
  const content = text.slice(item.start, item.end);
  const typeSpan = valueAt(content, ['type']);
  const type = typeSpan && content.slice(typeSpan.start, typeSpan.end);
  if (type === '"resource_link"') rename(['uri'], item);
  else if (type === '"resource"') rename(['resource', 'uri'], item);
}

function itemsAt(text: string, path: readonly string[]): { start: number; end: number }[] {
  const span = valueAt(text, path);
  return span !== undefined && text[span.start] === '[' ? elements(text, span.start) : [];
}
