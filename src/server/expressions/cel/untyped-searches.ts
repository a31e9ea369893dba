import type { Span } from '../../kernel/expression.ts';
import { parse } from './engine.ts';
import { type Node, operandsOf } from './syntax.ts';

/** A value that an expression searches. */
export interface Searched extends Span {
  readonly text: string;
}

/**
 * Values inside of a path such as `mcp.tool.arguments` that a valid expression searches by `contains` without asking for
 * their `type`. Of a list, `contains` looks for an equal item, and of a map for a key (upstream), where other methods of
 * texts fail.
 */
export function untypedSearches(source: string, path: string): readonly Searched[] {
  const typed = new Set<string>();
  const found: Searched[] = [];
  const visit = (node: Node): void => {
    const textOf = ({ start, end }: Span): string => source.slice(start, end);
    if (node.kind === 'call' && node.name === 'type') for (const arg of node.args) typed.add(textOf(arg));
    if (node.kind === 'call' && node.name === 'contains' && node.target && isInside(node.target, path)) {
      const { start, end } = node.target;
      found.push({ start, end, text: textOf(node.target) });
    }
    for (const operand of operandsOf(node)) visit(operand);
  };
  visit(parse(source));
  return found.filter(({ text }) => !typed.has(text));
}

/** Whether a node reads a member of a path, also with another value where there is none. */
function isInside(node: Node, path: string): boolean {
  if (node.kind === 'call' && node.name === 'orValue' && node.target) return isInside(node.target, path);
  if (node.kind === 'call' && node.name === 'default') return node.args.some((arg) => isInside(arg, path));
  const holder = node.kind === 'member' || node.kind === 'index' ? node.target : undefined;
  return holder !== undefined && (nameOf(holder) === path || isInside(holder, path));
}

/** `a.b` also for `a.?b`. */
function nameOf(node: Node): string | undefined {
  if (node.kind === 'name') return node.name;
  return node.kind === 'member' ? `${nameOf(node.target)}.${node.name}` : undefined;
}
