/** Codes of compile-time problems of expressions; see `core/diagnostic.ts`. */
export type CelProblemCode = 'AGW0201' | 'AGW0202' | 'AGW0203' | 'AGW0204';

interface CelProblem {
  readonly code: CelProblemCode;
  readonly message: string;
  readonly start: number;
  readonly end: number;
  readonly label?: string | undefined;
  readonly help?: string | undefined;
}

/**
 * An expression that cannot be compiled. `start` and `end` are UTF-16 offsets into the source; `label` stands beside
 * the caret, `help` says how to fix it. All texts are plain words, in lower case and without a full stop.
 */
export class CelSyntaxError extends Error {
  readonly code: CelProblemCode;
  readonly start: number;
  readonly end: number;
  readonly label: string | undefined;
  readonly help: string | undefined;

  constructor(problem: CelProblem) {
    super(problem.message);
    this.name = 'CelSyntaxError';
    this.code = problem.code;
    this.start = problem.start;
    this.end = problem.end;
    this.label = problem.label;
    this.help = problem.help;
  }
}

/** Why an evaluation failed. */
export type Reason =
  | 'no_such_key'
  | 'no_such_overload'
  | 'index_out_of_range'
  | 'division_by_zero'
  | 'overflow'
  | 'invalid_argument'
  | 'failed'
  | 'limit_exceeded'
  | 'budget_exceeded'
  | 'internal';

/**
 * A failed evaluation. The message may be written to logs and traces: it can contain operators, functions and literal
 * keys of the expression, but never a value of a variable.
 */
export class CelEvaluationError extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CelEvaluationError';
    this.reason = reason;
  }
}

/**
 * Returns an error that `||`, `&&`, `exists`, `default` and the like may absorb, and throws any other on: host
 * failures, and the budget, which would otherwise be spent again by the alternative.
 */
export function absorbable(error: unknown): CelEvaluationError {
  if (error instanceof CelEvaluationError && error.reason !== 'budget_exceeded') return error;
  throw error;
}
