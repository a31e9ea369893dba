import type { Item } from './item.ts';

/** Items of one target. */
export interface Group {
  /** Empty for items whose names tell no target. */
  readonly target: string;
  readonly items: readonly Item[];
}

/**
 * Groups items by the target in their names: with several targets, the gateway names them `target_tool` and
 * `target+uri`. With one target, or without prefixes, there is one group.
 */
export function groupsOf(items: readonly Item[], targets: readonly string[]): readonly Group[] {
  const [only] = targets;
  if (only !== undefined && targets.length === 1) return [{ target: only, items }];
  const groups = Map.groupBy(items, (item) => targetOf(item, targets));
  // In the order of the configuration; items without a target last.
  return [...targets, ''].flatMap((target) => {
    const own = groups.get(target);
    return own === undefined ? [] : [{ target, items: own }];
  });
}

const targetOf = ({ name, uri }: Item, targets: readonly string[]): string =>
  targets.find((target) =>
    uri === undefined
      ? name.startsWith(`${target}_`)
      : uri.startsWith(`${target}+`) || uri.startsWith(`ui://${target}+`),
  ) ?? '';

/** The name of an item at its target. */
export const withoutTarget = (name: string, target: string): string =>
  target !== '' && name.startsWith(`${target}_`) ? name.slice(target.length + 1) : name;

/** The target of an item, of several; the only one; empty if its name tells none. */
export function targetOfItem(item: Item, targets: readonly string[]): string {
  const [only] = targets;
  return only !== undefined && targets.length === 1 ? only : targetOf(item, targets);
}

/** Items that contain every word, in their name, title or description. */
export function matching(items: readonly Item[], text: string): readonly Item[] {
  const words = text.toLowerCase().split(/\s+/);
  return items.filter(({ name, title = '', uri = '', description = '' }) => {
    const all = `${name} ${title} ${uri} ${description}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
