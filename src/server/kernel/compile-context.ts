import type { Diagnostic, DiagnosticCode, Path } from '../../core/diagnostic.ts';
import type { Log } from '../../core/log.ts';
import type { Redactor } from '../../core/redact.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { CallKind, CallMeter } from './call-meter.ts';
import type { ExpressionScope, TracedExpression } from './expression.ts';
import type { Inspection } from './inspection.ts';
import type { SlotHolder } from './slot.ts';
import type { RequestValidation } from './validate-request.ts';

/** What a policy, backend or target may use while a configuration is compiled. The only way out of its own file. */
export interface CompileContext {
  /** Path in the configuration of the thing being compiled. */
  readonly path: Path;
  /** The same context for a part of it. */
  at(...path: Path): CompileContext;
  readonly log: Log;
  /** Folder of the configuration file: relative paths in it start there. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly settings: RuntimeSettings;
  /** Takes the secrets of the configuration out of what is logged. Made when first asked for. */
  readonly redactor: () => Redactor;
  /** Where a component with a bound or a state reports it, for the admin server. */
  readonly inspection: Inspection;
  /** Host names, lower case, under which the configuration says this route is reached. */
  readonly hostnames: ReadonlySet<string>;
  /**
   * Compiles the expression at this path. What it reads is recorded: a request body, say, is only kept for
   * routes on which an expression reads it. A wrong expression is reported and fails on every evaluation.
   */
  cel(source: string, scope: ExpressionScope): TracedExpression;
  /** The same for an expression that must give a boolean: one that never can is reported too. */
  condition(source: string, scope: ExpressionScope): TracedExpression;
  /** Where the section being compiled was written, for traces. */
  place(): TracePlace;
  /** Reports a problem at this path. Compiling goes on, so that all problems are seen at once. */
  report(problem: Problem): void;
}

export interface Problem extends Pick<Diagnostic, 'message' | 'label' | 'help' | 'notes' | 'notesQuoteFile'> {
  readonly code: DiagnosticCode;
  readonly severity?: Diagnostic['severity'];
  /** Part of the text value at this path, as offsets into it: a spot in an expression. */
  readonly inside?: { readonly start: number; readonly end: number };
  /** Point at the key instead of the value. */
  readonly atKey?: boolean;
}

/** Names that the configuration gives to places of credentials, lower case. */
export interface SecretNames {
  readonly headers: Set<string>;
  readonly parameters: Set<string>;
  /** Takes the secrets that are known by value out of a text. */
  readonly scrub?: (text: string) => string;
}

/** Process-wide settings that compiled components read. Features keep their own in slots. */
export interface RuntimeSettings extends SlotHolder {
  /** `config.http`. */
  readonly requestValidation: RequestValidation;
  /** Names of places of credentials; traces redact them. */
  readonly secretNames: SecretNames;
  /** Bytes of a body that expressions may read. */
  readonly maxBufferSize: number;
  /** The meter of an upstream; `subtype` is a label of metrics, such as `Http` or `ExtAuthz`. */
  callMeter(kind: CallKind, subtype: string): CallMeter;
  /** Counts one event of a metric, by the values of its labels. */
  counter(metric: 'guardrails'): (labels: readonly string[]) => void;
}
