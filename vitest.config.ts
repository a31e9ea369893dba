import { globSync, readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { retriedReporter } from './test/kit/retried.ts';

/** Files that replace a module for themselves, so that they cannot share loaded modules with others. */
const ISOLATED = globSync('test/**/*.test.ts', { exclude: ['test/interop/**'] }).filter((file) =>
  readFileSync(file, 'utf8').includes('vi.mock('),
);

/** `npm run test:interop` sets it: its tests need other people's software, and run alone. */
const isInterop = process.env['AGCTL_INTEROP'] !== undefined;

export default defineConfig({
  test: {
    // Wire tests start real processes; two cores carry two files at a time.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // Ends what a test has started and left running.
    setupFiles: ['test/kit/children.ts'],
    retry: process.env['CI'] === undefined ? 0 : 1,
    reporters: [
      'default',
      ...(process.env['GITHUB_ACTIONS'] === undefined ? [] : ['github-actions']),
      retriedReporter(),
    ],
    projects: [
      {
        extends: true,
        test: {
          name: 'isolated',
          include: isInterop ? ['test/interop/**/*.test.ts'] : ISOLATED,
        },
      },
      {
        // Loading the whole of `src` takes a second for each file; these load it once for each worker.
        extends: true,
        test: {
          name: 'shared',
          isolate: false,
          include: isInterop ? [] : ['test/**/*.test.ts'],
          exclude: ['test/interop/**', ...ISOLATED],
        },
      },
    ],
  },
});
