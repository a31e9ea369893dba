import { type Diagnostic, pathText } from '../core/diagnostic.ts';
import { renderConcise } from '../core/render/machine.ts';
import type { Environment } from '../core/yaml/env.ts';
import type { YamlSource } from '../core/yaml/source.ts';
import { redactorOf } from '../server/config/redact.ts';
import type { ConfigProblem } from './api.ts';
import { ConfigError } from './config-error.ts';

/** Problems as programs get them. Places are those of a file: an object has paths only. */
export const problemsOf = (diagnostics: readonly Diagnostic[], isFile: boolean): readonly ConfigProblem[] =>
  diagnostics.map(({ severity, code, message, help, path, range: { start } }) => ({
    severity,
    code,
    message,
    ...(help !== undefined && { help: helpOf(help) }),
    path,
    ...(isFile && { line: start.line, column: start.column }),
  }));

/** The error for a configuration with these problems, without the secrets that it may quote. */
export function configError(
  diagnostics: readonly Diagnostic[],
  source: YamlSource,
  env: Environment,
  isFile: boolean,
): ConfigError {
  const shown = redactorOf(source, env).value(diagnostics);
  const errors = shown.filter(({ severity }) => severity === 'error');
  const lines = errors.map((each) => (isFile ? renderConcise([each]) : placeOf(each)) + adviceOf(each));
  return new ConfigError(
    `the configuration is not valid:\n${lines.map((line) => `  ${line}`).join('\n')}`,
    problemsOf(shown, isFile),
  );
}

const placeOf = ({ path, code, message }: Diagnostic): string =>
  `${path.length === 0 ? '' : `${pathText(path)}: `}${message} (${code})`;

const adviceOf = ({ help }: Diagnostic): string => (help === undefined ? '' : `; ${helpOf(help)}`);

/** Only commands read variables from a file beside the configuration. */
const helpOf = (help: string): string =>
  help.replace(
    /\benvironment or (?:in `[^`]*` beside this file|with --env-from)/,
    'environment or the option `env`',
  );

export const withoutErrors = (diagnostics: readonly Diagnostic[]): readonly Diagnostic[] =>
  diagnostics.filter(({ severity }) => severity !== 'error');
