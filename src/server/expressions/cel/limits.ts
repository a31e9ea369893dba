import { CelEvaluationError } from './errors.ts';

/** Bounds of one expression and of one evaluation. */
export const CEL_LIMITS = {
  /** Length of the source in UTF-16 units. */
  sourceLength: 16 * 1024,
  nodes: 1_000,
  /** Nesting of parentheses, lists, arguments and members (upstream's parser allows as much). */
  depth: 48,
  /** Items of a list or keys of a map that a step may walk over or build. */
  items: 10_000,
  /** Length of a text or byte string that a step may build: twice the largest body. */
  textLength: 4 * 1024 * 1024,
  /**
   * Work of one evaluation. A step is an expression node in a loop, or the share of a library call that takes about as
   * long: under half a microsecond on a slow core, so that an evaluation holds the event loop for less than 50 ms.
   */
  steps: 100_000,
  /** Compiled regular expressions that are kept for patterns computed at run time. */
  patterns: 128,
  patternLength: 1_000,
} as const;

/**
 * Steps that the running evaluation may still take. Evaluation is synchronous, so one counter serves all expressions;
 * a lookup that evaluates another expression meanwhile saves and restores it through `enterBudget`. Outside of an
 * evaluation nothing is counted.
 */
let left = Number.POSITIVE_INFINITY;

/** Starts an evaluation with a full budget. Returns what to hand to `leaveBudget` when it ends. */
export function enterBudget(): number {
  const outer = left;
  left = CEL_LIMITS.steps;
  return outer;
}

export function leaveBudget(outer: number): void {
  left = outer;
}

/** Takes steps from the budget. Throws `budget_exceeded` when none are left, and on every later call too. */
export function charge(steps: number): void {
  left -= steps;
  if (left < 0)
    throw new CelEvaluationError(
      'budget_exceeded',
      `the expression takes more than ${CEL_LIMITS.steps} steps`,
    );
}

/** Throws `limit_exceeded` when a list or map has too many items to walk over or to build; charges for them otherwise. */
export function chargeItems(count: number): void {
  if (count > CEL_LIMITS.items) {
    throw new CelEvaluationError('limit_exceeded', `a list or map has more than ${CEL_LIMITS.items} items`);
  }
  charge(1 + (count >> 3));
}

/** Charges for reading through a text or byte string. */
export function chargeRead(length: number): void {
  charge(1 + (length >> 8));
}

/** Throws `limit_exceeded` when a text or byte string would get too long to build; charges for it otherwise. */
export function chargeText(length: number): void {
  if (length > CEL_LIMITS.textLength) {
    throw new CelEvaluationError(
      'limit_exceeded',
      `a string is longer than ${CEL_LIMITS.textLength} characters`,
    );
  }
  chargeRead(length);
}
