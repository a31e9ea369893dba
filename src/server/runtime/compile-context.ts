import { type Diagnostic, type Path, pathText, usualSeverity } from '../../core/diagnostic.ts';
import { valueAt } from '../../core/schema/walk.ts';
import type { TracePlace } from '../../core/trace/event.ts';
import type { YamlSource } from '../../core/yaml/source.ts';
import { CelEvaluationError, CelSyntaxError, compileExpression } from '../expressions/cel/expression.ts';
import { whyUnavailable } from '../expressions/scopes.ts';
import type { CompileContext, NamedBackend, Problem } from '../kernel/compile-context.ts';
import type { Expression, ExpressionScope, TracedExpression } from '../kernel/expression.ts';

export interface ContextOptions
  extends Pick<CompileContext, 'log' | 'folder' | 'env' | 'settings' | 'redactor' | 'inspection'> {
  readonly source: YamlSource;
  /** Identifies the component being compiled, with its inputs, in all processes of the gateway. */
  readonly component?: string;
  /** Names it by its place in the configuration alone. */
  readonly componentName?: string;
  /** Maps a path of the configuration to a path of the file, if the configuration is only a part of the file. */
  sourcePath?(path: Path): Path;
  /** Compiles a top-level backend when it is first referred to. */
  backend(name: string): NamedBackend | undefined;
  /** Host names of all routes that refer to a top-level backend. */
  hostnamesOf(backend: { readonly id: string }): ReadonlySet<string>;
  /** Called for every file that is read, with its absolute path. */
  dependsOn(file: string): void;
  /** Called for every problem with its path. */
  report(path: Path, problem: Problem): void;
  /** Called for every location that is looked up, because a reload may move it to another line. */
  onLocate?(path: Path, at: 'key' | 'value', place: TracePlace): void;
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
    const found = locationOf(options.source, options.sourcePath?.(path) ?? path, at);
    options.onLocate?.(path, at, found);
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
    backend(name) {
      const found = options.backend(name);
      if (found === undefined)
        report({
          code: 'AGW0107',
          message: `unknown backend \`${name}\``,
          help: 'name one of the top-level `backends`',
        });
      return found;
    },
    place: () => place('key'),
    isWritten: () => valueAt(options.source.value, options.sourcePath?.(path) ?? path) !== undefined,
    dependsOn: options.dependsOn,
    identity: (name) => `${options.componentName}/${name}`,
    shared: (name, operations, receive) =>
      settings.sharedState.join(() => `${options.component}/${name}`, operations, receive),
    at: (...more) => createContext(options, [...path, ...more], hostnames, expressions),
    condition(text, scope) {
      const expression = this.cel(text, scope);
      const { nonBooleanType } = expression;
      if (nonBooleanType !== undefined)
        report({
          code: 'AGW0205',
          message: `the expression returns ${nonBooleanType}, never a boolean`,
          inside: { start: 0, end: text.length },
          help: 'compare the value, as in `jwt.sub == "ann"`',
        });
      return expression;
    },
    cel(text, scope) {
      try {
        const compiled = compileExpression(text, scope.roots);
        const expression = traced(compiled, scope.roots, place('value'));
        expressions.push(expression);
        for (const problem of [...unavailableMembers(compiled, scope), ...inOnStrings(compiled)])
          report(problem);
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
        return invalidExpression(text);
      }
    },
  };
}

/** Warnings for members that an expression reads although they are never set in its scope. */
function unavailableMembers({ paths }: Expression, scope: ExpressionScope): Problem[] {
  const seen = new Set<string>();
  return [...paths].flatMap(([path, inside]): Problem[] => {
    const unavailable = whyUnavailable(scope, path);
    if (unavailable === undefined || seen.has(unavailable.member)) return [];
    seen.add(unavailable.member);
    return [
      {
        code: 'AGW0309',
        message: `\`${unavailable.member}\` is never set here: ${unavailable.why}`,
        inside,
        label: 'evaluates to null or is absent, so every comparison with it is false',
        help: 'agctl-expressions(7) lists the variables and members of each scope',
      },
    ];
  });
}

/** Upstream evaluates `in` on a string as a substring search, so configurations from there load, with a warning. */
function inOnStrings(expression: Expression): Problem[] {
  return expression.inOnStrings.map((inside) => ({
    code: 'AGW0310',
    message: '`in` on a string always fails',
    inside,
    label: 'a string: `in` checks items of lists and keys of maps',
    help: 'to search for a substring, write `text.contains(part)`',
  }));
}

/** Placeholder for an invalid expression, until the configuration is rejected. Every evaluation throws. */
function invalidExpression(source: string): TracedExpression {
  return {
    source,
    place: {},
    variables: [],
    roots: new Set(),
    paths: new Map(),
    inOnStrings: [],
    nonBooleanType: undefined,
    reads: () => false,
    evaluate: () => {
      throw new CelEvaluationError('failed', 'the expression is not valid');
    },
  };
}

/** Converts a problem to a diagnostic with its range in the file. */
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
  return { severity: severity ?? usualSeverity(problem.code), file: source.file, path, range, ...problem };
}

/** The location of a section (its key) or an expression (its value) in the configuration file, for traces. */
export function locationOf(source: YamlSource, path: Path, at: 'key' | 'value'): TracePlace {
  const { start } = at === 'key' ? source.keyRange(path) : source.valueRange(path);
  return {
    configPath: pathText(path),
    configFile: source.file,
    configLine: start.line,
    configColumn: start.column,
  };
}

/** Makes an expression report its results to the request's observer. Without one, this costs a check for `undefined`. */
function traced(expression: Expression, variables: readonly string[], place: TracePlace): TracedExpression {
  const placed: TracedExpression = {
    ...expression,
    place,
    variables,
    evaluate(resolver) {
      const { observed } = resolver;
      if (observed === undefined) return expression.evaluate(resolver);
      const { observer, peek } = observed;
      const since = observer.now;
      try {
        const value = expression.evaluate(resolver);
        observer.expression(placed, since, peek, { value });
        return value;
      } catch (error) {
        if (error instanceof CelEvaluationError)
          observer.expression(placed, since, peek, { error: error.message });
        throw error;
      }
    },
  };
  return placed;
}
