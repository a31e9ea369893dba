// Everything that must hold before a change lands: `npm test`.
import { join } from 'node:path';
import { installPart, link } from './install.mjs';
import { root, runTogether, runWithChecks } from './run.mjs';

// Node.js keeps compiled code there for what starts again and again, as it does for the tests (vitest.config.ts).
process.env.NODE_COMPILE_CACHE ??= join(root, 'node_modules/.cache/node');
// tsc and oxlint are Go programs of one run: without collecting garbage up to this size they take a quarter less CPU time.
process.env.GOGC ??= 'off';
process.env.GOMEMLIMIT ??= '2GiB';
// By default four checkers, each of which checks the types that they share anew: half as much CPU time again.
const tsc = (project) => ['tsc', '-p', project, '--checkers', '1'];

/** What tests of embedding models run. */
async function installRuntime() {
  link(join(await installPart('onnxruntime'), 'onnxruntime-node'), 'onnxruntime-node');
}

await Promise.all([
  installRuntime(),
  // Tests run what is built.
  runTogether([process.execPath, 'scripts/build-program.mjs'], [process.execPath, 'scripts/build-web.mjs']),
]);
await runWithChecks(
  // No watching.
  ['vitest', ['run', ...process.argv.slice(2)], { CI: process.env.CI || 'npm test' }],
  tsc('tsconfig.json'),
  tsc('tsconfig.test.json'),
  tsc('src/web/tsconfig.json'),
  ['biome', 'check', '--error-on-warnings', '.'],
  ['oxlint', '--type-aware', '--deny-warnings'],
);
// After the tests: the suite gives some responses one second, which a machine that runs other tests does not always keep.
if (process.argv.length === 2 && process.exitCode === 0) {
  const conformance = (...args) => [process.execPath, 'test/conformance/run.mjs', '--quiet', ...args];
  for (const revision of ['2025-11-25', '2026-07-28'])
    await runTogether(conformance('--leg', 'client', '--revision', revision));
  // Each needs half a processor.
  for (const revision of ['2025-11-25', '2026-07-28'])
    await runTogether(
      ...['stdio', 'http'].map((target) => conformance('--revision', revision, '--target', target)),
    );
}
