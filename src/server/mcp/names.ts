/**
 * How names of several targets share one endpoint. Tools and prompts become `target_name`, resources
 * `target+uri`; target names hold neither `_` nor `+`, so the first one separates.
 */

export type ItemKind = 'tool' | 'prompt' | 'resource' | 'template';

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
  readonly member: 'tools' | 'prompts' | 'resources' | 'resourceTemplates';
  readonly nameKey: 'name' | 'uri' | 'uriTemplate';
}

export const LIST_METHODS: Readonly<Record<string, ListMethod>> = {
  'tools/list': { kind: 'tool', member: 'tools', nameKey: 'name' },
  'prompts/list': { kind: 'prompt', member: 'prompts', nameKey: 'name' },
  'resources/list': { kind: 'resource', member: 'resources', nameKey: 'uri' },
  'resources/templates/list': { kind: 'template', member: 'resourceTemplates', nameKey: 'uriTemplate' },
};

/** Methods that act on one named item, and where their parameters hold the name. */
export const ITEM_METHODS: Readonly<
  Record<string, { readonly kind: ItemKind; readonly namePath: readonly string[] }>
> = {
  'tools/call': { kind: 'tool', namePath: ['name'] },
  'prompts/get': { kind: 'prompt', namePath: ['name'] },
  'resources/read': { kind: 'resource', namePath: ['uri'] },
  'resources/subscribe': { kind: 'resource', namePath: ['uri'] },
  'resources/unsubscribe': { kind: 'resource', namePath: ['uri'] },
};

/** `completion/complete` names a prompt or a template in `ref`. */
export function itemOf(
  method: string,
  params: Readonly<Record<string, unknown>>,
): { kind: ItemKind; namePath: readonly string[] } | undefined {
  if (method !== 'completion/complete') return ITEM_METHODS[method];
  const type = (params['ref'] as { type?: unknown } | undefined)?.type;
  return type === 'ref/prompt'
    ? { kind: 'prompt', namePath: ['ref', 'name'] }
    : { kind: 'template', namePath: ['ref', 'uri'] };
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
