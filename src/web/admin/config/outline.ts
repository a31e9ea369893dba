import { yamlLanguage } from '@codemirror/lang-yaml';

/** A section of the configuration. */
export interface Heading {
  readonly label: string;
  /** Number of enclosing sections. */
  readonly depth: number;
  readonly offset: number;
}

const MOST = 500;
const DEEPEST = 6;
const LONGEST = 60;
const COLLECTIONS = new Set(['BlockMapping', 'BlockSequence']);

type Node = ReturnType<typeof yamlLanguage.parser.parse>['topNode'];

/** Keys with nested values, and list entries by their names, in source order. */
export function outlineOf(text: string): Heading[] {
  const headings: Heading[] = [];
  const walk = (node: Node, depth: number): void => {
    if (headings.length >= MOST || depth >= DEEPEST) return;
    for (let child = node.firstChild; child !== null; child = child.nextSibling) {
      const label = labelOf(child, text);
      if (label !== undefined) headings.push({ label: label.slice(0, LONGEST), depth, offset: child.from });
      walk(child, label === undefined ? depth : depth + 1);
    }
  };
  walk(yamlLanguage.parser.parse(text).topNode, 0);
  return headings.slice(0, MOST);
}

function labelOf(node: Node, text: string): string | undefined {
  const last = node.lastChild;
  if (last === null || !COLLECTIONS.has(last.name)) return undefined;
  if (node.name === 'Pair') return keyOf(node, text);
  if (node.name !== 'Item') return undefined;
  const pairs = last.getChildren('Pair');
  const named = pairs.find((pair) => keyOf(pair, text) === 'name')?.lastChild;
  if (named) return unquoted(text.slice(named.from, named.to));
  return pairs[0] === undefined ? undefined : `- ${keyOf(pairs[0], text)}`;
}

function keyOf(pair: Node, text: string): string {
  const key = pair.getChild('Key');
  return key === null ? '' : unquoted(text.slice(key.from, key.to));
}

const unquoted = (text: string): string => text.replace(/^(["'])(.*)\1$/s, '$2');
