// Registers the variables whose members messages know.
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

/** The reason of the evaluation error that an expression ends with; fails the test when it gives a value. */
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

/** The problem that an expression does not compile with. */
export function problem(source: string, variables: readonly string[] = ['request', 'jwt']): CelSyntaxError {
  try {
    compileExpression(source, variables);
  } catch (error) {
    if (error instanceof CelSyntaxError) return error;
    throw error;
  }
  throw new Error(`${source} compiles`);
}
