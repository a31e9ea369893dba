import type { Diagnostic, Path } from '../../core/diagnostic.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { CelEvaluationError, CelSyntaxError, compileExpression } from '../expressions/cel/expression.ts';
import { whyUnset } from '../expressions/scopes.ts';
import { traced } from '../expressions/traced-expression.ts';
import type { CompileContext, Problem } from '../kernel/compile-context.ts';
import type { Expression, ExpressionScope, TracedExpression } from '../kernel/expression.ts';
import { placeOf } from './place.ts';

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
    condition(text, scope) {
      const expression = this.cel(text, scope);
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
    cel(text, scope) {
      try {
        const compiled = compileExpression(text, scope.roots);
        const expression = traced(compiled, scope.roots, place('value'));
        expressions.push(expression);
        for (const problem of [...unsetMembers(compiled, scope), ...insideTexts(compiled)]) report(problem);
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
function unsetMembers({ paths }: Expression, scope: ExpressionScope): Problem[] {
  const seen = new Set<string>();
  return [...paths].flatMap(([path, inside]): Problem[] => {
    const unset = whyUnset(scope, path);
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
function failing(source: string): TracedExpression {
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
