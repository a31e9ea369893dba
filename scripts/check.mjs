// Everything that must hold before a change lands: `npm test`.
import { run } from './run.mjs';

run('tsc', ['-p', 'tsconfig.json']);
run('tsc', ['-p', 'tsconfig.test.json']);
run('tsc', ['-p', 'src/web/tsconfig.json']);
run(process.execPath, ['scripts/build-web.mjs']);
run('biome', ['check', '--error-on-warnings', '.']);
// No watching, and a second try; where `CI` is set already, some tests do more.
run('vitest', ['run', ...process.argv.slice(2)], { CI: process.env.CI || 'npm test' });
