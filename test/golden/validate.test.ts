import { describe } from 'vitest';
import { report } from '../../src/cli/report.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { findProblems } from '../../src/server/runtime/find-problems.ts';
import { runGoldenCases } from './case-file.ts';

interface Settings {
  readonly env?: Readonly<Record<string, string>>;
}

// What the schema finds, then what compiling finds, in the words of `agctl config validate`; `valid` when that is nothing.
describe('golden validation results', () => {
  runGoldenCases<Settings>(
    new URL('validate/', import.meta.url),
    async ({ settings: { env = {} }, input }) => {
      const loaded = loadConfigText(input, 'gateway.yaml', env);
      const diagnostics = await findProblems(loaded, { folder: '/', env });
      if (diagnostics.length === 0) return 'valid';
      return report(diagnostics, [loaded], { format: 'text', color: false, width: 100 });
    },
  );
});
