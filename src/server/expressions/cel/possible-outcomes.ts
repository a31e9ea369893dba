import type { Expression, VariableResolver } from '../../kernel/expression.ts';
import { parse } from './engine.ts';
import { CelEvaluationError } from './errors.ts';
import { compileExpression } from './expression.ts';
import type { Node } from './syntax.ts';

/** How a condition may come out; bits of the result of `possibleOutcomes`. A value that is not a boolean is a failure. */
export const OUTCOME = { true: 1, false: 2, fails: 4 } as const;
const ANY = OUTCOME.true | OUTCOME.false | OUTCOME.fails;

/** A condition, taken apart at `&&` and `||`. */
type Condition =
  | { readonly operator: 'and' | 'or'; readonly left: Condition; readonly right: Condition }
  | Expression;

const conditions = new WeakMap<object, Condition>();

/**
 * How an expression may come out if a value that it reads is not known: reading it is an error. `wasAsked`: whether it was read since the
 * last call. Each part between `&&` and `||` is evaluated as in a request. One that has asked may come out in any way, whatever it has
 * made of the error; the others are certain, and may decide alone.
 */
export function possibleOutcomes(
  expression: Pick<Expression, 'source'> & { readonly variables: readonly string[] },
  lookup: VariableResolver,
  wasAsked: () => boolean,
): number {
  const known = conditions.get(expression);
  const condition = known ?? conditionOf(parse(expression.source), expression);
  if (known === undefined) conditions.set(expression, condition);
  wasAsked();
  return outcomesOf(condition, lookup, wasAsked);
}

function conditionOf(
  node: Node,
  expression: { readonly source: string; readonly variables: readonly string[] },
): Condition {
  if (node.kind !== 'and' && node.kind !== 'or')
    // Not the text of the part: its end may lack parentheses.
    return compileExpression(expression.source, expression.variables, node);
  return {
    operator: node.kind,
    left: conditionOf(node.left, expression),
    right: conditionOf(node.right, expression),
  };
}

function outcomesOf(condition: Condition, lookup: VariableResolver, wasAsked: () => boolean): number {
  if (!('operator' in condition)) {
    const outcome = outcomeOf(condition, lookup);
    return wasAsked() ? ANY : outcome;
  }
  const { operator, left, right } = condition;
  // The value that decides alone, also if the other side fails.
  const deciding = operator === 'and' ? OUTCOME.false : OUTCOME.true;
  const first = outcomesOf(left, lookup, wasAsked);
  if (first === deciding) return deciding;
  const second = outcomesOf(right, lookup, wasAsked);
  if (second === deciding) return deciding;
  const other = (OUTCOME.true | OUTCOME.false) & ~deciding;
  return (
    ((first | second) & deciding) |
    (first & second & other) |
    // One side fails, and the other does not decide.
    (((first & OUTCOME.fails) !== 0 && (second & ~deciding) !== 0) ||
    ((second & OUTCOME.fails) !== 0 && (first & ~deciding) !== 0)
      ? OUTCOME.fails
      : 0)
  );
}

function outcomeOf(condition: Expression, lookup: VariableResolver): number {
  try {
    const value = condition.evaluate(lookup);
    if (typeof value !== 'boolean') return OUTCOME.fails;
    return value ? OUTCOME.true : OUTCOME.false;
  } catch (error) {
    if (error instanceof CelEvaluationError) return OUTCOME.fails;
    throw error;
  }
}
