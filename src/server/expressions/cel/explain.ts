import type { CelResult, VariableResolver } from '../../kernel/expression.ts';
import { compile } from './compile.ts';
import { parse } from './engine.ts';
import { CelEvaluationError, CelSyntaxError } from './errors.ts';
import { enterBudget, leaveBudget } from './limits.ts';
import { fromCel } from './results.ts';
import { type Node, operandsOf } from './syntax.ts';

/** A subexpression, `source.slice(start, end)`, and the outcome of evaluating it alone. */
export interface ExplainedPart {
  readonly start: number;
  readonly end: number;
  readonly outcome: { readonly value: CelResult } | { readonly error: string };
}

/**
 * Evaluates the subexpressions of an expression, in the order of the source: paths, calls and comparisons, but not
 * literals and the expression itself. Omits those that cannot be evaluated alone, such as the body of a macro, and those
 * beyond `limit`. Each one is evaluated separately, so this is only for observed requests.
 */
export function explainExpression(
  source: string,
  variables: readonly string[],
  lookup: VariableResolver,
  limit: number,
): ExplainedPart[] {
  const root = parse(source);
  const parts: ExplainedPart[] = [];
  const pending = [...partsOf(root)];
  while (parts.length < limit) {
    const node = pending.shift();
    if (node === undefined) break;
    pending.unshift(...partsOf(node));
    if (node.kind === 'literal') continue;
    const outcome = evaluate(node, variables, lookup);
    if (outcome !== undefined) parts.push({ start: node.start, end: node.end, outcome });
  }
  return parts;
}

function evaluate(
  node: Node,
  variables: readonly string[],
  lookup: VariableResolver,
): ExplainedPart['outcome'] | undefined {
  const outer = enterBudget();
  try {
    const { step, slots } = compile(node, variables);
    return { value: fromCel(step({ slots: new Array(slots), lookup })) };
  } catch (error) {
    if (error instanceof CelEvaluationError) return { error: error.message };
    if (error instanceof CelSyntaxError) return undefined;
    throw error;
  } finally {
    leaveBudget(outer);
  }
}

/** The parts of a node. A path is one part, whatever its length. */
function partsOf(node: Node): readonly Node[] {
  if (node.kind === 'member') return pathParts(node.target);
  if (node.kind === 'index') return [...pathParts(node.target), node.index];
  return operandsOf(node);
}

/** The start of a path, unless it is a variable. */
function pathParts(target: Node): readonly Node[] {
  if (target.kind === 'name') return [];
  return target.kind === 'member' || target.kind === 'index' ? partsOf(target) : [target];
}
