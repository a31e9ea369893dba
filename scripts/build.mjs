import { run } from './run.mjs';

run('tsc', ['-p', 'tsconfig.json']);
run(process.execPath, ['scripts/build-program.mjs']);
run(process.execPath, ['scripts/build-web.mjs']);
