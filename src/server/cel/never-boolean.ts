import type { Node } from './syntax.ts';

/**
 * What an expression gives when that is certainly not a boolean, in words (`a number`, `a list`); undefined when it
 * may be one. Looks at the outermost node only: what variables and functions give is not known before they do.
 */
export function neverBoolean(node: Node): string | undefined {
  switch (node.kind) {
    case 'literal':
      return literal(node.value);
    case 'list':
      return 'a list';
    case 'map':
      return 'a map';
    case 'negate':
      return 'a number';
    case 'binary':
      return ARITHMETIC[node.operator];
    case 'choice': {
      const yes = neverBoolean(node.yes);
      return yes !== undefined && neverBoolean(node.no) !== undefined ? yes : undefined;
    }
    default:
      return undefined;
  }
}

const ARITHMETIC: Readonly<Record<string, string>> = {
  '+': 'a number, text or list',
  '-': 'a number or a time',
  '*': 'a number',
  '/': 'a number',
  '%': 'a number',
};

function literal(value: unknown): string | undefined {
  if (typeof value === 'boolean') return undefined;
  if (value === null) return 'null';
  if (typeof value === 'string') return 'a text';
  return value instanceof Uint8Array ? 'bytes' : 'a number';
}
