import type { Node } from './syntax.ts';

/** The nodes that a node is made of, in the order of the text. */
export function operandsOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case 'literal':
    case 'name':
      return [];
    case 'member':
      return [node.target];
    case 'index':
      return [node.target, node.index];
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args];
    case 'list':
      return node.items;
    case 'map':
      return node.entries.flat();
    case 'choice':
      return [node.test, node.yes, node.no];
    case 'not':
    case 'negate':
    case 'asList':
      return [node.operand];
    default:
      return [node.left, node.right];
  }
}

/** The same node with each of its operands replaced. */
export function mapOperands(node: Node, change: (operand: Node) => Node): Node {
  switch (node.kind) {
    case 'literal':
    case 'name':
      return node;
    case 'member':
      return { ...node, target: change(node.target) };
    case 'index':
      return { ...node, target: change(node.target), index: change(node.index) };
    case 'call':
      return {
        ...node,
        target: node.target === undefined ? undefined : change(node.target),
        args: node.args.map(change),
      };
    case 'list':
      return { ...node, items: node.items.map(change) };
    case 'map':
      return { ...node, entries: node.entries.map(([key, value]) => [change(key), change(value)] as const) };
    case 'choice':
      return { ...node, test: change(node.test), yes: change(node.yes), no: change(node.no) };
    case 'not':
    case 'negate':
    case 'asList':
      return { ...node, operand: change(node.operand) };
    default:
      return { ...node, left: change(node.left), right: change(node.right) };
  }
}
