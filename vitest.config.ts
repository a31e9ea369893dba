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
    // Some tests bound a time, which a shared machine may stretch: there (`CI`) they get a second try. What needed one is
    // named at the end, since it may be a race as well. Browsers and terminals: `test/kit/retry.ts`.
    retry: process.env['CI'] === undefined ? 0 : 1,
    reporters: [
      'default',
      ...(process.env['GITHUB_ACTIONS'] === undefined ? [] : ['github-actions']),
      retriedReporter,
    ],
    hookTimeout: 30_000,
  },
});
