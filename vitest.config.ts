import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // `npm run test:interop` runs these, with what they need.
    exclude: process.env['AGCTL_INTEROP'] === undefined ? ['test/interop/**'] : [],
    // Wire tests start real processes; two cores carry two files at a time.
    maxWorkers: 2,
    testTimeout: 20_000,
    // Real processes and browsers on a shared machine: what fails twice is broken.
    retry: process.env['CI'] === undefined ? 0 : 2,
    hookTimeout: 30_000,
  },
});
