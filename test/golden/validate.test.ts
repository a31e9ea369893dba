import { describe } from 'vitest';
import { report } from '../../src/cli/report.ts';
import { loadConfigText } from '../../src/server/config/load.ts';
import { findProblems } from '../../src/server/runtime/find-problems.ts';
import { runGoldenCases } from './case-file.ts';

interface Settings {
  readonly env?: Readonly<Record<string, string>>;
}

// Schema errors, then compile errors, as `agctl config validate` prints them; `valid` when there are none.
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
