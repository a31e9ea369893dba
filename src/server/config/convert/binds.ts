import { isMap, type Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';
import {
  commentsOf,
  ensureSeq,
  mapAt,
  newPair,
  pairOf,
  prependComment,
  seqAt,
  takePair,
  textOf,
} from './yaml-edit.ts';

const DEFAULT = 'default';

/** `binds` become `gateways`, and their routes top-level `routes` that name the gateway. */
export function convertBinds(root: YAMLMap, changes: string[]): void {
  const binds = seqAt(root, 'binds');
  if (binds === undefined || binds.items.every(isOnlyBind)) return;
  const bindsPair = pairOf(root, 'binds');
  const hadDefault = mapAt(root, 'gateways')?.has(DEFAULT) === true;
  const gateways = placeGateways(root);
  const renamed = new Map<string, string[]>();
  for (const [index, bind] of binds.items.entries()) {
    if (!isMap(bind) || isOnlyBind(bind)) continue;
    const name = freeName(root, gateways, bind, hadDefault);
    const settings = new YAMLMap();
    const gateway = newPair(name, settings);
    if (index === 0) prependComment(gateway, commentsOf(bindsPair?.key, binds));
    prependComment(gateway, commentsOf(bind));
    gateways.items.push(gateway);
    convertBind(root, bind, name, settings, renamed);
    changes.push(`binds[${index}] is now gateways.${name}`);
  }
  binds.items = binds.items.filter(isOnlyBind);
  if (binds.items.length === 0) takePair(root, 'binds');
  if (gateways.items.length === 0) takePair(root, 'gateways');
  renameTargets(root, renamed, changes);
}

/** Whether gateways have no keys for it: it is for tunnels. */
function isOnlyBind(bind: unknown): boolean {
  return (
    isMap(bind) &&
    bind.items.some((pair) => ['tunnelProtocol', 'mode'].includes(textOf(pair.key) ?? '') && !isDefault(pair))
  );
}

/** Policies that target a listener by its former name get its current one. */
function renameTargets(
  root: YAMLMap,
  renamed: ReadonlyMap<string, readonly string[]>,
  changes: string[],
): void {
  for (const [index, policy] of (seqAt(root, 'policies')?.items ?? []).entries()) {
    const target = isMap(policy) ? mapAt(policy, 'target') : undefined;
    const gateway = target && mapAt(target, 'gateway');
    const former = gateway && textOf(gateway.get('listenerName', true));
    const [name, ...others] = (former === undefined ? undefined : renamed.get(former)) ?? [];
    if (gateway === undefined || name === undefined) continue;
    if (others.length > 0)
      changes.push(
        `policies[${index}].target.gateway.listenerName is left: several listeners are called \`${former}\``,
      );
    else gateway.set('listenerName', name);
  }
}

/** `gateways`, at the place of `binds` if the file has none. */
function placeGateways(root: YAMLMap): YAMLMap {
  const known = mapAt(root, 'gateways');
  if (known !== undefined) return known;
  const created = new YAMLMap();
  const at = root.items.findIndex((pair) => textOf(pair.key) === 'binds');
  root.items.splice(at, 0, newPair('gateways', created));
  return created;
}

/**
 * `default` for the first port, unless a section without a port or a gateway of its own would then move to it;
 * `port-N` otherwise.
 */
function freeName(root: YAMLMap, gateways: YAMLMap, bind: YAMLMap, hadDefault: boolean): string {
  const moves = ['mcp', 'llm', 'ui'].some((key) => {
    const section = mapAt(root, key);
    return section !== undefined && !section.has('port') && !section.has('gateways');
  });
  if (!hadDefault && !moves && !gateways.has(DEFAULT)) return DEFAULT;
  const base = `port-${textOf(bind.get('port', true)) ?? 'any'}`.replaceAll(/[^A-Za-z0-9._-]/g, '');
  let name = base;
  for (let count = 2; gateways.has(name); count += 1) name = `${base}-${count}`;
  return name;
}

function convertBind(
  root: YAMLMap,
  bind: YAMLMap,
  name: string,
  gateway: YAMLMap,
  renamed: Map<string, string[]>,
): void {
  const rename = (former: string, current: string): void =>
    void renamed.set(former, [...(renamed.get(former) ?? []), current]);
  const port = takePair(bind, 'port');
  if (port !== undefined) gateway.items.push(port);
  const listeners = seqAt(bind, 'listeners')?.items.filter((item) => isMap(item)) ?? [];
  const [only] = listeners;
  // A gateway stands for its only listener if that serves every host.
  if (listeners.length === 1 && only !== undefined && !hasHost(only)) {
    takePair(only, 'hostname');
    const listenerName = takePair(only, 'name');
    rename(textOf(listenerName?.value) ?? 'listener0', name);
    moveRoutes(root, only, name === DEFAULT ? undefined : name);
    const keys = unwrapped(only);
    const [first] = keys.length > 0 ? keys : gateway.items;
    if (first !== undefined)
      prependComment(
        first,
        commentsOf(pairOf(bind, 'listeners')?.key, seqAt(bind, 'listeners'), only, listenerName?.key),
      );
    gateway.items.push(...keys);
  } else {
    const list = new YAMLSeq();
    for (const [index, listener] of listeners.entries()) {
      const given = textOf(listener.get('name', true));
      if (given === undefined) listener.items.unshift(newPair('name', `listener${index}`));
      const reference = `${name}/${given ?? `listener${index}`}`;
      rename(given ?? `listener${index}`, reference);
      moveRoutes(root, listener, reference);
      const items = unwrapped(listener);
      listener.items.splice(0, listener.items.length, ...items);
      list.items.push(listener);
    }
    gateway.items.push(newPair('listeners', list));
  }
  // What is left is not known, and is reported at its new place.
  takePair(bind, 'listeners');
  gateway.items.push(...bind.items.filter((pair) => !isDefault(pair)));
}

const hasHost = (listener: YAMLMap): boolean =>
  !['*', undefined].includes(textOf(listener.get('hostname', true)));

/** Values that a gateway always has, and has no keys for. */
function isDefault({ key, value }: Pair): boolean {
  return (
    (textOf(key) === 'tunnelProtocol' && textOf(value) === 'direct') ||
    (textOf(key) === 'mode' && textOf(value) === 'standard')
  );
}

/** The keys of a listener, with its policies as keys of its own. */
function unwrapped(listener: YAMLMap): Pair[] {
  return listener.items.flatMap((pair) => {
    if (textOf(pair.key) !== 'policies' || !isMap(pair.value)) return [pair];
    const [first] = pair.value.items;
    if (first !== undefined) prependComment(first, commentsOf(pair.key, pair.value));
    return pair.value.items;
  });
}

/** Moves routes to the top level, where they name their gateway, unless it is the default one. */
function moveRoutes(root: YAMLMap, listener: YAMLMap, reference: string | undefined): void {
  for (const key of ['routes', 'tcpRoutes']) {
    const pair = takePair(listener, key);
    const routes = pair?.value;
    if (!(routes instanceof YAMLSeq)) continue;
    const target = ensureSeq(root, key);
    for (const [index, route] of routes.items.entries()) {
      if (!isMap(route)) continue;
      if (index === 0) {
        const comment = commentsOf(pair?.key, routes);
        if (comment !== undefined)
          route.commentBefore =
            route.commentBefore === undefined ? comment : `${comment}\n${route.commentBefore ?? ''}`;
      }
      if (reference !== undefined) {
        const after = route.items.findIndex(({ key: each }) => textOf(each) === 'name');
        route.items.splice(after + 1, 0, newPair('gateways', new Scalar(reference)));
      }
      target.items.push(route);
    }
  }
}
