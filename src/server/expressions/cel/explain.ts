import type { CelResult, VariableResolver } from '../../kernel/expression.ts';
import { compile } from './compile.ts';
import { parse } from './engine.ts';
import { CelEvaluationError, CelSyntaxError } from './errors.ts';
import { enterBudget, leaveBudget } from './limits.ts';
import { operandsOf } from './operands.ts';
import { fromCel } from './results.ts';
import type { Node } from './syntax.ts';

/** A part of an expression, `source.slice(start, end)`, and what it gives on its own. */
export interface ExplainedPart {
  readonly start: number;
  readonly end: number;
  readonly outcome: { readonly value: CelResult } | { readonly error: string };
}

/**
 * What the parts of an expression give, in the order of the text: paths, calls and comparisons, without literals and
 * without the expression itself. Parts that mean nothing on their own, such as the body of a macro, are left out, and
 * so is what is over `limit`. Each part is evaluated by itself: for people who look, never for requests at large.
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
  while (pending.length > 0 && parts.length < limit) {
    const node = pending.shift() as Node;
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

/** What a path starts from, unless that is a variable. */
function pathParts(target: Node): readonly Node[] {
  if (target.kind === 'name') return [];
  return target.kind === 'member' || target.kind === 'index' ? partsOf(target) : [target];
}
