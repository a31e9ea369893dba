// Registers the variables so that error messages know their members.
import '../../../src/server/features.ts';
import {
  CelEvaluationError,
  CelSyntaxError,
  compileExpression,
} from '../../../src/server/expressions/cel/expression.ts';
import type { CelResult } from '../../../src/server/kernel/expression.ts';

type Variables = Readonly<Record<string, unknown>>;

/** Compiles and evaluates with exactly these variables. */
export function run(source: string, variables: Variables = {}): CelResult {
  return compileExpression(source, Object.keys(variables)).evaluate((root) => variables[root]);
}

/** Reason of the evaluation error of an expression; fails the test when the expression has a value. */
export function reason(source: string, variables: Variables = {}): string {
  return failure(source, variables).reason;
}

export function failure(source: string, variables: Variables = {}): CelEvaluationError {
  const expression = compileExpression(source, Object.keys(variables));
  try {
    expression.evaluate((root) => variables[root]);
  } catch (error) {
    if (error instanceof CelEvaluationError) return error;
    throw error;
  }
  throw new Error(`${source} gives a value`);
}

/** The compile error of an expression. */
export function problem(source: string, variables: readonly string[] = ['request', 'jwt']): CelSyntaxError {
  try {
    compileExpression(source, variables);
  } catch (error) {
    if (error instanceof CelSyntaxError) return error;
    throw error;
  }
  throw new Error(`${source} compiles`);
}
