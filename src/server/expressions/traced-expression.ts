import type { TracePlace } from '../../core/trace/event.ts';
import { CelEvaluationError, type Expression } from './cel/expression.ts';
import type { Lookup } from './variables.ts';

/** An expression of the configuration: it knows its place, and tells who watches the request what it gave. */
export interface PlacedExpression extends Expression {
  readonly place: TracePlace;
  /** Root variables that it could read. */
  readonly variables: readonly string[];
}

/** Makes an expression tell. Costs one look at `undefined` while nobody watches. */
export function watchable(
  expression: Expression,
  variables: readonly string[],
  place: TracePlace,
): PlacedExpression {
  const placed: PlacedExpression = {
    ...expression,
    place,
    variables,
    evaluate(lookup) {
      const { watched } = lookup as Lookup;
      if (watched === undefined) return expression.evaluate(lookup);
      const { tracer, peek } = watched;
      const since = tracer.now;
      try {
        const value = expression.evaluate(lookup);
        tracer.expression(placed, since, peek, { value });
        return value;
      } catch (error) {
        if (error instanceof CelEvaluationError)
          tracer.expression(placed, since, peek, { error: error.message });
        throw error;
      }
    },
  };
  return placed;
}
