// Everything that must hold before a change lands: `npm test`.
import { runTogether, runWithChecks } from './run.mjs';

// Tests run what is built.
await runTogether(['tsc', '-p', 'tsconfig.json'], [process.execPath, 'scripts/build-web.mjs']);
await runWithChecks(
  // No watching; where `CI` is set already, some tests do more.
  ['vitest', ['run', ...process.argv.slice(2)], { CI: process.env.CI || 'npm test' }],
  ['tsc', '-p', 'tsconfig.test.json'],
  ['tsc', '-p', 'src/web/tsconfig.json'],
  ['biome', 'check', '--error-on-warnings', '.'],
  ['oxlint', '--type-aware', '--deny-warnings'],
);
