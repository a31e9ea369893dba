import type { Expression } from '../kernel/expression.ts';

/**
 * What expressions of the access log, metrics and spans read. Features keep a payload, such as a request body or a tool
 * result, until the log line is written only if one of these expressions, or the record of requests, reads it.
 */
export class LogReads {
  readonly #expressions: readonly Pick<Expression, 'reads'>[];
  readonly #known = new Map<string, boolean>();

  constructor(expressions: readonly Pick<Expression, 'reads'>[]) {
    this.#expressions = expressions;
  }

  /** Whether an expression may read one of these dotted paths, such as `request.body`. Paths are constants, so the cache stays small. */
  reads(...paths: readonly string[]): boolean {
    return this.#expressions.length > 0 && paths.some((path) => this.#readsPath(path));
  }

  #readsPath(path: string): boolean {
    let known = this.#known.get(path);
    if (known === undefined) {
      known = this.#expressions.some((expression) => expression.reads(path));
      this.#known.set(path, known);
    }
    return known;
  }
}
