import { type Diagnostic, inOrder } from '../../core/diagnostic.ts';
import { createLog } from '../../core/log.ts';
import { recoverPartialConfig } from '../../core/schema/recover-partial-config.ts';
import { isPrimary } from '../config/cascading-errors.ts';
import { isWhole, type LoadedConfig } from '../config/load.ts';
import { configSchema } from '../config/schema.ts';
import { type CompileOptions, compileRuntime } from './runtime.ts';

type Surroundings = Pick<CompileOptions, 'folder' | 'env'>;

/**
 * Everything that can be known of a file without opening a port, starting a process or sending a byte: what reading it
 * found, then what compiling it finds. Of a file that the schema refuses, what it does not refuse is compiled all the
 * same, and problems that could be consequences are left out. In the order of the text, each once.
 */
export async function findProblems(
  loaded: LoadedConfig,
  surroundings: Surroundings,
): Promise<readonly Diagnostic[]> {
  const { config, source, diagnostics } = loaded;
  const more =
    config === undefined
      ? await problemsOfTheRest(loaded, surroundings)
      : await compiled({ ...surroundings, config, source });
  return inOrder([...diagnostics, ...more]);
}

async function problemsOfTheRest(
  { source, diagnostics }: LoadedConfig,
  surroundings: Surroundings,
): Promise<readonly Diagnostic[]> {
  const recovered = isWhole(diagnostics) ? recoverPartialConfig(configSchema, source) : undefined;
  if (recovered === undefined) return [];
  const { value: config, damaged, sourcePath: written } = recovered;
  const found = await compiled({ ...surroundings, config, source, written });
  return found.filter((each) => isPrimary(each, damaged));
}

async function compiled(options: Omit<CompileOptions, 'log'>): Promise<readonly Diagnostic[]> {
  const { runtime, diagnostics } = compileRuntime({ ...options, log: silent });
  await runtime.close();
  return diagnostics;
}

const silent = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'off',
  'text',
);
