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
    // A second try is for browsers and terminals alone: `test/kit/retry.ts`.
    reporters: [
      'default',
      ...(process.env['GITHUB_ACTIONS'] === undefined ? [] : ['github-actions']),
      retriedReporter,
    ],
    hookTimeout: 30_000,
  },
});
