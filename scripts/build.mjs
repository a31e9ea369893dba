import { run } from './run.mjs';

run('tsc', ['-p', 'tsconfig.json']);
