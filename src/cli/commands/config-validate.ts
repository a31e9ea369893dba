import { dirname, resolve } from 'node:path';
import type { Diagnostic } from '../../core/diagnostic.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { counted } from '../../core/render/counted.ts';
import { type LoadedConfig, loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import { findProblems } from '../../server/runtime/find-problems.ts';
import { configFileOf } from '../config-file.ts';
import { type Context, type Run, wantsColor } from '../context.ts';
import { forConfig } from '../env-file.ts';
import type { DiagnosticFormat } from '../render/diagnostics.ts';
import { report } from '../report.ts';

interface Options {
  readonly file?: string;
  readonly operands?: readonly string[];
  readonly output: DiagnosticFormat;
  readonly strict?: boolean;
  readonly color: string;
}

export const run: Run<Options> = async (options, context) => {
  const named = [...(options.file === undefined ? [] : [options.file]), ...(options.operands ?? [])];
  const files = named.length > 0 ? named : [configFileOf(undefined, context)];
  const started = performance.now();
  const checked = await Promise.all(files.map((file) => checkFile(file, context)));
  const diagnostics = checked.flatMap((file) => file.diagnostics);
  const isStrict = options.strict === true;
  const isMachine = options.output !== 'text';
  const stream = isMachine ? context.stdout : context.stderr;
  if (diagnostics.length > 0 || options.output === 'json' || options.output === 'sarif') {
    const text = report(
      // A failed run must not display only warnings.
      isStrict && options.output === 'github' ? diagnostics.map(warningAsError) : diagnostics,
      checked.flatMap(({ loaded }) => loaded ?? []),
      {
        format: options.output,
        color: !isMachine && wantsColor(stream, options.color, context.env),
        width: stream.columns ?? 100,
        context,
      },
    );
    stream.write(text.endsWith('\n') || text === '' ? text : `${text}\n`);
  }
  if (!isMachine)
    for (const file of checked) context.stderr.write(summary(file, performance.now() - started, isStrict));
  if (checked.some(({ loaded }) => loaded === undefined)) return EXIT_CODES.usage.code;
  const failing = diagnostics.some(
    ({ severity }) => severity === 'error' || (isStrict && severity === 'warning'),
  );
  return failing ? EXIT_CODES.not_ok.code : EXIT_CODES.ok.code;
};

interface CheckedFile {
  readonly file: string;
  /** File of variables. */
  readonly envFile: string | undefined;
  /** Undefined if the file could not be read, which is then its only problem. */
  readonly loaded: LoadedConfig | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

async function checkFile(file: string, context: Context): Promise<CheckedFile> {
  let text: string;
  try {
    text = readConfigFile(file);
  } catch (error) {
    // The remaining files are still validated. Of one without a name, no place could be shown.
    if (!(error instanceof CommandError) || file === '') throw error;
    return { file, envFile: undefined, loaded: undefined, diagnostics: [unreadable(file, error)] };
  }
  const { env, cwd, envFile } = forConfig(context, file);
  const loaded = loadConfigText(text, file, env);
  const folder = file === '-' ? cwd : dirname(resolve(cwd, file));
  return { file, envFile, loaded, diagnostics: await findProblems(loaded, { folder, env }) };
}

const warningAsError = (diagnostic: Diagnostic): Diagnostic =>
  diagnostic.severity === 'warning' ? { ...diagnostic, severity: 'error' } : diagnostic;

function unreadable(file: string, { message, help }: CommandError): Diagnostic {
  const start = { line: 1, column: 1, offset: 0 };
  const range = { start, end: start };
  return {
    severity: 'error',
    code: 'AGW0005',
    message,
    file,
    path: [],
    range,
    ...(help === undefined ? {} : { help }),
  };
}

function summary(
  { file, envFile, loaded, diagnostics }: CheckedFile,
  milliseconds: number,
  isStrict: boolean,
): string {
  if (loaded === undefined) return `${file}: cannot be read\n`;
  const count = (severity: Diagnostic['severity']): number =>
    diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
  const errors = count('error');
  const warnings = count('warning');
  if (errors > 0)
    return `${file}: ${counted(errors, 'error')}${warnings > 0 ? `, ${counted(warnings, 'warning')}` : ''}\n`;
  if (isStrict && warnings > 0) return `${file}: ${counted(warnings, 'warning')}, but --strict allows none\n`;
  const ports = loaded.config === undefined ? 0 : planGateways(loaded.config).gateways.length;
  const variables = envFile === undefined ? '' : `, variables of ${envFile}`;
  const noted = warnings > 0 ? `, ${counted(warnings, 'warning')}` : '';
  return `${file}: valid${noted} (${counted(ports, 'port')}${variables}) in ${Math.round(milliseconds)} ms\n`;
}
