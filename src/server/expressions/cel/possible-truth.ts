import type { Expression, VariableResolver } from '../../kernel/expression.ts';
import { parse } from './engine.ts';
import { CelEvaluationError } from './errors.ts';
import { compileExpression } from './expression.ts';
import type { Node } from './syntax.ts';

/** A condition, taken apart at `&&` and `||`. */
type Condition =
  | { readonly operator: 'and' | 'or'; readonly left: Condition; readonly right: Condition }
  | Expression;

const conditions = new WeakMap<object, Condition>();

/**
 * Whether an expression may be true, although a value that it reads is not known: reading it is an error. `wasAsked`: whether it was
 * read since the last call. A part that fails for another reason is never true, so it decides an `&&`, which evaluation does not see:
 * it reports one of the errors.
 */
export function mayBeTrue(
  expression: Pick<Expression, 'source'> & { readonly variables: readonly string[] },
  lookup: VariableResolver,
  wasAsked: () => boolean,
): boolean {
  const known = conditions.get(expression);
  const condition = known ?? conditionOf(parse(expression.source), expression);
  if (known === undefined) conditions.set(expression, condition);
  return holds(condition, lookup, wasAsked);
}

function conditionOf(
  node: Node,
  expression: { readonly source: string; readonly variables: readonly string[] },
): Condition {
  if (node.kind !== 'and' && node.kind !== 'or')
    return compileExpression(expression.source.slice(node.start, node.end), expression.variables);
  return {
    operator: node.kind,
    left: conditionOf(node.left, expression),
    right: conditionOf(node.right, expression),
  };
}

function holds(condition: Condition, lookup: VariableResolver, wasAsked: () => boolean): boolean {
  if ('operator' in condition) {
    const { operator, left, right } = condition;
    const may = holds(left, lookup, wasAsked);
    if (may === (operator === 'or')) return may;
    return holds(right, lookup, wasAsked);
  }
  try {
    return condition.evaluate(lookup) === true;
  } catch (error) {
    if (error instanceof CelEvaluationError) return wasAsked();
    throw error;
  } finally {
    wasAsked();
  }
}
