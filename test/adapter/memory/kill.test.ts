import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { repeats } from '../../kit/thorough.ts';
import { killLoop } from './kill-harness.ts';

/**
 * Each takes some 150 ms of CPU time. A store that acknowledges before it commits is detected within about 70, and
 * `npm run bench memory-kill` runs 10,000.
 */
const KILLS = repeats(12, 500);

// A loss once in 500 runs is a failure: no retries.
test(`killing the store with SIGKILL ${KILLS} times loses no acknowledged write and leaves no partial write`, {
  retry: 0,
  timeout: 600_000,
}, async () => {
  await using folder = await temporaryFolder();
  const report = await killLoop(folder.path, KILLS);
  expect(report.problems).toEqual([]);
  expect(report.kills).toBe(KILLS);
  expect(report.acknowledged).toBeGreaterThan(KILLS / 2);
});
