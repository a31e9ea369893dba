import { EXIT_CODES } from '../../core/exit-codes.ts';
import type { Run } from '../context.ts';
import { type Dump, type DumpOptions, loadDump } from '../proxy/dump.ts';
import { overviewOf } from '../proxy/dump-overview.ts';
import { escapeUnsafe, indentJson } from '../proxy/json-text.ts';
import { print } from '../proxy/print.ts';

interface Options extends DumpOptions {
  readonly output?: 'short' | 'json' | 'yaml';
}

/** Prints the whole dump. Default without `-o`: an overview on a terminal, otherwise JSON (upstream's default). */
export const run: Run<Options> = async (options, context) => {
  const { stdout } = context;
  const dump = await loadDump(options, context);
  const output = options.output ?? (stdout.isTTY === true ? 'short' : 'json');
  if (output === 'json') await print(stdout, indented(dump));
  else if (output === 'yaml') {
    const { yamlOf } = await import('../proxy/yaml-text.ts');
    await print(stdout, yamlOf(dump.value));
  } else await print(stdout, [overviewOf(dump)]);
  return EXIT_CODES.ok.code;
};

/** Gateways send the dump already indented; detecting that takes a third of the time of indenting it. */
function indented({ text, value }: Dump): Iterable<string> {
  const isIndented = text.startsWith('{\n  "') && JSON.stringify(value, null, 2) === text.trimEnd();
  return isIndented ? [`${escapeUnsafe(text.trimEnd())}\n`] : indentJson(text);
}
