import type { Diagnostic, DiagnosticCode, Path } from '../../core/diagnostic.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Redactor } from '../../core/redact.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { Database } from './database.ts';
import type { ExpressionScope, TracedExpression } from './expression.ts';
import type { Inspection } from './inspection.ts';
import type { CallKind, CallMeter } from './observer.ts';
import type { Backend, RequestContext } from './request/request-context.ts';
import type { RequestValidation } from './request/validate-request.ts';
import type { Operations, Shared, SharedState } from './shared-state.ts';
import type { SlotHolder } from './slot.ts';
import type { Upstreams } from './upstreams.ts';

/** Everything that a policy, backend or target may use while a configuration is compiled. */
export interface CompileContext {
  /** Path of the section being compiled in the configuration. */
  readonly path: Path;
  /** The same context for a section below it; `path` is relative. */
  at(...path: Path): CompileContext;
  readonly log: Log;
  /** Folder of the configuration file, which relative paths are resolved against. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly settings: RuntimeSettings;
  /** Removes the secrets of the configuration from log output. Created on first use. */
  readonly redactor: () => Redactor;
  /** Where components register their limits and state for the admin server. */
  readonly inspection: Inspection;
  /** Host names of this route according to the configuration, in lower case. */
  readonly hostnames: ReadonlySet<string>;
  /**
   * Compiles the expression at this path and records what it reads: for example, request bodies are buffered only on
   * routes whose expressions read them. An invalid expression is reported, and every evaluation of it throws.
   */
  cel(source: string, scope: ExpressionScope): TracedExpression;
  /** Like `cel`, for a boolean expression: also reports an expression that never returns a boolean. */
  condition(source: string, scope: ExpressionScope): TracedExpression;
  /**
   * One of the top-level `backends`, by the name at this path. An unknown name is reported. It is shared with all others
   * that refer to it, so it is not closed by them; the component is compiled again when it has changed.
   */
  backend(name: string): NamedBackend | undefined;
  /**
   * The component being compiled reads this file (absolute path): it is compiled again when the file has changed, which is watched.
   * Call it before reading.
   */
  dependsOn(file: string): void;
  /**
   * Name of the component being compiled, by its place in the configuration: the same in all replicas, whatever its
   * settings. `name` tells several states of a component apart.
   */
  identity(name: string): string;
  /** State of the component being compiled that all workers share. `name` tells several states of a component apart. */
  shared<T extends Operations>(name: string, operations: T, receive?: (event: never) => void): Shared<T>;
  /** Whether the file has something at this path, so that it is not a default. */
  isWritten(): boolean;
  /** Location of the section being compiled in the configuration file, for traces. */
  place(): TracePlace;
  /** Reports a problem at this path. Compiling continues, so that all problems are reported at once. */
  report(problem: Problem): void;
}

/** One of the top-level `backends`. */
export interface NamedBackend {
  readonly name: string;
  /** The key of its kind. */
  readonly kind: string;
  readonly connectsTo: Upstreams;
  /** Settings of its `policies`, by key. */
  readonly policies: Readonly<Record<string, unknown>>;
  readonly backend: Backend;
}

export interface Problem extends Pick<Diagnostic, 'message' | 'label' | 'help' | 'notes' | 'notesQuoteFile'> {
  readonly code: DiagnosticCode;
  /** By default that of its code, `usualSeverity`. */
  readonly severity?: Diagnostic['severity'];
  /** The affected part of the string at this path, such as an expression, as UTF-16 offsets. */
  readonly inside?: { readonly start: number; readonly end: number };
  /** Point to the key instead of the value. */
  readonly atKey?: boolean;
}

/** Configured names of headers and query parameters that carry credentials, in lower case, and what else is to be redacted. */
export interface SecretNames {
  readonly headers: Set<string>;
  readonly parameters: Set<string>;
  /** Credentials that were read from files: logs and traces redact them like those of the configuration. */
  readonly values: Set<string>;
  /** Protocols whose calls guardrails check: traces omit content that these have not checked. */
  readonly guarded: Set<RequestContext['protocol']>;
  /** Removes secrets with known values from a text. */
  readonly scrub?: (text: string) => string;
  /** Whether the trace of this request omits what guardrails have not checked. */
  readonly omitsUnchecked?: boolean;
}

/** Process-wide settings that compiled components read. Features keep their own in slots. */
export interface RuntimeSettings extends SlotHolder {
  readonly limits: Limits;
  /**
   * Tells running gateways apart, whose exported metrics would be one series otherwise (OTel, "Service" resource: a random UUID).
   * All workers have that of their gateway, so that its metrics, spans and log records belong together.
   */
  readonly instance: string;
  /** `config.http`. */
  readonly requestValidation: RequestValidation;
  /** Names of headers and parameters that carry credentials; traces redact them. */
  readonly secretNames: SecretNames;
  /** Bytes of a body that are buffered for expressions: `frontendPolicies.http.maxBufferSize`, 2 MiB by default. */
  readonly maxBufferSize: number;
  /** Whether the configuration sets it. Backends that buffer bodies have their own defaults. */
  readonly isBufferSizeSet: boolean;
  readonly sharedState: SharedState;
  /** The database of `config.database`, if there is one. Opened before the first request. */
  readonly database: Database | undefined;
  /** Whether a reload has added `config.database`, which is opened at startup only. */
  readonly isDatabaseAdded: boolean;
  /** What sign-ins of users at MCP servers lack, and whether a reload has added all of it. */
  readonly signInLacks: { readonly keys: readonly string[]; readonly areAdded: boolean };
  /** Creates the meter of an upstream; `subtype` is a metric label such as `Http` or `ExtAuthz`. */
  callMeter(kind: CallKind, subtype: string): CallMeter;
  /** Returns a function that increments a counter, given the values of its labels, by 1 or by `amount`. */
  counter(
    metric:
      | 'accessLogRecordsLost'
      | 'budgetCalls'
      | 'budgetFailures'
      | 'guardrails'
      | 'llmCache'
      | 'mcpToolChanges'
      | 'metricPointsLost'
      | 'mirroredRequests'
      | 'policyCalls'
      | 'sharedStoreMisses'
      | 'tlsFailures'
      | 'tlsReloads',
  ): (labels: readonly string[], amount?: number) => void;
}
