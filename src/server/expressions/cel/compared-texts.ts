import type { Span } from '../../kernel/expression.ts';
import { dottedName } from './access.ts';
import { parse } from './engine.ts';
import { CelSyntaxError } from './errors.ts';
import { type Node, operandsOf } from './syntax.ts';

/** A literal text that an expression compares with a value. */
export interface ComparedText extends Span {
  readonly text: string;
  /** Whether only the beginning is compared (`startsWith`). */
  readonly isStart: boolean;
}

/** The literals in `path == "x"`, `path != "x"`, `path in ["x"]` and `path.startsWith("x")`. None if it does not parse. */
export function comparedTexts(source: string, path: string): readonly ComparedText[] {
  try {
    return textsIn(parse(source), path);
  } catch (error) {
    if (error instanceof CelSyntaxError) return [];
    throw error;
  }
}

function textsIn(node: Node, path: string): ComparedText[] {
  const below = operandsOf(node).flatMap((operand) => textsIn(operand, path));
  if (node.kind === 'call') {
    if (node.name !== 'startsWith' || node.target === undefined) return below;
    return dottedName(node.target) === path ? [...node.args.flatMap(literal(true)), ...below] : below;
  }
  if (node.kind !== 'binary') return below;
  const { operator, left, right } = node;
  const isEquation = operator === '==' || operator === '!=';
  if (dottedName(left) === path && (isEquation || operator === 'in'))
    return [...(right.kind === 'list' ? right.items : [right]).flatMap(literal(false)), ...below];
  return isEquation && dottedName(right) === path ? [...literal(false)(left), ...below] : below;
}

const literal =
  (isStart: boolean) =>
  (node: Node): ComparedText[] =>
    node.kind === 'literal' && typeof node.value === 'string'
      ? [{ text: node.value, isStart, start: node.start, end: node.end }]
      : [];
