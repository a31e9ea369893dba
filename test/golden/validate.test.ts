import { describe } from 'vitest';
import { report } from '../../src/cli/report.ts';
import { createLog } from '../../src/core/log.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { compileRuntime } from '../../src/server/runtime.ts';
import { runGoldenCases } from './case-file.ts';

interface Settings {
  readonly env?: Readonly<Record<string, string>>;
}

const silent = createLog(
  { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
  'error',
  'text',
);

// What the schema finds, then what compiling finds, in the words of `agctl config validate`; `valid` when that is nothing.
describe('a configuration that is read and compiled', () => {
  runGoldenCases<Settings>(new URL('validate/', import.meta.url), ({ settings: { env = {} }, input }) => {
    const loaded = loadConfigText(input, 'gateway.yaml', env);
    const { config, source } = loaded;
    const diagnostics = [...loaded.diagnostics];
    if (config !== undefined) {
      const compiled = compileRuntime({ config, source, log: silent, folder: '/', env });
      diagnostics.push(...compiled.diagnostics);
      void compiled.runtime.close();
    }
    if (diagnostics.length === 0) return 'valid';
    return report(diagnostics, [loaded], { format: 'text', color: false, width: 100 });
  });
});
