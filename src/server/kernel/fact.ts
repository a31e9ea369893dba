import type { CelResult } from './expression.ts';
import type { AttributeValue } from './observer.ts';

/** The value of a field of the access log. Undefined: the field is omitted. */
export type FieldValue = CelResult | undefined;

/**
 * One thing that is known of a request that has ended. The access log, spans, records, searches and expressions read it from
 * here. `Source` is what its feature keeps of a request, such as an LLM call.
 */
export interface Fact<Source> {
  /** Field of the access log. Names and their order follow the specification's "Access log" and upstream's wire format. */
  readonly name?: string;
  /** The value of the field, and of everything below that has no `read` of its own. */
  read(source: Source): FieldValue;
  /** The field is free text, which is always quoted in the text format. */
  readonly isText?: true;
  /**
   * Span attributes instead of one with the name of the field, by OpenTelemetry's conventions. Empty: the span itself tells it.
   */
  readonly attributes?: readonly string[];
  /** The value of its attribute: the number behind a field that log lines print as text, for example. */
  attribute?(source: Source): AttributeValue | undefined;
  /** Whether the span of the call to a provider has it, too. */
  readonly isOfCall?: true;
  /** Member of the CEL variable of the feature. */
  readonly cel?: Member<Source>;
  readonly column?: Column<Source>;
}

export interface Member<Source> {
  readonly member: string;
  readonly type: 'string' | 'int' | 'double' | 'bool';
  /** Its meaning in one line. */
  readonly doc: string;
  read?(source: Source): unknown;
}

/** A column of `agctl_records`, which a migration has added. */
export interface Column<Source> {
  readonly name: string;
  /**
   * `count` and `time` (ms since 1970) are integers, `duration` is stored in µs, `usd` in 10⁻¹⁰ USD, `flag` as 0 or 1, and
   * `json` as text.
   */
  readonly type: 'text' | 'count' | 'time' | 'duration' | 'usd' | 'flag' | 'json';
  /** Its name in responses of the admin server, and for programs that the gateway runs in. */
  readonly shown: string;
  /** Its meaning in one line. */
  readonly doc: string;
  /** Its name as a filter of searches, if it is one. */
  readonly filter?: string;
  /** In ms or USD, if it is a duration or an amount. */
  read?(source: Source): FieldValue;
}
