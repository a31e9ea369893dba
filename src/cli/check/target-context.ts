import { EXIT_CODES } from '../../core/exit-codes.ts';
import { SILENT_LOG } from '../../core/log.ts';
import type { CompileContext } from '../../server/kernel/compile-context.ts';
import { createContext } from '../../server/runtime/compile-context.ts';
import { type CompileOptions, compileRuntime } from '../../server/runtime/runtime.ts';

/** What targets of a configuration are compiled with, outside of a gateway. Disposing of it closes what was opened for it. */
export function targetContext(
  given: Pick<CompileOptions, 'config' | 'source' | 'env' | 'folder'>,
): { readonly context: CompileContext } & AsyncDisposable {
  const options = { ...given, log: SILENT_LOG };
  const { runtime } = compileRuntime(options);
  const { settings, redactor, inspection } = runtime;
  const context = createContext(
    {
      ...options,
      settings,
      redactor,
      inspection,
      report: () => undefined,
      dependsOn: () => undefined,
      backend: () => undefined,
      hostnamesOf: () => new Set<string>(),
    },
    [],
    new Set(),
    [],
  );
  return { context, [Symbol.asyncDispose]: () => runtime.close() };
}

let isPrepared = false;

/**
 * The exit handler (`targets/stdio/child.ts`) kills the process groups of started servers; a signal alone does not run it.
 */
export function killChildrenOnSignals(): void {
  if (isPrepared) return;
  isPrepared = true;
  process.once('SIGINT', () => process.exit(EXIT_CODES.interrupted.code));
  process.once('SIGTERM', () => process.exit(EXIT_CODES.not_ok.code));
}
