import type { TracePlace } from '../../core/trace/event.ts';
import type { Expression, TracedExpression } from '../kernel/expression.ts';
import { CelEvaluationError } from './cel/expression.ts';

/** Makes an expression report its results to the request's observer. Without one, this costs a check for `undefined`. */
export function traced(
  expression: Expression,
  variables: readonly string[],
  place: TracePlace,
): TracedExpression {
  const placed: TracedExpression = {
    ...expression,
    place,
    variables,
    evaluate(resolver) {
      const { observed } = resolver;
      if (observed === undefined) return expression.evaluate(resolver);
      const { observer, peek } = observed;
      const since = observer.now;
      try {
        const value = expression.evaluate(resolver);
        observer.expression(placed, since, peek, { value });
        return value;
      } catch (error) {
        if (error instanceof CelEvaluationError)
          observer.expression(placed, since, peek, { error: error.message });
        throw error;
      }
    },
  };
  return placed;
}
