import { type Diagnostic, inOrder } from '../../core/diagnostic.ts';
import { createLog } from '../../core/log.ts';
import { recoverPartialConfig } from '../../core/schema/recover-partial-config.ts';
import { isPrimary } from '../config/cascading-errors.ts';
import { isWhole, type LoadedConfig } from '../config/load.ts';
import { configSchema } from '../config/schema.ts';
import { type CompileOptions, compileRuntime } from './runtime.ts';

type Surroundings = Pick<CompileOptions, 'folder' | 'env'>;

/**
 * Returns every problem of a configuration file, without opening ports, starting processes or sending anything: those
 * found while reading it and those found by compiling it. If the schema rejects the file, its valid parts are compiled
 * anyway, and possible follow-up problems are omitted. Sorted by position in the file, without duplicates.
 */
export async function findProblems(
  loaded: LoadedConfig,
  surroundings: Surroundings,
): Promise<readonly Diagnostic[]> {
  const { config, source, diagnostics } = loaded;
  const more =
    config === undefined
      ? await problemsOfValidParts(loaded, surroundings)
      : await compileProblems({ ...surroundings, config, source });
  return inOrder([...diagnostics, ...more]);
}

async function problemsOfValidParts(
  { source, diagnostics }: LoadedConfig,
  surroundings: Surroundings,
): Promise<readonly Diagnostic[]> {
  const recovered = isWhole(diagnostics) ? recoverPartialConfig(configSchema, source) : undefined;
  if (recovered === undefined) return [];
  const { value: config, damaged, sourcePath } = recovered;
  const found = await compileProblems({ ...surroundings, config, source, sourcePath });
  return found.filter((each) => isPrimary(each, damaged));
}

async function compileProblems(options: Omit<CompileOptions, 'log'>): Promise<readonly Diagnostic[]> {
  const { runtime, diagnostics } = compileRuntime({ ...options, log: silent });
  await runtime.close();
  return diagnostics;
}

const silent = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'off',
  'text',
);
