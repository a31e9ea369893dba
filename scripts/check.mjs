// Everything that must hold before a change lands: `npm test`.
import { run } from './run.mjs';

run('tsc', ['-p', 'tsconfig.json']);
run('tsc', ['-p', 'tsconfig.test.json']);
run('tsc', ['-p', 'src/web/tsconfig.json']);
run(process.execPath, ['scripts/build-web.mjs']);
run('biome', ['check', '--error-on-warnings', '.']);
run('vitest', ['run', ...process.argv.slice(2)], { CI: '1' });
