import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { KNOWN_FLAKY, retriedReporter } from './test/kit/known-flaky.ts';
import { ISOLATED, slowFiles } from './test/kit/selection.ts';

/** `npm run test:interop` sets it: its tests need other people's software, and run alone. */
const isInterop = process.env['AGCTL_INTEROP'] !== undefined;

export default defineConfig(({ mode }) => ({
  test: {
    // Wire tests start real processes; two cores carry two files at a time.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Node.js keeps compiled code there, for workers and for what they start: `agctl` takes a third less CPU time to start.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/node') },
    // Ends what a test has started and left running.
    setupFiles: ['test/kit/children.ts'],
    retry: KNOWN_FLAKY.length === 0 ? 0 : 1,
    reporters: [
      'default',
      ...(process.env['GITHUB_ACTIONS'] === undefined ? [] : ['github-actions']),
      retriedReporter(),
    ],
    // `npm run test:fast`.
    exclude: mode === 'fast' ? slowFiles() : [],
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
          exclude: ['test/interop/**', ...ISOLATED, ...(mode === 'fast' ? slowFiles() : [])],
        },
      },
    ],
  },
}));
