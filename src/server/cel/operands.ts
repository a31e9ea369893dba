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
      return [node.operand];
    default:
      return [node.left, node.right];
  }
}
