import type { CelResult, Expression, VariableResolver } from '../../kernel/expression.ts';
import { compile } from './compile.ts';
import { parse } from './engine.ts';
import { CelEvaluationError } from './errors.ts';
import { enterBudget, leaveBudget } from './limits.ts';
import { nonBooleanType } from './non-boolean-type.ts';
import { fromCel } from './results.ts';
import { isGuarded, type NeededEntry, unguardedEntry } from './unguarded.ts';

export { CelEvaluationError, CelSyntaxError } from './errors.ts';
export { HeadersView } from './headers-view.ts';
export { CelStruct, toCel } from './values.ts';

/**
 * Compiles an expression for a place that has these root variables. Throws `CelSyntaxError` with a code, a place and
 * a hint when it does not parse, is over a limit, or uses a variable or function that the place does not have.
 */
export function compileExpression(source: string, variables: readonly string[]): Expression {
  const tree = parse(source);
  const { step, slots, roots, paths, inOnStrings } = compile(tree, variables);
  return {
    source,
    roots,
    paths,
    inOnStrings,
    nonBooleanType: nonBooleanType(tree),
    reads: (path) =>
      [...paths.keys()].some(
        (read) => read === path || read.startsWith(`${path}.`) || path.startsWith(`${read}.`),
      ),
    evaluate(lookup) {
      const outer = enterBudget();
      // A failing expression spends four fifths of its time on a stack trace that nobody sees.
      const traces = Error.stackTraceLimit;
      Error.stackTraceLimit = 0;
      try {
        return fromCel(step({ slots: new Array(slots), lookup }));
      } catch (error) {
        throw error instanceof CelEvaluationError ? error : hostFailure(error);
      } finally {
        Error.stackTraceLimit = traces;
        leaveBudget(outer);
      }
    },
  };
}

/** Every request has them: HTTP/1.1 asks for the one, and the gateway makes the others (RFC 9113 §8.3.1). */
const EVERY_REQUEST: ReadonlySet<string> = new Set(['host', ':authority', ':method', ':path', ':scheme']);

/** The request header without which a valid expression fails, although it reads as if it were false then. */
export function neededHeader({ source }: Pick<Expression, 'source'>): NeededEntry | undefined {
  return unguardedEntry(parse(source), 'request.headers', EVERY_REQUEST);
}

/** Whether an expression reads what is at a path without looking first whether it is there. */
export function readsUnguarded(expression: Pick<Expression, 'source' | 'reads'>, path: string): boolean {
  return expression.reads(path) && !isGuarded(parse(expression.source), path);
}

/** The value of an expression; undefined when it gives none, whatever the reason. */
export function tryEvaluate(
  expression: Pick<Expression, 'evaluate'>,
  lookup: VariableResolver,
): CelResult | undefined {
  try {
    return expression.evaluate(lookup);
  } catch (error) {
    if (error instanceof CelEvaluationError) return undefined;
    throw error;
  }
}

/** Whether the expression gives true. Any other value is false. Throws `CelEvaluationError` when it gives none. */
export function isTrue(expression: Expression, lookup: VariableResolver): boolean {
  return expression.evaluate(lookup) === true;
}

// A lookup or a member that throws is the gateway's failure: no fallback in the expression may hide it.
function hostFailure(cause: unknown): CelEvaluationError {
  return new CelEvaluationError('internal', 'the expression could not be evaluated', cause);
}
