import type { Expression } from './expression.ts';

/**
 * What the expressions of the access log, the metrics and the spans read. Features keep a payload (a request body, the
 * result of a tool) until the log is written only when one of these expressions reads it.
 */
export class LogReads {
  readonly #expressions: readonly Pick<Expression, 'reads'>[];
  readonly #known = new Map<string, boolean>();

  constructor(expressions: readonly Pick<Expression, 'reads'>[]) {
    this.#expressions = expressions;
  }

  /** Whether an expression may read the member at one of these dotted paths, such as `request.body`. Paths come from code, so the cache stays small. */
  reads(...paths: readonly string[]): boolean {
    return paths.some((path) => this.#readsPath(path));
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
