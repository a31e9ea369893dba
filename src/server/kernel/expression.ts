import type { TracePlace } from '../../core/trace/event.ts';
// oxlint-disable-next-line import/no-cycle -- see request-context.ts.
import type { RequestObserver, RequestSpan } from './observer.ts';

/** Part of a source text, as UTF-16 offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The result of an evaluation, converted to values that JSON and headers can represent. */
export type CelResult =
  | string
  | number
  | boolean
  | null
  | Uint8Array
  | CelResult[]
  | { [key: string]: CelResult };

/** Returns the value of a root variable; null or undefined if it is not set. Called at most once per evaluation and root. */
export interface VariableResolver {
  (root: string): unknown;
  /** Set while the request is observed. `peek` reads a variable without caching it. */
  observed?: { readonly observer: RequestObserver; peek(root: string): unknown } | undefined;
  /** Set when the request is recorded as a span. */
  span?: RequestSpan | undefined;
}

/** A compiled expression. Immutable; may be evaluated from anywhere, including a resolver. */
export interface Expression {
  readonly source: string;
  /** Names of the root variables that it reads. */
  readonly roots: ReadonlySet<string>;
  /** Dotted paths that it reads, such as `jwt.sub`, each with its first position in the source. */
  readonly paths: ReadonlyMap<string, Span>;
  /** Uses of `in` on a value that is always a string; these always fail. */
  readonly inOnStrings: readonly Span[];
  /** Description of the result type if it is never a boolean, otherwise undefined. */
  readonly nonBooleanType: string | undefined;
  /**
   * Whether it may read the member at a dotted path, such as `request.body`. Also true if it uses a parent as a whole
   * (`request[name]`, `variables()`, `toJson(request)`) or something below the member.
   */
  reads(path: string): boolean;
  /**
   * Evaluates the expression synchronously, within a limited number of steps. Values of the resolver are converted with
   * `toCel`, so it may return plain JSON, `CelStruct` and `HeadersView`. Throws only `CelEvaluationError`.
   */
  evaluate(resolver: VariableResolver): CelResult;
}

/** An expression with its location in the configuration, which reports its results to the request's observer. */
export interface TracedExpression extends Expression {
  readonly place: TracePlace;
  /** Root variables that are available to it. */
  readonly variables: readonly string[];
}

/** The variables of the expressions of one kind, such as those of policies or of the access log. */
export interface ExpressionScope {
  readonly name: string;
  /** Names of the root variables, in the order used by messages. */
  readonly roots: readonly string[];
  /** Variables and members that are never set in this scope, each with the reason. */
  readonly unavailable: Readonly<Record<string, string>>;
}
