import type { CelResult, Expression, VariableResolver } from '../../kernel/expression.ts';
import { compile } from './compile.ts';
import { parse } from './engine.ts';
import { CelEvaluationError } from './errors.ts';
import { enterBudget, leaveBudget } from './limits.ts';
import { nonBooleanType } from './non-boolean-type.ts';
import { fromCel } from './results.ts';
import type { Node } from './syntax.ts';
import { isGuarded, type NeededEntry, unguardedEntry } from './unguarded.ts';

export { type ComparedText, comparedTexts } from './compared-texts.ts';
export { CelEvaluationError, CelSyntaxError } from './errors.ts';
export { HeadersView } from './headers-view.ts';
export { CelStruct, toCel } from './values.ts';

/**
 * Compiles an expression with these root variables. Throws `CelSyntaxError` with a code, a position and a hint if it does
 * not parse, is over a limit, or uses an unknown variable or function. `tree` is a part of it, to evaluate that alone.
 */
export function compileExpression(
  source: string,
  variables: readonly string[],
  tree: Node = parse(source),
): Expression {
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
      // A stack trace would take four fifths of the time of a failing expression and is never shown.
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

/** The request header without which a valid expression fails, although it may look as if it evaluated to false. */
export function neededHeader({ source }: Pick<Expression, 'source'>): NeededEntry | undefined {
  return unguardedEntry(parse(source), 'request.headers', EVERY_REQUEST);
}

/** Whether an expression reads a path without checking first whether it exists. */
export function readsUnguarded(expression: Pick<Expression, 'source' | 'reads'>, path: string): boolean {
  return expression.reads(path) && !isGuarded(parse(expression.source), path);
}

/** The value of an expression; undefined if the evaluation fails for any reason. */
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

/** Whether the expression evaluates to true. Any other value counts as false. Throws `CelEvaluationError` if it fails. */
export function isTrue(expression: Expression, lookup: VariableResolver): boolean {
  return expression.evaluate(lookup) === true;
}

// An error thrown by a resolver or member is a bug of the gateway: no fallback in the expression may hide it.
function hostFailure(cause: unknown): CelEvaluationError {
  return new CelEvaluationError('internal', 'the expression could not be evaluated', cause);
}
