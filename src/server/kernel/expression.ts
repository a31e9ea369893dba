import type { TracePlace } from '../../core/trace/event.ts';
// biome-ignore lint/suspicious/noImportCycles: see request-context.ts.
import type { RequestObserver, RequestSpan } from './observer.ts';

/** Part of a source text, as UTF-16 offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** The result of an evaluation for the rest of the gateway: values that JSON and headers can hold. */
export type CelResult =
  | string
  | number
  | boolean
  | null
  | Uint8Array
  | CelResult[]
  | { [key: string]: CelResult };

/** Gives the value of a root variable; null or undefined when it is not set. Called at most once per evaluation and root. */
export interface VariableResolver {
  (root: string): unknown;
  /** Set while the request is observed: who is told, and how to read a variable without caching it. */
  observed?: { readonly observer: RequestObserver; peek(root: string): unknown } | undefined;
  /** Set when the request is recorded as a span. */
  span?: RequestSpan | undefined;
}

/** A compiled expression. Immutable, and safe to evaluate from everywhere, also from inside of a resolver. */
export interface Expression {
  readonly source: string;
  /** Root variables that it reads. */
  readonly roots: ReadonlySet<string>;
  /** Dotted paths that it reads, such as `jwt.sub`, with where in the source each is read first. */
  readonly paths: ReadonlyMap<string, Span>;
  /** Uses of `in` over a value that is certainly a text, which always fail. */
  readonly insideTexts: readonly Span[];
  /** The type of its result, in words, when that is certainly not a boolean. */
  readonly neverBoolean: string | undefined;
  /**
   * Whether it may read the member at a dotted path, such as `request.body`. True also when it uses a parent as a whole
   * (`request[name]`, `variables()`, `toJson(request)`) or a part of the member.
   */
  reads(path: string): boolean;
  /**
   * The value of the expression. Synchronous, and bounded in time. Values of the resolver pass through `toCel`, so plain
   * JSON, `CelStruct` and `HeadersView` may be given as they are. Throws `CelEvaluationError` and nothing else.
   */
  evaluate(resolver: VariableResolver): CelResult;
}

/** An expression of the configuration: it knows where it was written, and reports its result to the request's observer. */
export interface TracedExpression extends Expression {
  readonly place: TracePlace;
  /** Root variables that it could read. */
  readonly variables: readonly string[];
}

/** A kind of place in the configuration that takes expressions: which variables they have, and which members are not set yet. */
export interface ExpressionScope {
  readonly name: string;
  /** Names of the root variables, in the order in which messages list them. */
  readonly roots: readonly string[];
  /** Variables and members that exist but are never set in this scope, each with the reason. */
  readonly unset: Readonly<Record<string, string>>;
}
