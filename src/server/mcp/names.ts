import { RPC, RpcError } from './protocol.ts';

/**
 * How names of several targets share one endpoint. Tools and prompts become `target_name`, resources
 * `target+uri`; target names hold neither `_` nor `+`, so the first one separates.
 */

export type ItemKind = 'tool' | 'prompt' | 'resource' | 'template' | 'task';

/** A name as the client knows it, taken apart. */
export interface Addressed {
  readonly target: string;
  readonly name: string;
}

/** MCP Apps resources keep their scheme, which tells a client that it may show them. */
const APP_SCHEME = 'ui://';

/** Name of a target's item as the client sees it. */
export function outwardName(kind: ItemKind, target: string, name: string): string {
  if (kind === 'tool' || kind === 'prompt') return `${target}_${name}`;
  return name.startsWith(APP_SCHEME)
    ? `${APP_SCHEME}${target}+${name.slice(APP_SCHEME.length)}`
    : `${target}+${name}`;
}

/** The reverse of `outwardName`; undefined for a name without a separator. */
export function inwardName(kind: ItemKind, outward: string): Addressed | undefined {
  const isApp = kind !== 'tool' && kind !== 'prompt' && outward.startsWith(APP_SCHEME);
  const rest = isApp ? outward.slice(APP_SCHEME.length) : outward;
  const at = rest.indexOf(kind === 'tool' || kind === 'prompt' ? '_' : '+');
  if (at <= 0) return undefined;
  const name = rest.slice(at + 1);
  return { target: rest.slice(0, at), name: isApp ? `${APP_SCHEME}${name}` : name };
}

/** What a list method lists: the member of its result, and which member of an item is its name. */
export interface ListMethod {
  readonly kind: ItemKind;
  readonly member: 'tools' | 'prompts' | 'resources' | 'resourceTemplates' | 'tasks';
  readonly nameKey: 'name' | 'uri' | 'uriTemplate' | 'taskId';
}

/** No prototype in the tables by method: `constructor` is a method that clients may send. */
export const LIST_METHODS: Readonly<Record<string, ListMethod>> = {
  __proto__: null as never,
  'tools/list': { kind: 'tool', member: 'tools', nameKey: 'name' },
  'prompts/list': { kind: 'prompt', member: 'prompts', nameKey: 'name' },
  'resources/list': { kind: 'resource', member: 'resources', nameKey: 'uri' },
  'resources/templates/list': { kind: 'template', member: 'resourceTemplates', nameKey: 'uriTemplate' },
  'tasks/list': { kind: 'task', member: 'tasks', nameKey: 'taskId' },
};

/** Methods that act on one named item, and where their parameters hold the name. */
export const ITEM_METHODS: Readonly<
  Record<string, { readonly kind: ItemKind; readonly namePath: readonly string[] }>
> = {
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

/** The item that a request acts on, under the name that the client uses. */
export interface NamedItem {
  readonly kind: ItemKind;
  readonly namePath: readonly string[];
  readonly name: string;
}

/**
 * The item that a request acts on; undefined for methods that act on none. Throws `RpcError` when the name is missing,
 * no string, or a string that programs read differently: a rule would decide on another name than the target acts on.
 */
export function namedItem(method: string, params: Readonly<Record<string, unknown>>): NamedItem | undefined {
  const item = itemOf(method, params);
  if (item === undefined) {
    if (method !== 'completion/complete') return undefined;
    throw new RpcError(RPC.invalidParams, 'expected params.ref.type to be "ref/prompt" or "ref/resource"');
  }
  const name = nameAt(params, item.namePath);
  const place = `params.${item.namePath.join('.')}`;
  if (name === undefined) throw new RpcError(RPC.invalidParams, `expected ${place} to be a string`);
  // Programs in C end a string at NUL; half a surrogate pair has no form in UTF-8 and becomes another character.
  if (name.includes('\0') || !name.isWellFormed())
    throw new RpcError(
      RPC.invalidParams,
      `expected ${place} to be a string without NUL and without half a surrogate pair`,
    );
  return { ...item, name };
}

/** Kind and place of the item in the parameters. `completion/complete` names a prompt or a template in `ref`. */
export function itemOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
): { kind: ItemKind; namePath: readonly string[] } | undefined {
  if (method !== 'completion/complete') return ITEM_METHODS[method];
  switch ((params['ref'] as { type?: unknown } | null | undefined)?.type) {
    case 'ref/prompt':
      return { kind: 'prompt', namePath: ['ref', 'name'] };
    case 'ref/resource':
      return { kind: 'template', namePath: ['ref', 'uri'] };
    default:
      return undefined;
  }
}

/** The string at a path inside params, or undefined. */
export function nameAt(
  params: Readonly<Record<string, unknown>>,
  path: readonly string[],
): string | undefined {
  let value: unknown = params;
  for (const key of path)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}
