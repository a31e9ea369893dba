import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { convertConfig } from '../../server/config/convert/convert.ts';
import { loadConfigText, readConfigFile } from '../../server/config/load.ts';
import { planGateways } from '../../server/config/plan/plan-gateways.ts';
import type { Run } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { asCalled } from '../invocation.ts';
import { dataOutput } from '../safe-output.ts';

interface Options {
  readonly operands?: readonly string[];
}

export const run: Run<Options> = async ({ operands = [] }, context) => {
  const [file] = operands;
  if (file === undefined || operands.length > 1)
    throw new CommandError('usage', 'expected one configuration file', 'agctl config convert gateway.yaml');
  const { stdout, stderr, env } = forConfig(context, file);
  const text = readConfigFile(file);
  const converted = convertConfig(text);
  dataOutput(stdout).write(converted.text);
  for (const change of converted.changes) stderr.write(`${file}: ${change}\n`);
  if (converted.changes.length === 0) stderr.write(`${file}: nothing to convert\n`);
  const errors = errorsOf(converted.text, file, env);
  if (errors === 0) return EXIT_CODES.ok.code;
  stderr.write(
    `${file}: the result is not valid yet (${errors} ${errors === 1 ? 'problem' : 'problems'}): save it, and run ${asCalled('agctl config validate', context)}\n`,
  );
  return EXIT_CODES.not_ok.code;
};

/** Errors of the configuration alone: files and variables that it names are not checked here. */
function errorsOf(text: string, file: string, env: Readonly<Record<string, string | undefined>>): number {
  const { config, diagnostics } = loadConfigText(text, file, env);
  const isError = ({ severity = 'error' }: { readonly severity?: string }): boolean => severity === 'error';
  const problems = config === undefined ? [] : planGateways(config).problems;
  return diagnostics.filter(isError).length + problems.filter(isError).length;
}
