import type { Diagnostic, DiagnosticCode, Path } from '../../core/diagnostic.ts';
import type { Log } from '../../core/log.ts';
import type { Redactor } from '../../core/redact.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import {
  CelEvaluationError,
  CelSyntaxError,
  compileExpression,
  type Expression,
} from '../expressions/cel/expression.ts';
import { type PlacedExpression, watchable } from '../expressions/traced-expression.ts';
import { whyUnset } from '../expressions/unset-members.ts';
import { PLACES, type Place } from '../expressions/variables.ts';
import type { Inspection } from '../kernel/inspection.ts';
import type { AdmissionSettings } from '../kernel/validate-request.ts';
import type { ChildSlots } from '../mcp/targets/child-slots.ts';
import type { Metrics } from '../observe/metrics/metrics.ts';
import type { SecretNames } from '../observe/trace/state.ts';
import { placeOf } from './place.ts';

/** What a policy, backend or target may use while a configuration is compiled. The only way out of its own file. */
export interface CompileContext {
  /** Where in the configuration the thing being compiled stands. */
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
  /** Where a part with a cap or a state says so, for the admin server. */
  readonly inspection: Inspection;
  /** Host names, lower case, under which the configuration says this route is reached. */
  readonly hostnames: ReadonlySet<string>;
  /**
   * Compiles the expression at this place. What it reads is recorded: a request body, say, is only kept for
   * routes on which an expression reads it. A wrong expression is reported and fails on every evaluation.
   */
  cel(source: string, place: Place): PlacedExpression;
  /** The same for an expression that says yes or no: one that can give neither is reported too. */
  condition(source: string, place: Place): PlacedExpression;
  /** Where the section being compiled stands, for traces. */
  place(): TracePlace;
  /** Reports a problem at this place. Compiling goes on, so that all problems are seen at once. */
  report(problem: Problem): void;
}

export interface Problem extends Pick<Diagnostic, 'message' | 'label' | 'help' | 'notes' | 'notesQuoteFile'> {
  readonly code: DiagnosticCode;
  readonly severity?: Diagnostic['severity'];
  /** Part of the text value at this place, as offsets into it: a spot in an expression. */
  readonly inside?: { readonly start: number; readonly end: number };
  /** Point at the key instead of the value. */
  readonly atKey?: boolean;
}

/** Process-wide settings that compiled parts read. All but the last two are as they were at start. */
export interface RuntimeSettings {
  readonly metrics: Metrics;
  /** Key for session ids: 32 bytes. */
  readonly sessionKey: Buffer;
  /** Milliseconds without a request after which a session ends. */
  readonly sessionIdle: number;
  readonly maxSessions: number;
  /** Places for child processes, over all stdio targets. */
  readonly children: ChildSlots;
  /** `config.http`. */
  readonly admission: AdmissionSettings;
  /** Names that the configuration gives to places of credentials; traces redact them. */
  readonly secretNames: SecretNames;
  /** Bytes of a body that expressions may read. */
  readonly maxBufferSize: number;
}

export interface ContextOptions
  extends Pick<CompileContext, 'log' | 'folder' | 'env' | 'settings' | 'redactor' | 'inspection'> {
  readonly source: YamlSource;
  /** Where in the file the thing at a path stands, when the configuration is less than the file. */
  written?(path: Path): Path;
  /** Receives every problem with its place. */
  report(path: Path, problem: Problem): void;
  /** Told of every place that was looked up: the line may be another one after a reload. */
  placed?(path: Path, at: 'key' | 'value', place: TracePlace): void;
}

/** The context of one route, or of the whole file. `expressions` collects what is compiled through it. */
export function createContext(
  options: ContextOptions,
  path: Path,
  hostnames: ReadonlySet<string>,
  expressions: Expression[],
): CompileContext {
  const { log, folder, env, settings, redactor, inspection } = options;
  const report = (problem: Problem): void => options.report(path, problem);
  const place = (at: 'key' | 'value'): TracePlace => {
    const found = placeOf(options.source, options.written?.(path) ?? path, at);
    options.placed?.(path, at, found);
    return found;
  };
  return {
    log,
    folder,
    env,
    settings,
    redactor,
    inspection,
    path,
    hostnames,
    report,
    place: () => place('key'),
    at: (...more) => createContext(options, [...path, ...more], hostnames, expressions),
    condition(text, where) {
      const expression = this.cel(text, where);
      const { neverBoolean } = expression;
      if (neverBoolean !== undefined)
        report({
          code: 'AGW0205',
          message: `the expression gives ${neverBoolean}, never true or false`,
          inside: { start: 0, end: text.length },
          help: 'compare it with something, as in `jwt.sub == "ann"`',
        });
      return expression;
    },
    cel(text, where) {
      try {
        const variables = PLACES[where];
        const compiled = compileExpression(text, variables);
        const expression = watchable(compiled, variables, place('value'));
        expressions.push(expression);
        for (const problem of [...unsetMembers(compiled, where), ...insideTexts(compiled)]) report(problem);
        return expression;
      } catch (error) {
        if (!(error instanceof CelSyntaxError)) throw error;
        const { code, message, label, help, start, end } = error;
        report({
          code,
          message,
          inside: { start, end },
          ...(label === undefined ? {} : { label }),
          ...(help === undefined ? {} : { help }),
        });
        return failing(text);
      }
    },
  };
}

/** Warnings for what an expression reads and never finds in its place. Those for other gateways are accepted. */
function unsetMembers({ paths }: Expression, place: Place): Problem[] {
  const seen = new Set<string>();
  return [...paths].flatMap(([path, inside]): Problem[] => {
    const unset = whyUnset(place, path);
    if (unset === undefined || seen.has(unset.member)) return [];
    seen.add(unset.member);
    return [
      {
        code: 'AGW0309',
        severity: 'warning',
        message: `\`${unset.member}\` is never set here: ${unset.why}`,
        inside,
        label: 'reads as null or absent, so that no comparison with it holds',
        help: 'agctl-expressions(7) lists what each place has, and what is set where',
      },
    ];
  });
}

/** Upstream reads `in` over a text as a search for a part of it: configurations from there must load, and be told. */
function insideTexts(expression: Expression): Problem[] {
  return expression.insideTexts.map((inside) => ({
    code: 'AGW0310',
    severity: 'warning',
    message: '`in` over a text always fails',
    inside,
    label: 'a text: `in` looks for items of lists and keys of maps',
    help: 'to look for a part of a text, write `text.contains(part)`',
  }));
}

/** Stands in for a wrong expression until the configuration is refused. */
function failing(source: string): PlacedExpression {
  return {
    source,
    place: {},
    variables: [],
    roots: new Set(),
    paths: new Map(),
    insideTexts: [],
    neverBoolean: undefined,
    reads: () => false,
    evaluate: () => {
      throw new CelEvaluationError('failed', 'the expression is not valid');
    },
  };
}

/** A problem at its place in the file. */
export function locate(
  source: YamlSource,
  path: Path,
  { inside, atKey, severity, ...problem }: Problem,
): Diagnostic {
  const range = inside
    ? source.rangeInside(path, inside.start, inside.end)
    : atKey
      ? source.keyRange(path)
      : source.valueRange(path);
  return { severity: severity ?? 'error', file: source.file, path, range, ...problem };
}
