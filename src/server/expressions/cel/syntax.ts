import type { Span } from '../../kernel/expression.ts';

/** The syntax tree that everything behind `engine.ts` works on. `start` and `end` are UTF-16 offsets in the source. */

export type BinaryOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | '+' | '-' | '*' | '/' | '%';

export type Literal = string | bigint | number | boolean | null | Uint8Array | { readonly uint: bigint };

export type Node =
  | (Span & { readonly kind: 'literal'; readonly value: Literal })
  | (Span & { readonly kind: 'name'; readonly name: string })
  | (Span & {
      readonly kind: 'member';
      readonly target: Node;
      readonly name: string;
      /** Where the name itself stands. */
      readonly nameStart: number;
      /** `a.?b`: gives an optional. */
      readonly optional: boolean;
    })
  | (Span & {
      readonly kind: 'index';
      readonly target: Node;
      readonly index: Node;
      readonly optional: boolean;
    })
  | (Span & {
      readonly kind: 'call';
      readonly name: string;
      /** What stands before the dot; absent for `size(x)`. */
      readonly target: Node | undefined;
      readonly args: readonly Node[];
    })
  | (Span & { readonly kind: 'list'; readonly items: readonly Node[] })
  | (Span & { readonly kind: 'map'; readonly entries: readonly (readonly [Node, Node])[] })
  | (Span & { readonly kind: 'choice'; readonly test: Node; readonly yes: Node; readonly no: Node })
  | (Span & { readonly kind: 'and'; readonly left: Node; readonly right: Node })
  | (Span & { readonly kind: 'or'; readonly left: Node; readonly right: Node })
  | (Span & { readonly kind: 'not'; readonly operand: Node })
  | (Span & { readonly kind: 'negate'; readonly operand: Node })
  /** Not written by anyone: a claim on the right of `in` (`claim-lists.ts`). */
  | (Span & { readonly kind: 'asList'; readonly operand: Node })
  | (Span & {
      readonly kind: 'binary';
      readonly operator: BinaryOperator;
      readonly left: Node;
      readonly right: Node;
    });

export type NodeOf<K extends Node['kind']> = Extract<Node, { readonly kind: K }>;

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
