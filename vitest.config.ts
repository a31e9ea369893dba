import { defineConfig } from 'vitest/config';
import { retriedReporter } from './test/kit/retried.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm run test:interop` runs these, with what they need.
    exclude: process.env['AGCTL_INTEROP'] === undefined ? ['test/interop/**'] : [],
    // Wire tests start real processes; two cores carry two files at a time.
    maxWorkers: 2,
    testTimeout: 20_000,
    // Ends what a test has started and left running.
    setupFiles: ['test/kit/children.ts'],
    // A second try (`CI`, which `npm test` sets) tells a test that is broken from one that sometimes fails. Both fail the
    // run: `test/kit/retried.ts` names the few that may need one. Browsers and terminals get more: `test/kit/retry.ts`.
    retry: process.env['CI'] === undefined ? 0 : 1,
    reporters: [
      'default',
      ...(process.env['GITHUB_ACTIONS'] === undefined ? [] : ['github-actions']),
      retriedReporter(),
    ],
    hookTimeout: 30_000,
  },
});
