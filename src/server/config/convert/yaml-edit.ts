import { isCollection, isMap, isScalar, isSeq, type Node, Pair, Scalar, YAMLMap, YAMLSeq } from 'yaml';

/** The text of a scalar; undefined for other nodes. */
export function textOf(node: unknown): string | undefined {
  return isScalar(node) ? String(node.value) : undefined;
}

/** The mapping under a key; undefined if there is none. */
export function mapAt(map: YAMLMap, key: string): YAMLMap | undefined {
  const value = map.get(key, true) as unknown;
  return isMap(value) ? value : undefined;
}

/** The list under a key; undefined if there is none. */
export function seqAt(map: YAMLMap, key: string): YAMLSeq | undefined {
  const value = map.get(key, true) as unknown;
  return isSeq(value) ? value : undefined;
}

export function pairOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((pair) => textOf(pair.key) === key);
}

/** Takes a pair out of a mapping, with its comments. */
export function takePair(map: YAMLMap, key: string): Pair | undefined {
  const pair = pairOf(map, key);
  if (pair !== undefined) map.items.splice(map.items.indexOf(pair), 1);
  return pair;
}

/** The mapping under a key, created at the end if it is missing. */
export function ensureMap(map: YAMLMap, key: string): YAMLMap {
  const known = mapAt(map, key);
  if (known !== undefined) return known;
  const created = new YAMLMap();
  map.items.push(newPair(key, created));
  return created;
}

/** The list under a key, created at the end if it is missing. */
export function ensureSeq(map: YAMLMap, key: string): YAMLSeq {
  const known = seqAt(map, key);
  if (known !== undefined) return known;
  const created = new YAMLSeq();
  map.items.push(newPair(key, created));
  return created;
}

export function newPair(key: string, value: Node | string | number): Pair {
  return new Pair(new Scalar(key), typeof value === 'object' ? value : new Scalar(value));
}

/** Comments in front of nodes that are removed, for the node that takes their place. */
export function commentsOf(...nodes: readonly unknown[]): string | undefined {
  const texts = nodes.flatMap((node) => {
    if (!isScalar(node) && !isCollection(node)) return [];
    return [node.commentBefore, node.comment].filter((text) => text !== undefined && text !== null);
  });
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** Puts comments in front of those that a key has. */
export function prependComment({ key }: Pair, comment: string | undefined): void {
  if (comment === undefined || !isScalar(key)) return;
  key.commentBefore = key.commentBefore === undefined ? comment : `${comment}\n${key.commentBefore ?? ''}`;
}
